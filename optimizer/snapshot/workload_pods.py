"""The Pods of a workload on a cluster, as its ManifestWork and the cluster's NodeInventory tell.

A ManifestWork tells of manifests that have feedback rules, by the names of OCM's well-known status
(ocm v1.2.1, pkg/work/spoke/statusfeedback/rules/rule.go) or by JSONPaths with the same names. A
NodeInventory tells of all Pods of a ManifestWork, and why some are pending.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from dsf.api.conditions import find, is_true
from dsf.api.crd.inventory_times import InventoryTimes
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import UntrustedName, UntrustedText
from dsf.kube.port import Object
from optimizer.domain.fleet import Workload
from optimizer.domain.issue import Issue
from optimizer.snapshot.capacity.node_inventories import by_cluster
from optimizer.snapshot.capacity.pod_templates import (
    KINDS_WITH_PODS,
    LASTING,
    manifests_of,
    work_template,
)
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation

UNSCHEDULABLE = "Unschedulable"
"""The reason of a Pod that kube-scheduler finds no node for (`core/v1` PodReasonUnschedulable)."""

PODS_PENDING = "PodsPending"
"""The reason of a landing and of an issue: something keeps Pods from running."""

_MOST_PODS = 1_000_000
"""A larger count of a cluster is taken to be this one."""

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


class InventoriedWorks(NamedTuple):
    """The Pods that an inventory lists by ManifestWork; `complete`: others have none."""

    works: Mapping[str, Mapping[str, Any]] = {}
    complete: bool = False


UNKNOWN = InventoriedWorks()
"""Of a cluster without an inventory."""


def inventoried_works(
    inventories: Iterable[Object] | None, now: datetime
) -> dict[str, InventoriedWorks]:
    """Return what NodeInventories list of ManifestWorks, by cluster.

    One that has expired lists nothing. One that is not Complete may leave out works, or
    may not know whose Pods are.
    """
    found = dict[str, InventoriedWorks]()
    for cluster, obj in by_cluster(inventories).items():
        if (times := InventoryTimes.of(obj)) and times.relied_on(now):
            works = {str(item.get("name")): item for item in obj["status"].get("works") or ()}
            found[cluster] = InventoriedWorks(works, is_true(obj, "Complete"))
    return found


def reported_pods(
    replica_set: Object, work: Object | None, inventoried: InventoriedWorks
) -> PodCounts | None:
    """Return the Pods of a workload on a cluster; None if nobody tells.

    Where both tell, the one counts by which more Pods are missing: each may be some seconds old.
    """
    told = (inventoried_pods(replica_set, inventoried), work and _fed_back(replica_set, work))
    found = [item for item in told if item]
    if not found:
        return None
    short = max(found, key=lambda item: item.wanted - item.ready)
    pending = max(found, key=lambda item: item.pending)
    said = pending if pending.pending else short
    return said._replace(ready=short.ready, wanted=short.wanted)


def has_pods(replica_set: Object) -> bool:
    """Return whether a workload starts Pods by kinds of Kubernetes."""
    return any(item.get("kind") in KINDS_WITH_PODS for item in manifests_of(replica_set))


def inventoried_pods(replica_set: Object, inventoried: InventoriedWorks) -> PodCounts | None:
    """Return what an inventory says of a workload's Pods; None if it says nothing of them.

    Finished Pods are not listed, nor are those of kinds whose Pods have controllers that another
    controller made.
    """
    listed = (item for item in manifests_of(replica_set) if item.get("kind") in LASTING)
    stated = sum(_replicas(item) or 0 for item in listed)
    own = inventoried.works.get(name_of(replica_set))
    if own is None:
        return PodCounts(0, stated) if stated and inventoried.complete else None
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


class PendingWorkloads(NamedTuple):
    """Workloads with the clusters where their Pods have lacked a node for longer than a grace.

    `issues`: one for each workload and cluster. `lasts`: seconds until the next grace ends.
    """

    workloads: tuple[Workload, ...]
    issues: tuple[Issue, ...]
    lasts: float


def pending_workloads(
    workloads: Sequence[Workload], observation: Observation, grace_seconds: float
) -> PendingWorkloads:
    """Return which workloads' Pods are pending where they are placed, by what inventories tell."""
    now, issues, found = observation.observed_at, list[Issue](), list[Workload]()
    inventoried = inventoried_works(observation.inventories, now)
    replica_sets = {name_of(obj): obj for obj in observation.workloads}
    lasts = math.inf
    for workload in workloads:
        pending = list[tuple[str, float]]()
        for cluster in filter(inventoried.__contains__, workload.current):
            pods = inventoried_pods(replica_sets[workload.name], inventoried[cluster])
            if pods is None or pods.since is None or not pods.is_unschedulable:
                continue
            left = grace_seconds - (now - pods.since).total_seconds()
            if left > 0:
                lasts = min(lasts, left)
                continue
            pending.append((cluster, pods.ready / max(pods.wanted, 1)))
            issues.append(_pending_issue(workload.name, cluster, pods, pods.since))
        found.append(replace(workload, pending=tuple(pending)) if pending else workload)
    return PendingWorkloads(tuple(found), tuple(issues), lasts)


def _pending_issue(workload: str, cluster: str, pods: PodCounts, since: datetime) -> Issue:
    message = (
        f"workload {UntrustedName(workload)}: its Pods on cluster {UntrustedName(cluster)} have"
        f" lacked a node since {rfc3339(since)}, so the place is worth as much as the"
        f" {pods.ready} of {pods.wanted} that are ready: {UntrustedText(pods.message)}"
    )
    return Issue(reason=PODS_PENDING, message=message, workload=workload, cluster=cluster)


def _fed_back(replica_set: Object, work: Object) -> PodCounts | None:
    """Return what the status feedback of a ManifestWork says of Pods; None if it says nothing."""
    stated = {_identity(item): _replicas(item) for item in manifests_of(replica_set)}
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
    for config in work_template(replica_set).get("manifestConfigs") or ():
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


def _identity(manifest: Object) -> tuple[Any, str, Any]:
    metadata = manifest.get("metadata") or {}
    return manifest.get("kind"), metadata.get("namespace") or "", metadata.get("name")


def _replicas(manifest: Object) -> int | None:
    """Return how many Pods a manifest always wants; None if it does not say."""
    stated = (manifest.get("spec") or {}).get("replicas")
    if isinstance(stated, int):
        return _count(stated)
    return 1 if manifest.get("kind") in LASTING else None


def _count(value: object) -> int:
    return min(max(value, 0), _MOST_PODS) if isinstance(value, int) else 0
