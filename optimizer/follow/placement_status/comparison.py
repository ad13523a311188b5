"""Compares what was decided for a namespace with what OCM has made of it."""

from collections.abc import Collection, Iterator, Mapping

from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.kube.port import Object
from optimizer.follow.placement_status.drift import drift, missing_works, running_without_placement
from optimizer.follow.placement_status.hub_state import Enforcement, HubState, read_hub_state
from optimizer.follow.placement_status.landing import landing
from optimizer.snapshot.object_readers import name_of, placement_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import BoundPolicy, PlacementStatus, WorkloadLanding


def placement_status(
    observation: Observation,
    namespace: str,
    optimization: str | None = None,
    *,
    rolling_out: Collection[str] = (),
) -> PlacementStatus:
    """Return the state of each workload, each bound policy, and each drift, in stable order.

    A workload has a row for each cluster that its generated Placement names. A workload without a
    generated Placement was not placed and has none. With `optimization`, only objects that were
    generated for it count as generated. `rolling_out`: the optimizations whose rollouts may have
    taken the claims off Placements, until the claims are compliant again.
    """
    hub = read_hub_state(observation, namespace, optimization)
    enforced = hub.enforced_on()
    workloads = sorted(observation.workloads, key=name_of)
    landings = tuple(row for workload in workloads for row in _landings(workload, hub, enforced))
    settled = {
        cluster: items
        for cluster, items in enforced.items()
        if not {item.optimization or DEFAULT_OPTIMIZATION for item in items} & set(rolling_out)
    }
    found = (
        *drift(hub, namespace, workloads, settled),
        *missing_works(landings, hub.observed_at),
        *(running_without_placement(workloads, hub) if optimization is None else ()),
    )
    return PlacementStatus(
        namespace=namespace,
        landed=bool(landings) and all(item.state == "Landed" for item in landings),
        workloads=landings,
        policies=tuple(_bound_policies(hub, enforced)),
        drift=tuple(
            sorted(found, key=lambda item: (item.kind, item.name, item.reason, item.message))
        ),
        unbound_policies=tuple(sorted(hub.policies.keys() - hub.bound)),
    )


def _landings(
    workload: Object, hub: HubState, enforced: Mapping[str, list[Enforcement]]
) -> Iterator[WorkloadLanding]:
    placement = hub.placements.get(placement_of(workload))
    if placement is None:
        return
    for cluster in placement.clusters:
        found = landing(workload, placement, cluster, enforced.get(cluster, ()), hub)
        yield WorkloadLanding(workload=name_of(workload), cluster=cluster, **found._asdict())


def _bound_policies(
    hub: HubState, enforced: Mapping[str, list[Enforcement]]
) -> Iterator[BoundPolicy]:
    for cluster in sorted(enforced):
        for item in sorted(enforced[cluster]):
            yield BoundPolicy(
                cluster=cluster,
                policy=item.policy,
                compliance=hub.compliances.get((item.policy, cluster), ""),
                claim=hub.claim(cluster),
            )
