"""OCM's placement controller decides by the very files of docs/scores-in-a-placement.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from dsf.api.names import score_object_name
from sample_scorers.static.scores_file import SHIPPED
from tests.eventually import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

FILES = Path(__file__).parents[2] / "docs/examples/placement"
PLACE = "placement-example"
SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
DECISION = ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision")
TABLES = {table["path"]: table for table in yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))}
CARBON, COST = TABLES["/carbon"]["scoreName"], TABLES["/cost"]["scoreName"]
DEVICE = "3g.48gb"


@pytest.fixture(scope="module")
def namespace(hub: Hub) -> Iterator[None]:
    """The page's namespace."""
    hub.apply((FILES / "namespace.yaml").read_text(encoding="utf-8"))
    yield
    hub.api.delete("v1", "Namespace", PLACE)


@pytest.fixture
def place(hub: Hub, namespace: None, east: ManagedCluster, west: ManagedCluster) -> Iterator[None]:
    """The page's namespace, without any score before and after."""
    yield
    for cluster in (east, west):
        for score in (CARBON, COST):
            if hub.api.find(*SCORE, score_object_name(score), cluster.name):
                hub.api.delete(*SCORE, score_object_name(score), cluster.name)


def publish(hub: Hub, score: str, entry: str, *, expired: bool = False, **values: int) -> None:
    """Publish one entry of a score on each of some clusters."""
    for cluster, value in values.items():
        metadata = {"name": score_object_name(score), "namespace": cluster}
        obj = {"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata}
        hub.apply(obj)
        until = "2026-01-01T00:00:00Z" if expired else "2099-01-01T00:00:00Z"
        status = {"scores": [{"name": entry, "value": value}], "validUntil": until}
        hub.api.apply({**obj, "status": status}, subresource="status")


def decided(hub: Hub, placement: str) -> list[str]:
    labels = f"cluster.open-cluster-management.io/placement={placement}"
    return [
        entry["clusterName"]
        for decision in hub.api.list(*DECISION, PLACE, labels=labels)
        for entry in decision.get("status", {}).get("decisions", [])
    ]


@pytest.mark.usefixtures("place")
def test_the_greenest_cluster_is_selected_and_an_expired_score_counts_nothing(hub: Hub) -> None:
    publish(hub, CARBON, CARBON, east=94, west=52)
    hub.apply((FILES / "greenest.yaml").read_text(encoding="utf-8"))
    until("the greenest", lambda: decided(hub, "greenest") == ["east"])
    publish(hub, CARBON, CARBON, west=95)
    until("the one that became greener", lambda: decided(hub, "greenest") == ["west"])
    publish(hub, CARBON, CARBON, west=95, expired=True)
    until("the one whose score is valid", lambda: decided(hub, "greenest") == ["east"])

    def warned() -> bool:
        events = hub.api.list("v1", "Event", PLACE)
        return any("expired" in event["message"] for event in events)

    until("an Event that names the expired score", warned)
    publish(hub, CARBON, CARBON, east=-1)
    until("a score below 0 to lose against none", lambda: decided(hub, "greenest") == ["west"])


@pytest.mark.usefixtures("place")
def test_scores_are_weighed_and_a_small_change_moves_nothing(hub: Hub) -> None:
    publish(hub, COST, DEVICE, east=60, west=80)
    publish(hub, CARBON, CARBON, east=94, west=52)
    hub.apply((FILES / "cheap-and-green.yaml").read_text(encoding="utf-8"))
    # 2 x 60 + 94 = 214 against 2 x 80 + 52 = 212
    until("the better sum", lambda: decided(hub, "cheap-and-green") == ["east"])
    publish(hub, COST, DEVICE, west=100)
    hub.apply((FILES / "greenest.yaml").read_text(encoding="utf-8"))
    publish(hub, CARBON, CARBON, west=95)
    until("OCM to have read the scores", lambda: decided(hub, "greenest") == ["west"])
    # 214 + 100 for being selected against 2 x 100 + 95 = 295
    assert decided(hub, "cheap-and-green") == ["east"]
    publish(hub, COST, DEVICE, east=49)
    # 2 x 49 + 94 + 100 = 292
    until("a change that outweighs a move", lambda: decided(hub, "cheap-and-green") == ["west"])
