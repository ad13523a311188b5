"""What the controller keeps of ManagedClusters and of the add-on on each of them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api.conditions import find
from dsf.kube.port import Object

NamespacedName = tuple[str, str]
CLUSTER_UNAVAILABLE = "ClusterUnavailable"
_MESSAGE_LIMIT = 500


@dataclass(frozen=True, slots=True)
class ClusterFailure:
    """Something on a managed cluster that is not as it should be; `since` is an RFC 3339 time.

    Other words for the same are no news: they may hold a number that changes with every round.
    """

    reason: str
    message: str = field(compare=False)
    since: str = ""


@dataclass(frozen=True, slots=True)
class ManagedCluster:
    """A ManagedCluster."""

    name: str
    accepted: bool = True
    leaving: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    failure: ClusterFailure | None = None


@dataclass(frozen=True, slots=True)
class AddOn:
    """The add-on on one managed cluster."""

    leaving: bool = False
    failure: ClusterFailure | None = None


def read_managed_cluster(obj: Object) -> ManagedCluster:
    """Read a ManagedCluster: cluster.open-cluster-management.io/v1."""
    labels = obj["metadata"].get("labels") or {}
    return ManagedCluster(
        name=str(obj["metadata"]["name"]),
        accepted=bool((obj.get("spec") or {}).get("hubAcceptsClient")),
        leaving=is_leaving(obj),
        labels={sys.intern(str(key)): sys.intern(str(value)) for key, value in labels.items()},
        failure=_unavailable(obj, "ManagedClusterConditionAvailable", CLUSTER_UNAVAILABLE),
    )


def read_add_on(obj: Object) -> AddOn:
    """Read a ManagedClusterAddOn: addon.open-cluster-management.io/v1alpha1."""
    return AddOn(is_leaving(obj), _unavailable(obj, "Available", "AddOnUnavailable"))


def is_leaving(obj: Object) -> bool:
    """Tell whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


def _unavailable(obj: Object, type_: str, reason: str) -> ClusterFailure | None:
    """Return the trouble where a condition is there and not True: Unknown means out of touch."""
    condition = find((obj.get("status") or {}).get("conditions") or [], type_)
    if condition is None or condition.get("status") == "True":
        return None
    return failure_of(reason, condition)


def failure_of(reason: str, condition: Mapping[str, Any]) -> ClusterFailure:
    """Return the failure that a condition reports; its message is cut to 500 characters."""
    message = str(condition.get("message") or condition.get("reason") or "")
    since = str(condition.get("lastTransitionTime") or "")
    return ClusterFailure(sys.intern(reason), sys.intern(message[:_MESSAGE_LIMIT]), since)
