"""What differs from the decision and does not heal by waiting: edits by hand, lost clusters.

No record of the plan is needed. The digits at the end of a generated name are a hash of
optimization, cluster and policy, so they tell which cluster and policy an object was made for.
"""

from collections.abc import Collection, Iterator, Mapping

from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.api.optimization import Optimization
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.kinds import MANAGED_CLUSTER, PLACEMENT, PLACEMENT_BINDING, POLICY
from optimizer.domain.solution import PolicyEnforcement
from optimizer.placement_status.hub_state import Enforcement, HubState
from optimizer.placement_status.observed_placements import ObservedPlacement
from optimizer.plan.manifests import generated_name
from optimizer.wire.placement_status import PlacementDrift


def drift(
    hub: HubState,
    namespace: str,
    workloads: Collection[str],
    enforced: Mapping[str, Collection[Enforcement]],
) -> Iterator[PlacementDrift]:
    """Yield each drift; `workloads` are the Placements that ManifestWorkReplicaSets refer to.

    `enforced`: the clusters whose claims those Placements must require.
    """
    binding = {item.placement for item in hub.enforcements}
    for placement in hub.placements.values():
        yield from _edited_placement(placement, enforced if placement.name in workloads else {})
        if placement.name not in workloads and placement.name not in binding:
            yield _drift(
                "PlacementUnused",
                PLACEMENT.kind,
                placement.name,
                "no ManifestWorkReplicaSet and no generated PlacementBinding refers to it",
            )
    for item in hub.enforcements:
        yield from _edited_binding(item, hub, namespace)
    faults = {
        (name, fault)
        for placement in hub.placements.values()
        for name in placement.clusters
        for fault in [hub.fault(name, placement)]
        if fault
    }
    for name, fault in faults:
        yield _drift(fault.reason, MANAGED_CLUSTER.kind, name, fault.message)


def _edited_placement(
    placement: ObservedPlacement, enforced: Mapping[str, Collection[Enforcement]]
) -> Iterator[PlacementDrift]:
    """Yield what no generated Placement is like; `enforced`: the clusters that must claim."""
    clusters = placement.clusters
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
        yield _drift(
            "UnplannedDecision",
            PLACEMENT.kind,
            placement.name,
            f"OCM has selected {listed(others)}, which its predicates do not name",
        )


def _edited_binding(item: Enforcement, hub: HubState, namespace: str) -> Iterator[PlacementDrift]:
    """Yield how a binding, its Placement and its policy differ from what they were made for."""
    placement = hub.placements.get(item.placement)
    if item.policy not in hub.policies:
        message = f"the policy that binding {UntrustedName(item.binding)} names does not exist"
        yield _drift("PolicyMissing", POLICY.kind, item.policy, message)
    if placement is None:
        message = f"it refers to {UntrustedName(item.placement)}, which is no generated Placement"
        yield _drift("BindingEdited", PLACEMENT_BINDING.kind, item.binding, message)
    elif _digits(item.binding) != _digits(placement.name):
        message = f"it refers to Placement {UntrustedName(placement.name)}, made for another one"
        yield _drift("BindingEdited", PLACEMENT_BINDING.kind, item.binding, message)
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
    yield _drift(
        "BindingEdited",
        PLACEMENT_BINDING.kind,
        item.binding,
        f"it binds policy {UntrustedName(item.policy)}, and was made for {UntrustedName(wanted)}",
    )


def _placement_edited(placement: ObservedPlacement, message: str) -> PlacementDrift:
    return _drift("PlacementEdited", PLACEMENT.kind, placement.name, message)


def _drift(reason: str, kind: str, name: str, message: str) -> PlacementDrift:
    return PlacementDrift(reason=reason, kind=kind, name=name, message=message)


def _digits(name: str) -> str:
    return name.rpartition("-")[2]
