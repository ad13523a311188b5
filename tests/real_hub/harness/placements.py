"""Publish scores as an agent does, and read what OCM's placement controller decided by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsf.api.names import score_object_name

if TYPE_CHECKING:
    from .hub import Hub

SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
DECISION = ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision")
OF_PLACEMENT = "cluster.open-cluster-management.io/placement"


def publish_score(
    hub: Hub, score: str, entry: str, *, expired: bool = False, **values: int
) -> None:
    """Publish one entry of a score on each of some clusters."""
    for cluster, value in values.items():
        metadata = {"name": score_object_name(score), "namespace": cluster}
        obj = {"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata}
        hub.apply(obj)
        until = "2026-01-01T00:00:00Z" if expired else "2099-01-01T00:00:00Z"
        status = {"scores": [{"name": entry, "value": value}], "validUntil": until}
        hub.api.apply({**obj, "status": status}, subresource="status")


def withdraw_score(hub: Hub, score: str, *clusters: str) -> None:
    """Delete a score of some clusters, if it exists."""
    for cluster in clusters:
        hub.api.delete(*SCORE, score_object_name(score), cluster)


def decided(hub: Hub, placement: str, namespace: str) -> list[str]:
    """The clusters that a Placement selects, in the order of its PlacementDecisions."""
    return [
        entry["clusterName"]
        for decision in hub.api.list(*DECISION, namespace, labels=f"{OF_PLACEMENT}={placement}")
        for entry in decision.get("status", {}).get("decisions", [])
    ]
