"""Why OCM selects a managed cluster no more: it left, was lost, tainted or unbound."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from dsf.api.conditions import conditions_of, find
from dsf.api.times import read_time
from dsf.api.untrusted_text import UntrustedName, UntrustedText
from dsf.kube.port import Object
from dsf.placement import (
    Obstacle,
    Toleration,
    read_taints,
    state_obstacle,
    taint_obstacle,
    untolerated,
)


def cluster_fault(name: str, cluster: Object | None) -> Obstacle | None:
    """Return what is wrong with the cluster of this name; None if nothing is."""
    if cluster is None:
        message = f"the hub has no cluster {UntrustedName(name)}: plan again"
        return Obstacle("ClusterLeft", message)
    available = find(conditions_of(cluster), "ManagedClusterConditionAvailable")
    lost = available is not None and available.get("status") != "True"
    if available is not None and lost and not cluster["metadata"].get("deletionTimestamp"):
        message = f"cluster {UntrustedName(name)} is not available: {said(available)}"
        return Obstacle("ClusterLost", message, since(available))
    return state_obstacle(cluster)


def taint_fault(
    name: str, cluster: Object, tolerations: Iterable[Toleration], *, now: datetime
) -> Obstacle | None:
    """Return the taint that keeps a Placement with these tolerations from a new selection."""
    taint = untolerated(read_taints(cluster), tolerations, selected=False, now=now)
    return taint_obstacle(name, taint) if taint else None


def said(condition: Mapping[str, Any]) -> str:
    """Return a condition's reason, and its message quoted."""
    message = UntrustedText(condition.get("message") or "")
    reason = UntrustedName(condition.get("reason") or "no reason")
    return f"{reason}, {message}" if message else f"{reason}"


def since(condition: Mapping[str, Any] | None) -> datetime | None:
    """Return the lastTransitionTime of a condition; None if there is none."""
    return read_time((condition or {}).get("lastTransitionTime"))
