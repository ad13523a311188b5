"""How far OCM is with a workload on a cluster that its Placement names."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.port import Object
from optimizer.placement_status.cluster_faults import said, since
from optimizer.placement_status.hub_state import Enforcement, HubState
from optimizer.placement_status.observed_placements import ObservedPlacement
from optimizer.wire.placement_status import LandingState

COMPLIANT = "Compliant"


class Landing(NamedTuple):
    """A state, OCM's reason for it, a sentence, and since when it holds."""

    state: LandingState
    reason: str
    message: str
    since: datetime | None = None


def landing(
    workload: Object,
    placement: ObservedPlacement,
    cluster: str,
    enforcements: Iterable[Enforcement],
    hub: HubState,
) -> Landing:
    """Return the state of a workload on one cluster; `enforcements` are those of the cluster.

    What OCM has selected is landing or has landed, whatever its policies say now. Else the first
    thing that OCM waits for is named, in OCM's order: cluster, policy, claim, selection.
    """
    if cluster in placement.selected:
        return _delivered(workload, placement)
    fault = hub.fault(cluster, placement)
    if fault:
        return Landing("Refused", *fault)
    for enforcement in enforcements:
        waiting = _policy(enforcement, cluster, placement, hub)
        if waiting:
            return waiting
    return _claims(placement, cluster, hub) or _selection(placement, cluster)


def _policy(
    enforcement: Enforcement, cluster: str, waiting: ObservedPlacement, hub: HubState
) -> Landing | None:
    """Return why a policy of the cluster keeps a workload waiting; None if it does not."""
    name = UntrustedName(enforcement.policy)
    policy = hub.policies.get(enforcement.policy)
    if policy is None:
        return Landing("Refused", "PolicyMissing", f"policy {name} does not exist")
    if (policy.get("spec") or {}).get("disabled"):
        return Landing("Refused", "PolicyDisabled", f"policy {name} is disabled")
    selecting = hub.placements[enforcement.placement]
    if cluster not in selecting.selected:
        return _selection(selecting, cluster)
    compliance = hub.compliances.get((enforcement.policy, cluster), "Pending")
    if compliance == COMPLIANT:
        return None
    message = f"policy {name} is not compliant on the cluster"
    return Landing("WaitingForPolicy", compliance, message, since(waiting.satisfied))


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


def _delivered(workload: Object, placement: ObservedPlacement) -> Landing:
    """Return whether the ManifestWorks on the selected clusters are applied and available.

    A ManifestWorkReplicaSet only counts its ManifestWorks, so all clusters of a Placement land at
    once.
    """
    counts = _summary(workload, placement.name)
    wanted = max(len(placement.selected), counts.get("total", 0))
    applied, available = counts.get("applied", 0), counts.get("available", 0)
    conditions = conditions_of(workload)
    condition = find(conditions, "ManifestworkApplied") or find(conditions, "PlacementVerified")
    reason = str((condition or {}).get("reason") or "NotReported")
    message = f"{applied} of {wanted} ManifestWorks are applied, {available} are available"
    state: LandingState = "Planned"
    if counts.get("degraded", 0):
        state, message = "Refused", f"{message}, {counts['degraded']} are degraded"
    elif min(applied, available) >= wanted:
        state = "Landed"
    return Landing(state, reason, message, since(condition))


def _summary(workload: Object, placement: str) -> Mapping[str, Any]:
    """Return the counts of one Placement, or of the whole replica set if OCM gives no others."""
    status = workload.get("status") or {}
    for item in status.get("placementsSummary") or ():
        if item.get("name") == placement:
            return item.get("summary") or {}
    return status.get("summary") or {}
