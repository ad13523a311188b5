"""Without a change nothing is written, also on a server that fills in defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..harness.api import Object
    from ..harness.hub import Hub
    from .parts import Part

API = "dynamic-scoring.open-cluster-management.io/v1alpha1"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
ROUNDS = 4
ADDON = "dynamic-scoring-framework"
CONTROLLER = "system:serviceaccount:{}:dynamic-scoring-controller"
AGENT = f"system:open-cluster-management:cluster:{{}}:addon:{ADDON}:agent:{ADDON}-agent"


def test_an_unchanged_resync_writes_nothing(
    hub: Hub, framework: str, controller: Part, scored: dict[tuple[str, str], Object]
) -> None:
    def silent() -> bool:
        before = done(hub, framework)
        more_of(controller, "dsf_reconcile_total", controller="fleet", result="success")
        more_of(controller, "dsf_hub_probes_total", result="ok")
        return done(hub, framework) == before

    until("the last news to be written", silent)
    assert silent()


def done(hub: Hub, framework: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The writes of the controller, and the versions of the objects that it writes."""
    versions = [
        obj["metadata"]["resourceVersion"]
        for kind in ("DynamicScorer", "DynamicScoringConfig")
        for obj in hub.api.list(API, kind, framework)
    ]
    return versions, writes(hub.audited(CONTROLLER.format(framework)))


def test_unchanged_scores_are_not_written_again(
    hub: Hub, agents: dict[str, Part], scored: dict[tuple[str, str], Object]
) -> None:
    before = len(writes(hub.audited(AGENT.format("east"))))
    rounds_of(agents["east"])
    only_renewed(writes(hub.audited(AGENT.format("east")))[before:])


def test_a_killed_controller_goes_on_where_it_was(
    hub: Hub, framework: str, controller: Part, scored: dict[tuple[str, str], Object]
) -> None:
    before = done(hub, framework)
    controller.kill()
    controller.start()
    more_of(controller, "dsf_reconcile_total", controller="fleet", result="success")
    more_of(controller, "dsf_hub_probes_total", result="ok")
    assert done(hub, framework) == before


def test_a_killed_agent_goes_on_where_it_was(
    hub: Hub, agents: dict[str, Part], scored: dict[tuple[str, str], Object]
) -> None:
    before = len(writes(hub.audited(AGENT.format("west"))))
    agents["west"].kill()
    agents["west"].start()
    rounds_of(agents["west"])
    only_renewed(writes(hub.audited(AGENT.format("west")))[before:])


@pytest.mark.parametrize("part", ["controller", "agent"])
def test_a_part_that_is_told_to_stop_ends_in_order(
    controller: Part, agents: dict[str, Part], part: str
) -> None:
    stopped = controller if part == "controller" else agents["west"]
    assert stopped.stop() == 0
    stopped.start()


def rounds_of(agent: Part) -> None:
    """Wait until an agent has scored a few more times."""
    for score in ("example_performance_score", "example_powerconsumption_score"):
        more_of(agent, "dynamic_scoring_requests_total", score_name=score, status="success")


def only_renewed(news: list[tuple[str, str]]) -> None:
    """At most one renewal of each object: validity is renewed only when half of it is over."""
    assert {verb for verb, _ in news} <= {"patch"}
    assert len(news) == len(set(news))


def more_of(part: Part, metric: str, **labels: str) -> None:
    """Wait until a part has done something a few more times."""
    enough = part.metric(metric, **labels) + ROUNDS
    until(f"{ROUNDS} more of {metric}", lambda: part.metric(metric, **labels) >= enough)


def writes(events: Iterable[Object]) -> list[tuple[str, str]]:
    """The writes among audit events, as verb and path, without renewals of the Lease."""
    return [
        (event["verb"], event["requestURI"].split("?")[0])
        for event in events
        if event["verb"] in WRITES
        and "httpx" not in event["userAgent"]
        and event["objectRef"]["resource"] != "leases"
    ]
