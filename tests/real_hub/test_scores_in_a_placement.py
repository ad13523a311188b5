"""OCM's placement controller decides by the very files of docs/how-to/scores-in-a-placement.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from sample_scorers.static.score import SHIPPED
from tests.eventually import until

from .harness.placements import decided, publish_score, withdraw_score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

FILES = Path(__file__).parents[2] / "docs/examples/placement"
PLACE = "placement-example"
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
    for score in (CARBON, COST):
        withdraw_score(hub, score, east.name, west.name)


def selected(hub: Hub, placement: str) -> list[str]:
    return decided(hub, placement, PLACE)


@pytest.mark.usefixtures("place")
def test_the_greenest_cluster_is_selected_and_an_expired_score_counts_nothing(hub: Hub) -> None:
    publish_score(hub, CARBON, CARBON, east=94, west=52)
    hub.apply((FILES / "greenest.yaml").read_text(encoding="utf-8"))
    until("the greenest", lambda: selected(hub, "greenest") == ["east"])
    publish_score(hub, CARBON, CARBON, west=95)
    until("the one that became greener", lambda: selected(hub, "greenest") == ["west"])
    publish_score(hub, CARBON, CARBON, west=95, expired=True)
    until("the one whose score is valid", lambda: selected(hub, "greenest") == ["east"])

    def warned() -> bool:
        events = hub.api.list("v1", "Event", PLACE)
        return any("expired" in event["message"] for event in events)

    until("an Event that names the expired score", warned)
    publish_score(hub, CARBON, CARBON, east=-1)
    until("one without a score to win", lambda: selected(hub, "greenest") not in ([], ["east"]))


@pytest.mark.usefixtures("place")
def test_scores_are_weighed_and_a_small_change_moves_nothing(hub: Hub) -> None:
    publish_score(hub, COST, DEVICE, east=60, west=80)
    publish_score(hub, CARBON, CARBON, east=94, west=52)
    hub.apply((FILES / "cheap-and-green.yaml").read_text(encoding="utf-8"))
    # 2 x 60 + 94 = 214 against 2 x 80 + 52 = 212
    until("the better sum", lambda: selected(hub, "cheap-and-green") == ["east"])
    publish_score(hub, COST, DEVICE, west=100)
    hub.apply((FILES / "greenest.yaml").read_text(encoding="utf-8"))
    publish_score(hub, CARBON, CARBON, west=95)
    until("OCM to have read the scores", lambda: selected(hub, "greenest") == ["west"])
    # 214 + 100 for being selected against 2 x 100 + 95 = 295
    assert selected(hub, "cheap-and-green") == ["east"]
    publish_score(hub, COST, DEVICE, east=49)
    # 2 x 49 + 94 + 100 = 292
    until("a change that outweighs a move", lambda: selected(hub, "cheap-and-green") == ["west"])
