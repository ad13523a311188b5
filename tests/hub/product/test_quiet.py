"""Where nothing changes nothing is written, on a server that fills in defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..harness.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..harness.api import Object
    from ..harness.hub import Hub
    from .parts import Part

API = "dynamic-scoring.open-cluster-management.io/v1alpha1"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
ROUNDS = 4


def test_an_unchanged_resync_writes_nothing(
    hub: Hub, framework: str, controller: Part, scored: dict[tuple[str, str], Object]
) -> None:
    for kind in ("DynamicScorer", "DynamicScoringConfig"):
        for obj in hub.api.list(API, kind, framework):
            hub.api.wait_condition(API, kind, obj["metadata"]["name"], "Ready", framework)
    user = f"system:serviceaccount:{framework}:dynamic-scoring-controller"
    before = versions(hub, framework), writes(hub.audited(user))
    more_of(controller, "dsf_reconcile_total", controller="fleet", result="success")
    more_of(controller, "dsf_hub_probes_total", result="ok")
    assert (versions(hub, framework), writes(hub.audited(user))) == before


def test_unchanged_scores_are_not_written_again(
    hub: Hub, agents: dict[str, Part], scored: dict[tuple[str, str], Object]
) -> None:
    """Only a validity that is half over is renewed: of each object at most once meanwhile."""
    name = "dynamic-scoring-framework"
    user = f"system:open-cluster-management:cluster:east:addon:{name}:agent:{name}-agent"
    before = writes(hub.audited(user))
    for score in ("example_performance_score", "nearness_score"):
        more_of(
            agents["east"],
            "dynamic_scoring_requests_total",
            score_name=score,
            status="success",
        )
    news = writes(hub.audited(user))[len(before) :]
    assert len(news) == len(set(news)) < ROUNDS


def more_of(part: Part, metric: str, **labels: str) -> None:
    """Wait until a part has done something a few more times."""
    enough = part.metric(metric, **labels) + ROUNDS
    until(f"{ROUNDS} more of {metric}", lambda: part.metric(metric, **labels) >= enough)


def versions(hub: Hub, namespace: str) -> list[str]:
    """The resource versions of what the controller writes a status to."""
    return [
        obj["metadata"]["resourceVersion"]
        for kind in ("DynamicScorer", "DynamicScoringConfig")
        for obj in hub.api.list(API, kind, namespace)
    ]


def writes(events: Iterable[Object]) -> list[tuple[str, str]]:
    """The writes among audit events: verb and path."""
    return [
        (event["verb"], event["requestURI"].split("?")[0])
        for event in events
        if event["verb"] in WRITES and "httpx" not in event["userAgent"]
    ]
