"""Which managed clusters OCM's placement controller can select, and what keeps it from others.

It looks at deletion, cluster sets and taints. A cluster that the hub does not accept, or that never
joined, gets no work either. The simulated OCM and the optimizer decide by the same functions, which
are pure: the current time is an argument. May import dsf.kube's pure modules and dsf.api.

Sources: plugins/tainttoleration of OCM's placement controller, v1.2.1;
https://open-cluster-management.io/docs/concepts/content-placement/placement/#taintstolerations;
pkg/apis/cluster/v1beta2 of open-cluster-management.io/sdk-go;
https://open-cluster-management.io/docs/concepts/cluster-inventory/managedclusterset/
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import UntrustedName, listed, plain
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, Requirement, label_selector_of

UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
"""Key of the taint of a cluster whose agent does not renew its lease."""

UNAVAILABLE = "cluster.open-cluster-management.io/unavailable"
"""Key of the taint of a cluster that reports that it is not available."""


class Taint(NamedTuple):
    """A taint, and since when the cluster has it; `added` is None if the cluster does not say."""

    key: str
    effect: str = "NoSelect"
    value: str = ""
    added: datetime | None = None

    def __str__(self) -> str:
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class Toleration(NamedTuple):
    """Which taints are tolerated; an empty key or effect stands for all of them.

    `operator`: Equal (the value must be the taint's) or Exists. `seconds`: for how long after the
    taint was added; None means without end.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def matches(self, taint: Taint) -> bool:
        """Return whether it is about this taint, however old that is."""
        return (
            self.effect in ("", taint.effect)
            and self.key in ("", taint.key)
            and (self.operator == "Exists" or self.value == taint.value)
        )

    def tolerates(self, taint: Taint, now: datetime) -> bool:
        """Return whether it tolerates a taint now. A taint without a time was added long ago."""
        if self.seconds is None or not self.matches(taint):
            return self.matches(taint)
        age = None if taint.added is None else (now - taint.added).total_seconds()
        return age is not None and age < self.seconds

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The toleration as it stands in a Placement; fields with defaults are left out."""
        stated = {
            "key": plain(self.key),
            "operator": self.operator,
            "value": plain(self.value),
            "effect": self.effect,
            "tolerationSeconds": self.seconds,
        }
        return {name: value for name, value in stated.items() if value not in ("", None)}


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], *, selected: bool, now: datetime
) -> Taint | None:
    """Return the first taint that keeps a Placement from selecting the cluster, or None.

    `selected`: the Placement selects the cluster now, which NoSelectIfNew exempts. PreferNoSelect
    never keeps a Placement from selecting a cluster.
    """
    known = tuple(tolerations)
    for taint in taints:
        exempt = taint.effect == "PreferNoSelect" or (taint.effect == "NoSelectIfNew" and selected)
        if not exempt and not tolerates(known, taint, now=now):
            return taint
    return None


def tolerates(tolerations: Iterable[Toleration], taint: Taint, *, now: datetime) -> bool:
    """Return whether any toleration tolerates a taint now."""
    return any(item.tolerates(taint, now) for item in tolerations)


def read_taints(cluster: Mapping[str, Any]) -> tuple[Taint, ...]:
    """Return the taints of a ManagedCluster."""
    return tuple(
        Taint(
            UntrustedName(item["key"]),
            item["effect"],
            UntrustedName(item.get("value") or ""),
            read_time(item.get("timeAdded")),
        )
        for item in (cluster.get("spec") or {}).get("taints") or ()
    )


def read_tolerations(spec: Mapping[str, Any]) -> tuple[Toleration, ...]:
    """Return the tolerations of the `spec` of a Placement."""
    return tuple(
        Toleration(
            item.get("key") or "",
            item.get("operator") or "Equal",
            item.get("value") or "",
            item.get("effect") or "",
            item.get("tolerationSeconds"),
        )
        for item in spec.get("tolerations") or ()
    )


def misconfigured(tolerations: Iterable[Toleration]) -> str:
    """Return what is wrong with tolerations, as OCM words it; empty if nothing is."""
    for item in tolerations:
        if not item.key and item.operator != "Exists":
            return "If the key is empty, operator must be Exists."
        if item.operator == "Exists" and item.value:
            return "If the operator is Exists, the value should be empty."
    return ""


SET_LABEL = "cluster.open-cluster-management.io/clusterset"
"""The label that names the one exclusive cluster set of a managed cluster."""

DEFAULT_SETS: Mapping[str, Mapping[str, Any]] = {
    "default": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}},
    "global": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
}
"""The specs of the cluster sets that every OCM hub has, by name."""


def sets_of(cluster: Object, cluster_sets: Iterable[Object]) -> frozenset[str]:
    """Return the names of the cluster sets that a managed cluster belongs to."""
    labels = cluster["metadata"].get("labels") or {}
    return frozenset(
        item["metadata"]["name"] for item in cluster_sets if _selector(item).matches(labels)
    )


def bound_sets(bindings: Iterable[Object], cluster_sets: Iterable[Object]) -> frozenset[str]:
    """Return the cluster sets that the bindings of a namespace name and that exist."""
    existing = {item["metadata"]["name"] for item in cluster_sets}
    return frozenset(existing & {item["metadata"]["name"] for item in bindings})


def _selector(cluster_set: Object) -> LabelSelector:
    """Return the selector of a cluster set; one that can't be parsed selects by the set's label."""
    name = cluster_set["metadata"]["name"]
    spec = (cluster_set.get("spec") or {}).get("clusterSelector") or {}
    if spec.get("selectorType") == "LabelSelector":
        parsed = label_selector_of(spec.get("labelSelector") or {})
        if isinstance(parsed, LabelSelector):
            return parsed
    return _exclusive(name)


@lru_cache(1024)
def _exclusive(cluster_set: str) -> LabelSelector:
    return LabelSelector((Requirement(SET_LABEL, "In", frozenset([cluster_set])),))


_LOST = {
    UNAVAILABLE: "the cluster reports that it is not available: look at its klusterlet",
    UNREACHABLE: "its agent does not renew its lease: look at its klusterlet and its network",
}


class Obstacle(NamedTuple):
    """Why a cluster is not selected; `message` names it and says what to do. `since` if known."""

    reason: str
    message: str
    since: datetime | None = None


def state_obstacle(cluster: Object) -> Obstacle | None:
    """Return which state of a managed cluster keeps every Placement from it; None without any."""
    name, metadata = UntrustedName(cluster["metadata"]["name"]), cluster["metadata"]
    if metadata.get("deletionTimestamp"):
        since = read_time(metadata["deletionTimestamp"])
        return Obstacle("ClusterBeingDeleted", f"cluster {name} is being deleted", since)
    if (cluster.get("spec") or {}).get("hubAcceptsClient") is False:
        remedy = f"run `clusteradm accept --clusters {name}`"
        message = f"cluster {name} is not accepted by the hub: {remedy}"
        return Obstacle("ClusterNotAccepted", message)
    joined = find(conditions_of(cluster), "ManagedClusterJoined")
    if joined is not None and joined.get("status") != "True":
        message = f"cluster {name} has not joined the hub: look at its klusterlet"
        since = read_time(joined.get("lastTransitionTime"))
        return Obstacle("ClusterNotJoined", message, since)
    return None


def sets_obstacle(
    cluster: str, member: Collection[str], bound: Collection[str], namespace: str
) -> Obstacle | None:
    """Return that none of the cluster sets of a cluster is bound to a namespace; None if one is.

    `member`: the sets that the cluster belongs to. `bound`: those that the namespace is bound to.
    """
    if set(member) & set(bound):
        return None
    # Binding the set of all clusters is the last thing that an administrator wants.
    names = sorted(member, key=lambda name: (name == "global", name))
    named = f"cluster set {' or '.join(map(str, names))}" if names else "a cluster set that has it"
    command = f"clusteradm clusterset bind {names[0] if names else 'SET'} --namespace {namespace}"
    return Obstacle(
        "ClusterSetNotBound",
        f"cluster {UntrustedName(cluster)} is in no cluster set that is bound to namespace"
        f" {namespace}: bind {named}, `{command}`",
    )


def sets_asked_obstacle(
    cluster: str, eligible: Collection[str], asked: Collection[str]
) -> Obstacle | None:
    """Return that a request's cluster sets leave out a cluster of the eligible sets."""
    if not asked or set(eligible) & set(asked):
        return None
    return Obstacle(
        "ClusterSetNotAsked",
        f"cluster {UntrustedName(cluster)} is in cluster set"
        f" {' and '.join(map(str, sorted(eligible)))}, and the request's clusterSets names only"
        f" {listed(sorted(asked))}",
    )


def taint_obstacle(cluster: str, taint: Taint) -> Obstacle:
    """Return that a cluster has a taint which is not tolerated."""
    since = f" since {rfc3339(taint.added)}" if taint.added else ""
    remedy = _LOST.get(taint.key, "remove the taint, or tolerate it in the request's tolerations")
    message = f"cluster {UntrustedName(cluster)} has the taint {taint}{since}"
    return Obstacle("ClusterTainted", f"{message}: {remedy}", taint.added)
