"""Whether a plan and others use more of a cluster than is supplied."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.kinds import MANAGED_CLUSTER
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import CandidatePolicy, Cluster, Selector, Supply, Workload
from optimizer.follow.placement_status.drift import drifted
from optimizer.follow.record.content import RecordContent
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.snapshot.object_readers import name_of, read_cluster, read_policy, read_workload
from optimizer.snapshot.observation import Observation, RequestedHub, read_current_decisions
from optimizer.snapshot.ownership.namespace_reader import OthersPolicy, amounts_of
from optimizer.snapshot.ownership.others import others_on_clusters
from optimizer.snapshot.ownership.others_part import users_text
from optimizer.wire.placement_status import PlacementDrift
from optimizer.wire.request import OptimizeRequest


def exceeded_capacity(
    record: RecordedPlan,
    content: RecordContent,
    request: OptimizeRequest,
    observation: Observation,
    select: Mapping[str, Selector],
) -> Iterator[PlacementDrift]:
    """Yield the clusters where a plan and others use more of a kind than is supplied.

    Which device others use is not recorded, so the devices of a kind are summed up.
    """
    running = read_current_decisions(observation, select, record.spec.optimization)
    hub = RequestedHub(observation, request, select, running)
    for cluster, there in sorted(others_on_clusters(hub).items()):
        own = _used(content, request, observation, cluster) if there.uses else {}
        supplied = (
            _supplied(record, content, request, observation, cluster, there.enforced) if own else {}
        )
        for kind, amount in sorted(own.items()):
            uses = [use for use in there.uses if dict(use.amounts).get(kind)]
            taken = float(sum(dict(use.amounts)[kind] for use in uses))
            if not uses or amount + taken <= supplied.get(kind, 0.0):
                continue
            by_owner = members_by_key((use.owner, use) for use in uses)
            users = ", ".join(f"{users_text(owner, of_one)}" for owner, of_one in by_owner.items())
            message = (
                f"revision {record.spec.revision} uses {format_quantity(amount)}"
                f" {UntrustedName(kind)} there, and {users} uses {format_quantity(taken)}, of"
                f" {format_quantity(supplied.get(kind, 0.0))} that are supplied"
            )
            yield drifted("CapacityExceeded", MANAGED_CLUSTER, cluster, message)


def _used(
    content: RecordContent, request: OptimizeRequest, observation: Observation, cluster: str
) -> Mapping[str, float]:
    """Return what the workloads of a plan use on a cluster, by kind."""
    placed = {item.workload for item in content.assignments if item.cluster == cluster}
    asked = {item.name: item for item in request.target_workloads}
    used = defaultdict[str, float](float)
    for obj in observation.workloads:
        workload = read_workload(obj, asked.get(name_of(obj))) if name_of(obj) in placed else None
        for kind, amount in amounts_of(workload) if isinstance(workload, Workload) else ():
            used[kind] += float(amount)
    return used


def _supplied(
    record: RecordedPlan,
    content: RecordContent,
    request: OptimizeRequest,
    observation: Observation,
    cluster: str,
    others: Iterable[OthersPolicy],
) -> Mapping[str, float]:
    """Return what a cluster, the policies of a plan, and those of others supply, by kind."""
    asked = {item.name: item for item in request.clusters}.get(cluster)
    specs = {item.name: item for item in asked.available_policies} if asked else {}
    chosen = {item.policy for item in content.policies if item.cluster == cluster}
    read = [
        read_policy(obj, cluster, specs.get(name_of(obj)))
        for obj in observation.policies
        if name_of(obj) in chosen
    ]
    policies = [item for item in read if isinstance(item, CandidatePolicy)]
    policies += [
        item.policy
        for item in others
        if item.namespace != record.namespace or item.policy.policy not in chosen
    ]
    supplies = [supply for policy in policies for supply in policy.supplies]
    for obj in observation.managed_clusters:
        if name_of(obj) == cluster:
            base = read_cluster(obj, Selector(cluster), asked)
            supplies += base.base if isinstance(base, Cluster) else ()
    return _sums(supplies)


def _sums(supplies: Iterable[Supply]) -> Mapping[str, float]:
    found = defaultdict[str, float](float)
    for supply in supplies:
        found[supply.kind] += float(supply.amount)
    return found
