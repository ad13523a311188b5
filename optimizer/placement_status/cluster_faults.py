"""Why OCM selects a managed cluster no more: it left, was lost, tainted or unbound."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.untrusted_text import UntrustedName, UntrustedText
from dsf.kube.port import Object
from dsf.placement.taints import Toleration, read_taints, untolerated


class ClusterFault(NamedTuple):
    """What is wrong with a cluster, in one word and in a sentence, and since when."""

    reason: str
    message: str
    since: datetime | None = None


def cluster_fault(name: str, cluster: Object | None) -> ClusterFault | None:
    """Return what is wrong with the cluster of this name; None if nothing is."""
    shown = UntrustedName(name)
    if cluster is None:
        return ClusterFault("ClusterLeft", f"the hub has no cluster {shown}: plan again")
    deleted = cluster["metadata"].get("deletionTimestamp")
    if deleted:
        message = f"cluster {shown} is being deleted: plan again"
        return ClusterFault("ClusterBeingDeleted", message, moment(deleted))
    available = find(conditions_of(cluster), "ManagedClusterConditionAvailable")
    if available is not None and available.get("status") != "True":
        message = f"cluster {shown} is not available: {said(available)}"
        return ClusterFault("ClusterLost", message, since(available))
    return None


def taint_fault(
    name: str, cluster: Object, tolerations: Iterable[Toleration], *, now: datetime
) -> ClusterFault | None:
    """Return the taint that keeps a Placement with these tolerations from a new selection."""
    taint = untolerated(read_taints(cluster), tolerations, selected=False, now=now)
    if taint is None:
        return None
    message = f"cluster {UntrustedName(name)} has the taint {UntrustedText(taint)}"
    return ClusterFault("ClusterTainted", message, taint.added)


def said(condition: Mapping[str, Any]) -> str:
    """Return a condition's reason, and its message quoted."""
    message = UntrustedText(condition.get("message") or "")
    reason = UntrustedName(condition.get("reason") or "no reason")
    return f"{reason}, {message}" if message else f"{reason}"


def since(condition: Mapping[str, Any] | None) -> datetime | None:
    """Return the lastTransitionTime of a condition; None if there is none."""
    return moment((condition or {}).get("lastTransitionTime"))


def moment(text: object) -> datetime | None:
    """Return a time of the Kubernetes API; None for anything else."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
