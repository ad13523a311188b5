"""The Pods of a workload on a cluster, as its ManifestWork and the cluster's NodeInventory tell.

A ManifestWork tells of manifests that have feedback rules, by the names of OCM's well-known status
(ocm v1.2.1, pkg/work/spoke/statusfeedback/rules/rule.go) or by JSONPaths with the same names. A
NodeInventory tells of all Pods of a ManifestWork, and why some are pending.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from dsf.api.conditions import find
from dsf.api.times import read_time
from dsf.kube.port import Object
from optimizer.snapshot.object_readers import name_of

UNSCHEDULABLE = "Unschedulable"
"""The reason of a Pod that kube-scheduler finds no node for (`core/v1` PodReasonUnschedulable)."""

_MOST_PODS = 1_000_000
"""A larger count of a cluster is taken to be this one."""

_LASTING = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})
"""Kinds that always have `spec.replicas` Pods, 1 by default."""

_WITH_PODS = _LASTING | {"DaemonSet", "Job", "CronJob", "Pod"}

_WELL_KNOWN: Mapping[str, frozenset[str]] = {
    "Deployment": frozenset({"ReadyReplicas", "Replicas"}),
    "DaemonSet": frozenset({"NumberReady", "DesiredNumberScheduled"}),
    "Pod": frozenset({"PodReady", "PodPhase"}),
}
"""What OCM reports of a kind by a rule WellKnownStatus, as far as it counts Pods that go on."""


class PodCounts(NamedTuple):
    """The Pods of a workload on a cluster.

    `wanted`: by the manifests; where they don't say it, the Pods that there are. `reason`,
    `message`: why the oldest pending one is; `since`: since when, or since when no more are ready.
    """

    ready: int
    wanted: int
    pending: int = 0
    reason: str = ""
    message: str = ""
    since: datetime | None = None

    @property
    def all_ready(self) -> bool:
        """Whether all are ready, and none is pending besides."""
        return not self.pending and self.ready >= self.wanted

    @property
    def is_unschedulable(self) -> bool:
        """Whether Pods that are wanted lack a node: not those that an update starts besides."""
        short = self.ready < max(self.wanted, 1)
        return bool(self.pending) and self.reason == UNSCHEDULABLE and short


def reported_pods(
    replica_set: Object, work: Object | None, inventory: Object | None, now: datetime
) -> PodCounts | None:
    """Return the Pods of a workload on a cluster; None if nobody tells.

    Where both tell, the one counts by which more Pods are missing: each may be some seconds old.
    """
    told = (inventoried_pods(replica_set, inventory, now), work and _fed_back(replica_set, work))
    found = [item for item in told if item]
    if not found:
        return None
    short = max(found, key=lambda item: item.wanted - item.ready)
    pending = max(found, key=lambda item: item.pending)
    said = pending if pending.pending else short
    return said._replace(ready=short.ready, wanted=short.wanted)


def has_pods(replica_set: Object) -> bool:
    """Return whether a workload starts Pods by kinds of Kubernetes."""
    return any(item.get("kind") in _WITH_PODS for item in _manifests(replica_set))


def inventoried_pods(
    replica_set: Object, inventory: Object | None, now: datetime
) -> PodCounts | None:
    """Return what a NodeInventory says of a workload's Pods; None if it says nothing of them.

    An inventory that is past its validUntil says nothing. One that lists ManifestWorks, and not
    this one, says that it has no Pods; finished Pods are not listed.
    """
    status: Mapping[str, Any] = (inventory or {}).get("status") or {}
    until = read_time(status.get("validUntil"))
    works = status.get("works")
    if works is None or until is None or until <= now:
        return None
    stated = sum(_replicas(item) or 0 for item in _manifests(replica_set))
    name = name_of(replica_set)
    own = next((item for item in works if item.get("name") == name), None)
    if own is None:
        return PodCounts(0, stated) if stated else None
    ready, pending = _count(own.get("ready")), _count(own.get("pending"))
    running = _count(own.get("running"))
    return PodCounts(
        ready,
        max(stated, ready) if stated else running + pending,
        pending,
        str(own.get("pendingReason") or "") if pending else "",
        str(own.get("pendingMessage") or "") if pending else "",
        read_time(own.get("pendingSince")) if pending else None,
    )


def _fed_back(replica_set: Object, work: Object) -> PodCounts | None:
    """Return what the status feedback of a ManifestWork says of Pods; None if it says nothing."""
    stated = {_identity(item): _replicas(item) for item in _manifests(replica_set)}
    reported = ((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or ()
    found = list[PodCounts]()
    for item in reported:
        meta: Mapping[str, Any] = item.get("resourceMeta") or {}
        synced = find(item.get("conditions") or (), "StatusFeedbackSynced") or {}
        if synced.get("status") != "True":
            continue
        asked = frozenset(_asked(replica_set, meta))
        values = _values(item)
        since = read_time(synced.get("lastTransitionTime"))
        identity = (meta.get("kind"), meta.get("namespace") or "", meta.get("name"))
        if asked & {"ReadyReplicas", "NumberReady"}:
            ready = _count(values.get("ReadyReplicas", values.get("NumberReady")))
            wanted = stated.get(identity)
            if wanted is None:
                wanted = _count(values.get("Replicas", values.get("DesiredNumberScheduled")))
            found.append(PodCounts(ready, wanted, since=since))
        elif "PodPhase" in asked and values.get("PodPhase") != "Succeeded":
            pending = values.get("PodPhase") == "Pending"
            found.append(PodCounts(values.get("PodReady") == "True", 1, pending, since=since))
    if not found:
        return None
    return PodCounts(
        sum(min(item.ready, item.wanted) for item in found),
        sum(item.wanted for item in found),
        sum(item.pending for item in found),
        since=max((i.since for i in found if i.since and i.ready < i.wanted), default=None),
    )


def _asked(replica_set: Object, meta: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the values that a workload asks its ManifestWorks for, of a manifest.

    As in OCM, the first configuration with rules that names the manifest counts.
    """
    for config in _template(replica_set).get("manifestConfigs") or ():
        named: Mapping[str, Any] = config.get("resourceIdentifier") or {}
        same = all(
            fnmatchcase(str(meta.get(key) or ""), str(named.get(key) or ""))
            for key in ("group", "resource", "namespace", "name")
        )
        if same and (rules := config.get("feedbackRules")):
            for rule in rules:
                if rule.get("type") == "WellKnownStatus":
                    yield from _WELL_KNOWN.get(str(meta.get("kind")), ())
                yield from (str(item.get("name")) for item in rule.get("jsonPaths") or ())
            return


def _values(manifest: Mapping[str, Any]) -> dict[str, Any]:
    found = ((manifest.get("statusFeedback") or {}).get("values")) or ()
    fields = {item.get("name"): item.get("fieldValue") or {} for item in found}
    return {name: value.get("integer", value.get("string")) for name, value in fields.items()}


def _template(replica_set: Object) -> Mapping[str, Any]:
    return (replica_set.get("spec") or {}).get("manifestWorkTemplate") or {}


def _manifests(replica_set: Object) -> list[Object]:
    found: list[Object] = (_template(replica_set).get("workload") or {}).get("manifests") or []
    return found


def _identity(manifest: Object) -> tuple[Any, str, Any]:
    metadata = manifest.get("metadata") or {}
    return manifest.get("kind"), metadata.get("namespace") or "", metadata.get("name")


def _replicas(manifest: Object) -> int | None:
    """Return how many Pods a manifest always wants; None if it does not say."""
    stated = (manifest.get("spec") or {}).get("replicas")
    if isinstance(stated, int):
        return _count(stated)
    return 1 if manifest.get("kind") in _LASTING else None


def _count(value: object) -> int:
    return min(max(value, 0), _MOST_PODS) if isinstance(value, int) else 0
