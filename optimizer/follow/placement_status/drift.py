"""What differs from the decision and does not heal by waiting: edits by hand, lost clusters.

No record of the plan is needed. The digits at the end of a generated name are a hash of
optimization, cluster and policy, so they tell which cluster and policy an object was made for.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from dsf.api.names import DEFAULT_OPTIMIZATION, SCHEDULING_DISABLED
from dsf.api.optimization import Optimization
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube import kinds
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.domain.solution import PolicyEnforcement
from optimizer.follow.placement_status.hub_state import (
    REPORT_GRACE,
    Enforcement,
    HubState,
    ObservedPlacement,
)
from optimizer.follow.placement_status.landing import NO_REPORT, NO_WORK
from optimizer.plan.manifests import generated_name
from optimizer.snapshot.object_readers import (
    is_workload,
    name_of,
    not_enforced,
    placement_of,
    placements_of,
)
from optimizer.wire.placement_status import PlacementDrift, WorkloadLanding

WORK_GRACE = timedelta(seconds=30)
"""How long OCM may take to create the ManifestWork of a new decision; it takes about a second."""

_REWRITTEN = "the next plan writes it anew"
_UNSELECTED = "the next plan selects the cluster for nothing new"
_NEXT = {
    "PlacementEdited": _REWRITTEN,
    "BindingEdited": _REWRITTEN,
    "DiffersFromPlan": _REWRITTEN,
    "MissingFromHub": _REWRITTEN,
    "NotInPlan": "the next plan deletes it",
    "PlacementUnused": "the next plan deletes it, unless it does not prune",
    "LabelRemoved": "a plan that needs this name is refused until the label is back, or the object"
    " is deleted",
    "UnplannedDecision": "no plan writes PlacementDecisions: look at OCM's placement controller",
    "SchedulingDisabled": "plans leave the annotation: remove it",
    "ClusterLabelMoved": "the next plan selects clusters by the labels that they have then",
    "PolicyMissing": "a request that names the policy is refused until it exists",
    "PolicyDisabled": "the next plan does not choose the policy: enable it, or plan again",
    "PolicyInforms": "the next plan does not choose the policy: let it enforce, or plan again",
    "PolicyChanged": "the next plan enforces the policy as it is then",
    "WorkloadChanged": "the next plan follows what the workload says then",
    "ClusterChanged": "the next plan follows what the cluster says then",
    "WorkloadMissing": "a request that names the workload is refused until it exists",
    "ReferenceChanged": "the next plan writes the Placement that the workload refers to then; none"
    " if another workload of the request refers to it too",
    "SharedPlacement": "plans count the workloads that they name, one for each Placement: give the"
    " other one a Placement of its own",
    "CapacityExceeded": "the next plan counts what others use, and places what fits beside it",
    "SupplyChanged": "the next plan counts what the policy says then",
    "RequestChanged": "the next plan counts what the workload says then",
    "HeldByOthers": "the next plan leaves the cluster's pool to them",
    "SecondPlacement": "plans write the first Placement only: remove the other one, or what runs by"
    " it counts as used by others",
    "RunsWithoutPlacement": "a plan that places the workload moves it; to stop it, delete its"
    " ManifestWorks or its ManifestWorkReplicaSet",
    "ManifestWorkMissing": "no plan writes ManifestWorks: look at OCM's work controller",
    "RecordEdited": "apply a plan again: it gets a record of its own",
    "ClusterLeft": _UNSELECTED,
    "ClusterLost": _UNSELECTED,
    "ClusterBeingDeleted": _UNSELECTED,
    "ClusterNotAccepted": _UNSELECTED,
    "ClusterNotJoined": _UNSELECTED,
    "ClusterTainted": _UNSELECTED,
    "ClusterSetNotBound": _UNSELECTED,
}
"""What becomes of each drift; the reasons are those of docs/how-to/placement-status.md."""


def drifted(reason: str, kind: Kind, name: str, message: str) -> PlacementDrift:
    """Return a drift with what the next plan does about it."""
    return PlacementDrift(
        reason=reason, kind=kind.kind, name=name, message=message, next=_NEXT[reason]
    )


def drift(
    hub: HubState,
    namespace: str,
    workloads: Collection[Object],
    enforced: Mapping[str, Collection[Enforcement]],
) -> Iterator[PlacementDrift]:
    """Yield each drift; `workloads`: the ManifestWorkReplicaSets.

    `enforced`: the clusters whose claims their Placements must require.
    """
    referred = {placement_of(workload) for workload in workloads}
    binding = {item.placement for item in hub.enforcements}
    for placement in hub.placements.values():
        yield from _edited_placement(placement, enforced if placement.name in referred else {})
        if placement.name not in referred and placement.name not in binding:
            yield drifted(
                "PlacementUnused",
                kinds.PLACEMENT,
                placement.name,
                "no ManifestWorkReplicaSet and no generated PlacementBinding refers to it",
            )
    for item in hub.enforcements:
        yield from _edited_binding(item, hub, namespace)
    for workload in workloads:
        yield from _edited_references(workload, hub)
    yield from _shared_placements(workloads, hub)
    faults = {
        (name, fault)
        for placement in hub.placements.values()
        for name in placement.clusters
        for fault in [hub.fault(name, placement.tolerations)]
        if fault
    }
    for name, fault in faults:
        yield drifted(fault.reason, kinds.MANAGED_CLUSTER, name, fault.message)


def missing_works(landings: Iterable[WorkloadLanding], now: datetime) -> Iterator[PlacementDrift]:
    """Yield each ManifestWork that OCM should have created long ago."""
    for item in landings:
        if item.reason == NO_WORK and item.since and now - item.since > WORK_GRACE:
            where = UntrustedName(item.cluster)
            message = f"it is missing in namespace {where}, whose cluster OCM has selected"
            yield drifted("ManifestWorkMissing", kinds.MANIFEST_WORK, item.workload, message)


def grace_end(landings: Iterable[WorkloadLanding], now: datetime) -> datetime | None:
    """Return when the status changes next although nothing happens; None if it does not.

    That is when OCM has had its time to create a ManifestWork, or to report on a policy.
    """
    graces = {("Planned", NO_WORK): WORK_GRACE, ("WaitingForPolicy", NO_REPORT): REPORT_GRACE}
    ends = (
        item.since + graces[item.state, item.reason]
        for item in landings
        if item.since and (item.state, item.reason) in graces
    )
    return min((end for end in ends if end >= now), default=None)


def running_without_placement(
    workloads: Iterable[Object], hub: HubState
) -> Iterator[PlacementDrift]:
    """Yield each workload that OCM leaves where it runs, because a Placement of it is missing."""
    for workload in filter(is_workload, workloads):
        name = name_of(workload)
        missing = [item for item in placements_of(workload) if item not in hub.existing_placements]
        runs = sorted(
            cluster
            for (replica_set, cluster), work in (hub.works or {}).items()
            if replica_set == name and not work["metadata"].get("deletionTimestamp")
        )
        if missing and runs:
            yield drifted(
                "RunsWithoutPlacement",
                kinds.MANIFEST_WORK_REPLICA_SET,
                name,
                f"it runs on {listed(runs)}, and OCM leaves it there, because it refers to"
                f" {listed(missing)}, which does not exist",
            )


def _edited_references(workload: Object, hub: HubState) -> Iterator[PlacementDrift]:
    name, first, *more = name_of(workload), *placements_of(workload)
    if first in hub.placements and more:
        yield drifted(
            "SecondPlacement",
            kinds.MANIFEST_WORK_REPLICA_SET,
            name,
            f"it refers to {listed(more)} besides Placement {UntrustedName(first)}, so it runs"
            " wherever any of them selects",
        )


def _shared_placements(workloads: Iterable[Object], hub: HubState) -> Iterator[PlacementDrift]:
    referring = members_by_key(
        (placement, name_of(obj)) for obj in workloads for placement in set(placements_of(obj))
    )
    for placement, names in referring.items():
        if placement in hub.placements and len(names) > 1:
            yield drifted(
                "SharedPlacement",
                kinds.PLACEMENT,
                placement,
                f"{listed(sorted(names))} refer to it, so each of them runs where it selects",
            )


def _edited_placement(
    placement: ObservedPlacement, enforced: Mapping[str, Collection[Enforcement]]
) -> Iterator[PlacementDrift]:
    """Yield what no generated Placement is like; `enforced`: the clusters that must claim."""
    clusters = placement.clusters
    if placement.unscheduled:
        message = f"its annotation {SCHEDULING_DISABLED} keeps OCM from deciding it"
        yield drifted("SchedulingDisabled", kinds.PLACEMENT, placement.name, message)
    if placement.number != len(clusters):
        yield _placement_edited(
            placement,
            f"its predicates name {listed(clusters) or 'no cluster'},"
            f" and numberOfClusters is {placement.number}",
        )
    unclaimed = [name for name in clusters if name in enforced and not placement.claims[name]]
    if unclaimed:
        yield _placement_edited(
            placement, f"it requires no claim of {listed(unclaimed)}, which enforces a policy"
        )
    others = sorted(placement.selected - set(clusters))
    if others:
        yield drifted(
            "UnplannedDecision",
            kinds.PLACEMENT,
            placement.name,
            f"OCM has selected {listed(others)}, which its predicates do not name",
        )


def _edited_binding(item: Enforcement, hub: HubState, namespace: str) -> Iterator[PlacementDrift]:
    """Yield how a binding, its Placement and its policy differ from what they were made for."""
    placement = hub.placements.get(item.placement)
    policy = hub.policies.get(item.policy)
    if policy is None:
        message = f"the policy that binding {UntrustedName(item.binding)} names does not exist"
        yield drifted("PolicyMissing", kinds.POLICY, item.policy, message)
    elif why := not_enforced(policy):
        message = f"it {why.message}, and binding {UntrustedName(item.binding)} binds it"
        yield drifted(why.reason, kinds.POLICY, item.policy, message)
    if placement is None:
        message = f"it refers to {UntrustedName(item.placement)}, which is no generated Placement"
        yield drifted("BindingEdited", kinds.PLACEMENT_BINDING, item.binding, message)
    elif _digits(item.binding) != _digits(placement.name):
        message = f"it refers to Placement {UntrustedName(placement.name)}, made for another one"
        yield drifted("BindingEdited", kinds.PLACEMENT_BINDING, item.binding, message)
    elif len(placement.clusters) == 1:
        yield from _made_for_others(item, placement, hub, namespace)


def _made_for_others(
    item: Enforcement, placement: ObservedPlacement, hub: HubState, namespace: str
) -> Iterator[PlacementDrift]:
    (cluster,) = placement.clusters
    digits = _digits(item.binding)
    owner = Optimization(namespace, item.optimization or DEFAULT_OPTIMIZATION)

    def fits(cluster: str, policy: str) -> bool:
        choice = PolicyEnforcement(cluster, policy)
        return _digits(generated_name("binding", owner, choice)) == digits

    if fits(cluster, item.policy):
        return
    meant = next((name for name in hub.clusters if fits(name, item.policy)), None)
    if meant:
        yield _placement_edited(
            placement,
            f"it names cluster {UntrustedName(cluster)}, and was made for {UntrustedName(meant)}",
        )
        return
    wanted = next((name for name in hub.policies if fits(cluster, name)), "another policy")
    yield drifted(
        "BindingEdited",
        kinds.PLACEMENT_BINDING,
        item.binding,
        f"it binds policy {UntrustedName(item.policy)}, and was made for {UntrustedName(wanted)}",
    )


def _placement_edited(placement: ObservedPlacement, message: str) -> PlacementDrift:
    return drifted("PlacementEdited", kinds.PLACEMENT, placement.name, message)


def _digits(name: str) -> str:
    return name.rpartition("-")[2]
