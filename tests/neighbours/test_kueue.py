"""Kueue's own manager admits Jobs where the dispatcher nominates, on real API servers.

Each worker cluster has a queue of two processors, so two Jobs fit. The scores are those of the
fixture: green 90, grey 50, brown 10.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from dsf.api.conditions import conditions_of, find
from dsf.hub.dispatch.kueue_configuration import DISPATCHER, DISPATCHING
from dsf.hub.dispatch.workloads import NOMINATED
from tests.eventually import until

from .kueue_manager import KUEUE, workloads

if TYPE_CHECKING:
    from .conftest import MultiKueue

NEXT = "3s"
KILLS = 10


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
        until("it to wait for green", lambda: kueue.nominated("waits") == ["green"])
        kueue.score(brown=99)
        until("it to be admitted", lambda: kueue.placed().get("waits"))
        assert kueue.placed()["waits"] == "brown"


def test_killed_at_each_write_it_forgets_no_workload_and_moves_none(kueue: MultiKueue) -> None:
    with kueue.dispatcher():
        kueue.submit("full-1", "full-2")
        until("green to be full", lambda: set(kueue.placed().values()) == {"green"})
    waiting = [f"waits-{number}" for number in range(4)]
    kueue.submit(*waiting)
    first = dict[str, list[str]]()
    for number in range(KILLS):
        if number == KILLS // 2:
            kueue.score(brown=99)
        assert kueue.kill_dispatcher(("before", "after")[number % 2]) == -signal.SIGKILL
        for name in waiting:
            if clusters := kueue.nominated(name):
                assert first.setdefault(name, clusters) == clusters
    # Nominated before brown became better, and not admitted since: green is full.
    assert ["green"] in [kueue.nominated(name) for name in waiting]
    with kueue.dispatcher(f"--next-after={NEXT}"):
        until("all to run", lambda: all(kueue.at(name) for name in waiting))
    counts = sorted(kueue.placed().values())
    assert counts == ["brown", "brown", "green", "green", "grey", "grey"]


def test_kueue_with_another_dispatcher_is_left_alone_and_it_is_told(kueue: MultiKueue) -> None:
    kueue.manager.restart()
    try:
        with kueue.dispatcher():
            kueue.submit("job")
            until("Kueue to admit it", lambda: kueue.at("job"))
            until("it to be told", lambda: dispatching(kueue) == ("False", "NotItsDispatcher"))
        assert find(conditions_of(workloads(kueue.hub)["job"]), NOMINATED) is None
    finally:
        kueue.manager.restart(DISPATCHER)


def dispatching(kueue: MultiKueue) -> tuple[str, str]:
    return told(kueue, DISPATCHING)


def told(kueue: MultiKueue, condition: str) -> tuple[str, str]:
    """Status and reason of a condition of the admission check."""
    check = kueue.hub.api.get(KUEUE, "AdmissionCheck", "multikueue")
    found = find(conditions_of(check), condition) or {}
    return str(found.get("status")), str(found.get("reason"))
