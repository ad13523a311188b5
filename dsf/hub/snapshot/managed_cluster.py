"""What the controller keeps of ManagedClusters and of the add-on on each of them."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api.conditions import conditions_of, find
from dsf.kube.port import Object

NamespacedName = tuple[str, str]
CLUSTER_UNAVAILABLE = "ClusterUnavailable"
_MESSAGE_CHARACTERS = 500
"""Kept of a message: there may be one for each of 100,000 scores."""


@dataclass(frozen=True, slots=True)
class ClusterFailure:
    """Why no scores come from a managed cluster; `since` is an RFC 3339 time.

    Two failures that differ only in the message are equal: a message may hold a number that
    changes with every round, and each change would be written to the hub.
    """

    reason: str
    message: str = field(compare=False)
    since: str = ""


@dataclass(frozen=True, slots=True)
class ManagedCluster:
    """A ManagedCluster; `accepted` is its `spec.hubAcceptsClient`, `claims` its ClusterClaims."""

    name: str
    accepted: bool
    being_deleted: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    failure: ClusterFailure | None = None


@dataclass(frozen=True, slots=True)
class AddOn:
    """The ManagedClusterAddOn of the framework on one managed cluster."""

    being_deleted: bool
    failure: ClusterFailure | None


def read_managed_cluster(obj: Object) -> ManagedCluster:
    """Read a ManagedCluster: cluster.open-cluster-management.io/v1."""
    labels = obj["metadata"].get("labels") or {}
    claims = (obj.get("status") or {}).get("clusterClaims") or ()
    return ManagedCluster(
        name=str(obj["metadata"]["name"]),
        accepted=bool((obj.get("spec") or {}).get("hubAcceptsClient")),
        being_deleted=is_being_deleted(obj),
        labels=_interned(labels.items()),
        claims=_interned((each.get("name"), each.get("value")) for each in claims),
        failure=_unavailable(obj, "ManagedClusterConditionAvailable", CLUSTER_UNAVAILABLE),
    )


def _interned(pairs: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """Return texts that thousands of clusters have in common, each kept once."""
    return {sys.intern(str(key)): sys.intern(str(value)) for key, value in pairs}


def read_add_on(obj: Object) -> AddOn:
    """Read a ManagedClusterAddOn: addon.open-cluster-management.io/v1alpha1."""
    return AddOn(is_being_deleted(obj), _unavailable(obj, "Available", "AddOnUnavailable"))


def is_being_deleted(obj: Object) -> bool:
    """Tell whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


def _unavailable(obj: Object, type_: str, reason: str) -> ClusterFailure | None:
    """Return the failure if the condition exists and is not True; Unknown means lost contact."""
    condition = find(conditions_of(obj), type_)
    if condition is None or condition.get("status") == "True":
        return None
    return failure_of(reason, condition)


def failed(condition: Mapping[str, Any] | None, reason: str = "") -> ClusterFailure | None:
    """Return the failure if the condition exists and is False; by default with its own reason."""
    if condition is None or condition.get("status") != "False":
        return None
    return failure_of(reason or str(condition.get("reason") or condition.get("type")), condition)


def failure_of(reason: str, condition: Mapping[str, Any]) -> ClusterFailure:
    """Return the failure that a condition reports; its message is cut to 500 characters."""
    message = str(condition.get("message") or condition.get("reason") or "")
    since = str(condition.get("lastTransitionTime") or "")
    return ClusterFailure(sys.intern(reason), sys.intern(message[:_MESSAGE_CHARACTERS]), since)
