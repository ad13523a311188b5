"""How far OCM is with a workload on a cluster that its Placement names."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.names import WORK_PLACEMENT_LABEL
from dsf.api.times import read_time
from dsf.api.untrusted_text import UntrustedName, UntrustedText, counted
from dsf.kube.port import Object
from optimizer.follow.placement_status.hub_state import (
    Enforcement,
    HubState,
    ObservedPlacement,
    cluster_fault,
    said,
    since,
)
from optimizer.snapshot.object_readers import labels_of, name_of, not_enforced
from optimizer.snapshot.workload_pods import (
    PODS_PENDING,
    UNKNOWN,
    PodCounts,
    has_pods,
    reported_pods,
)
from optimizer.wire.placement_status import LandingState, ReportedPods

COMPLIANT = "Compliant"
NO_WORK, NO_REPORT = "NoManifestWork", "NotReported"
PODS_NOT_READY = "PodsNotReady"

_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons of pending Pods that nothing keeps from running."""


class Landing(NamedTuple):
    """A state, the reason for it, a sentence, since when it holds, and the Pods if they are known.

    The reason is OCM's, but for Pods.
    """

    state: LandingState
    reason: str
    message: str
    since: datetime | None = None
    pods: ReportedPods | None = None


def landing(
    workload: Object,
    placement: ObservedPlacement,
    cluster: str,
    enforcements: Iterable[Enforcement],
    hub: HubState,
) -> Landing:
    """Return the state of a workload on one cluster; `enforcements` are those of the cluster.

    The first thing that is waited for is named, in order: cluster, policy, claim, selection,
    delivery, Pods. A workload has landed if none is left, so that it runs and OCM leaves it
    running. Where nobody reports its Pods, it has landed once it is delivered: its message says so.
    """
    selected = cluster in placement.selected
    fault = (
        cluster_fault(cluster, hub.clusters.get(cluster))
        if selected
        else hub.fault(cluster, placement.tolerations)
    )
    if fault:
        return Landing("Refused", *fault)
    for enforcement in enforcements:
        waiting = _policy(enforcement, cluster, placement, hub)
        if waiting:
            return waiting
    waiting = _claims(placement, cluster, hub)
    if waiting or not selected:
        return waiting or _selection(placement, cluster)
    return _delivery(workload, placement, cluster, hub)


def _policy(
    enforcement: Enforcement, cluster: str, waiting: ObservedPlacement, hub: HubState
) -> Landing | None:
    """Return why a policy of the cluster keeps a workload waiting; None if it does not."""
    name = UntrustedName(enforcement.policy)
    policy = hub.policies.get(enforcement.policy)
    if policy is None:
        return Landing("Refused", "PolicyMissing", f"policy {name} does not exist")
    if why := not_enforced(policy):
        return Landing("Refused", why.reason, f"policy {name} {why.message}")
    selecting = hub.placements[enforcement.placement]
    if cluster not in selecting.selected:
        return _selection(selecting, cluster)
    compliance = hub.compliances.get((enforcement.policy, cluster), "Pending")
    if compliance != COMPLIANT:
        message = f"policy {name} is not compliant on the cluster"
        return Landing("WaitingForPolicy", compliance, message, since(waiting.satisfied))
    if not hub.compliance_is_current(enforcement):
        asked = hub.report_due_since(enforcement)
        what = (
            "it was bound to the cluster" if asked == enforcement.since else "its spec was written"
        )
        message = f"OCM has not reported on policy {name} since {what}"
        return Landing("WaitingForPolicy", NO_REPORT, message, asked)
    return None


def _claims(placement: ObservedPlacement, cluster: str, hub: HubState) -> Landing | None:
    for required in placement.claims.get(cluster, ()):
        value = hub.claim(cluster, required.key)
        if not required.matches({required.key: value} if value else {}):
            shown = UntrustedName(value or "missing")
            message = f"ClusterClaim {UntrustedName(required.key)} is {shown}"
            return Landing(
                "WaitingForClaim", value or "NoClaim", message, since(placement.satisfied)
            )
    return None


def _selection(placement: ObservedPlacement, cluster: str) -> Landing:
    """Return why a Placement that nothing holds back has not selected a cluster."""
    name, condition = UntrustedName(placement.name), placement.satisfied
    if condition is None:
        message = f"OCM has not decided Placement {name} yet"
        return Landing("Planned", "NotDecided", message)
    if condition.get("status") == "True":
        message = f"Placement {name} selected other clusters than {UntrustedName(cluster)}"
        return Landing("Refused", "NotSelected", message, since(condition))
    message = f"Placement {name}: {said(condition)}"
    return Landing("Refused", str(condition.get("reason") or ""), message, since(condition))


def _delivery(
    workload: Object, placement: ObservedPlacement, cluster: str, hub: HubState
) -> Landing:
    """Return whether the ManifestWork on a selected cluster is applied and available."""
    if hub.works is None:
        return _with_pods(_counted(workload, placement), workload, None, cluster, hub)
    name, work = name_of(workload), hub.works.get((name_of(workload), cluster))
    if work is None:
        message = f"OCM has selected the cluster, which has no ManifestWork {UntrustedName(name)}"
        decided = placement.decided or since(placement.satisfied)
        return Landing("Planned", NO_WORK, message, decided)
    if work["metadata"].get("deletionTimestamp"):
        gone = read_time(str(work["metadata"]["deletionTimestamp"]))
        return Landing("Planned", "Terminating", "its ManifestWork is being deleted", gone)
    owner = labels_of(work).get(WORK_PLACEMENT_LABEL, placement.name)
    if owner != placement.name:
        message = f"its ManifestWork is that of Placement {UntrustedName(owner)}"
        return Landing("Planned", "OfAnotherPlacement", message)
    return _with_pods(_work_state(work), workload, work, cluster, hub)


def _with_pods(
    found: Landing, workload: Object, work: Object | None, cluster: str, hub: HubState
) -> Landing:
    """Return the state of a workload that has landed but for its Pods; others are as they are."""
    if found.state != "Landed":
        return found
    pods = reported_pods(workload, work, hub.inventoried.get(cluster, UNKNOWN))
    if pods is None:
        unknown = "; nobody reports its Pods" if has_pods(workload) else ""
        return found._replace(message=f"{found.message}{unknown}")
    told = ReportedPods(ready=pods.ready, wanted=pods.wanted, pending=pods.pending)
    said = f"{pods.ready} of {counted(pods.wanted, 'Pod')} ready"
    if pods.all_ready:
        return found._replace(message=f"{found.message}; {said}", pods=told)
    reason = PODS_NOT_READY if pods.reason in _STARTING else PODS_PENDING
    message = f"{said}{_pending(pods)}"
    return Landing("WaitingForPods", reason, message, pods.since or found.since, told)


def _pending(pods: PodCounts) -> str:
    if not pods.pending:
        return ""
    why = f": {UntrustedName(pods.reason)}" if pods.reason else ""
    text = f", {UntrustedText(pods.message)}" if pods.message else ""
    return f", {pods.pending} pending{why}{text}"


def _work_state(work: Object) -> Landing:
    """Return the state of a replica by the conditions of its ManifestWork."""
    conditions, generation = conditions_of(work), work["metadata"].get("generation")
    degraded = find(conditions, "Degraded")
    if degraded is not None and degraded.get("status") == "True":
        message = f"its ManifestWork is degraded: {said(degraded)}"
        return Landing("Refused", str(degraded.get("reason") or ""), message, since(degraded))
    for kind, what in (("Applied", "applied"), ("Available", "available")):
        condition = find(conditions, kind)
        if condition is None:
            message = f"its cluster has not reported whether the ManifestWork is {what}"
            return Landing("Planned", NO_REPORT, message)
        reason = str(condition.get("reason") or "")
        if condition.get("observedGeneration", generation) != generation:
            message = f"its cluster has not reported on the last change of the ManifestWork: {what}"
            return Landing("Planned", NO_REPORT, message, since(condition))
        if condition.get("status") != "True":
            message = f"its ManifestWork is not {what}: {said(condition)}"
            return Landing("Planned", reason, message, since(condition))
    return Landing("Landed", reason, "its ManifestWork is applied and available", since(condition))


def _counted(workload: Object, placement: ObservedPlacement) -> Landing:
    """Return the state by the counts of the ManifestWorkReplicaSet, if no work may be read.

    All clusters of a Placement land at once then.
    """
    counts = _summary(workload, placement.name)
    wanted = max(len(placement.selected), counts.get("total", 0))
    applied, available = counts.get("applied", 0), counts.get("available", 0)
    conditions = conditions_of(workload)
    condition = find(conditions, "ManifestworkApplied") or find(conditions, "PlacementVerified")
    reason = str((condition or {}).get("reason") or NO_REPORT)
    message = f"{applied} of {wanted} ManifestWorks are applied, {available} are available"
    state: LandingState = "Planned"
    if counts.get("degraded", 0):
        state, message = "Refused", f"{message}, {counts['degraded']} are degraded"
    elif min(applied, available) >= wanted and counts.get("total", 0) >= wanted:
        state = "Landed"
    return Landing(state, reason, message, since(condition))


def _summary(workload: Object, placement: str) -> Mapping[str, Any]:
    """Return the counts of one Placement, or of the whole replica set if OCM gives no others."""
    status = workload.get("status") or {}
    for item in status.get("placementSummary") or ():
        if item.get("name") == placement:
            return item.get("summary") or {}
    return status.get("summary") or {}
