"""Kueue's own manager admits Jobs where the dispatcher nominates, on real API servers.

Each worker cluster has a queue of two processors, so two Jobs fit. The scores are those of the
fixture: green 90, grey 50, brown 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsf.api.conditions import conditions_of, find
from dsf.hub.dispatch.kueue_configuration import DISPATCHER
from dsf.hub.dispatch.workloads import NOMINATED
from tests.eventually import until

from .kueue_manager import workloads

if TYPE_CHECKING:
    from .conftest import MultiKueue

NEXT = "3s"


def test_jobs_run_where_scores_say_and_the_rest_on_the_next_best(kueue: MultiKueue) -> None:
    with kueue.dispatcher(f"--next-after={NEXT}"):
        kueue.submit("first", "second")
        both = {"first": "green", "second": "green"}
        until("both on the greenest", lambda: kueue.placed() == both)
        kueue.submit("third", "fourth")
        all_four = {**both, "third": "grey", "fourth": "grey"}
        until("the others on the next best", lambda: kueue.placed() == all_four)
        running = kueue.workers["green"].api.list("v1", "Pod", "default")
        assert {pod["metadata"]["labels"]["job-name"] for pod in running} == {"first", "second"}
        assert not kueue.hub.api.list("v1", "Pod", "default")
        condition = find(conditions_of(workloads(kueue.hub)["third"]), NOMINATED) or {}
        assert condition["message"].startswith("Nominated: green, grey. Scores: green (90); grey")


def test_scores_that_change_decide_for_what_still_waits(kueue: MultiKueue) -> None:
    with kueue.dispatcher(f"--next-after={NEXT}"):
        kueue.submit("full-1", "full-2")
        until("green to be full", lambda: set(kueue.placed().values()) == {"green"})
        kueue.submit("waits")
        until("it to wait for green", lambda: nominated(kueue, "waits") == ["green"])
        kueue.score(brown=99)
        until("it to be admitted", lambda: kueue.placed().get("waits"))
        assert kueue.placed()["waits"] == "brown"


def nominated(kueue: MultiKueue, name: str) -> list[str]:
    found = workloads(kueue.hub).get(name, {})
    return list(found.get("status", {}).get("nominatedClusterNames") or ())


def test_killed_while_jobs_come_it_forgets_none(kueue: MultiKueue) -> None:
    names = [f"job-{number}" for number in range(6)]
    for name in names:
        kueue.start_dispatcher(f"--next-after={NEXT}")
        kueue.submit(name)
        until(
            f"{name} to be nominated", lambda name=name: nominated(kueue, name) or at(kueue, name)
        )
        kueue.hub.processes.kill("dispatcher")
    with kueue.dispatcher(f"--next-after={NEXT}"):
        until("all to run", lambda: len([c for c in kueue.placed().values() if c]) == len(names))
    counts = sorted(kueue.placed().values())
    assert counts == ["brown", "brown", "green", "green", "grey", "grey"]


def at(kueue: MultiKueue, name: str) -> str:
    return kueue.placed().get(name, "")


def test_kueue_with_another_dispatcher_is_left_alone_and_it_is_told(kueue: MultiKueue) -> None:
    kueue.manager.restart()
    try:
        with kueue.dispatcher():
            kueue.submit("job")
            until("Kueue to admit it", lambda: at(kueue, "job"))
            until(
                "it to be told",
                lambda: [
                    event["message"]
                    for event in kueue.hub.api.list("v1", "Event", "default")
                    if event["reason"] == "NotItsDispatcher"
                ],
            )
        assert find(conditions_of(workloads(kueue.hub)["job"]), NOMINATED) is None
    finally:
        kueue.manager.restart(DISPATCHER)
