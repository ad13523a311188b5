"""OCM's placement controller decides by the scores that AddOnPlacementScores carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.eventually import until

if TYPE_CHECKING:
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

V1ALPHA1 = "cluster.open-cluster-management.io/v1alpha1"
V1BETA1 = "cluster.open-cluster-management.io/v1beta1"


def publish(hub: Hub, cluster: str, resource: str, value: int) -> None:
    score = {
        "apiVersion": V1ALPHA1,
        "kind": "AddOnPlacementScore",
        "metadata": {"name": resource, "namespace": cluster},
    }
    hub.apply(score)
    status = {"scores": [{"name": "fitness", "value": value}]}
    hub.api.apply({**score, "status": status}, subresource="status")


def best_by(resource: str, namespace: str) -> dict[str, object]:
    """A Placement of one cluster with one score as its only prioritizer."""
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": "fitness"}}
    configurations = [{"scoreCoordinate": coordinate, "weight": 1}]
    return {
        "apiVersion": V1BETA1,
        "kind": "Placement",
        "metadata": {"name": "best", "namespace": namespace},
        "spec": {
            "numberOfClusters": 1,
            "clusterSets": ["global"],
            "prioritizerPolicy": {"mode": "Exact", "configurations": configurations},
        },
    }


def decided(hub: Hub, namespace: str) -> list[str]:
    labels = "cluster.open-cluster-management.io/placement=best"
    decisions = hub.api.list(V1BETA1, "PlacementDecision", namespace, labels=labels)
    return [
        entry["clusterName"]
        for decision in decisions
        for entry in decision.get("status", {}).get("decisions", [])
    ]


def test_the_better_score_wins_either_way(
    hub: Hub, east: ManagedCluster, west: ManagedCluster, bound_namespace: str
) -> None:
    publish(hub, east.name, "race", 20)
    publish(hub, west.name, "race", 80)
    hub.apply(best_by("race", bound_namespace))
    until("west to win", lambda: decided(hub, bound_namespace) == ["west"])

    publish(hub, east.name, "race", 100)
    until("east to win", lambda: decided(hub, bound_namespace) == ["east"])


def test_a_negative_score_loses_against_a_missing_one(
    hub: Hub, east: ManagedCluster, west: ManagedCluster, bound_namespace: str
) -> None:
    publish(hub, east.name, "burden", -50)
    hub.apply(best_by("burden", bound_namespace))
    until("one without a score to win", lambda: decided(hub, bound_namespace) not in ([], ["east"]))
