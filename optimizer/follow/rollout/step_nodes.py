"""What nodes no longer have of what a step starts, as the newest inventories say."""

from dataclasses import replace

from dsf.api.invalid_input import InvalidInput
from dsf.kube.kinds import POLICY
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import Assignment, Decision
from optimizer.follow.record.content import RecordContent, unpacked
from optimizer.follow.rollout.rollout_state import RolloutState
from optimizer.plan.nodes_since import enforced_candidates, lacking_nodes
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest, RequestedCluster, RequestedPolicy
from optimizer.wire.rollout import RolloutWait


def taken_nodes(
    before: RolloutState,
    after: RolloutState,
    packed: str | None,
    observation: Observation,
    settings: OptimizerSettings,
) -> tuple[RolloutWait, ...]:
    """Return what a step needs and nodes no longer have, checked as for a plan that is applied.

    `packed`: the content of the plan's record; await this in a thread, since it is unpacked.
    Clusters are left out where something runs that the plan does not place, since its device is
    not recorded: those of a rollout that turns back, and of replicas that only help to move others.
    """
    if not observation.inventories:
        return ()
    content = unpacked(packed, RecordContent)
    request = content if isinstance(content, InvalidInput) else content.asked()
    if isinstance(content, InvalidInput) or isinstance(request, InvalidInput):
        return ()
    devices = {(item.workload, item.cluster): item.device for item in content.assignments}
    unknown = {item.cluster for item in after.replicas if item not in devices}
    starting = {item.cluster for item in after.replicas - before.replicas} - unknown
    if not starting:
        return ()
    policies = {name_of(obj): obj for obj in observation.policies}
    policies |= {name: obj for (kind, name), obj in after.objects.items() if kind == POLICY.kind}
    seen = replace(observation, policies=tuple(policies.values()))
    fleet = read_objects(seen, _asked(request, after, starting, seen), settings).fleet
    decision = Decision(
        tuple(item for item in after.policies if item.cluster in starting),
        tuple(
            Assignment(*item, devices[item]) for item in after.replicas if item.cluster in starting
        ),
    )
    return tuple(
        RolloutWait(
            reason="NodesTaken",
            message=f"{lack.field}: {lack.message}: wait for it, or undo or cancel the rollout",
        )
        for lack in lacking_nodes(fleet, decision, enforced_candidates(fleet, decision))
    )


def _asked(
    request: OptimizeRequest, state: RolloutState, clusters: set[str], seen: Observation
) -> OptimizeRequest:
    """Return the request with these clusters and the policies of a state, as far as they exist."""
    policies, workloads = (
        set(map(name_of, objects)) for objects in (seen.policies, seen.workloads)
    )

    def enforcing(cluster: RequestedCluster) -> RequestedCluster:
        stated = {item.name: item for item in cluster.available_policies}
        names = sorted(item.policy for item in state.policies if item.cluster == cluster.name)
        chosen = (
            stated.get(name, RequestedPolicy(name=name)) for name in names if name in policies
        )
        return cluster.model_copy(update={"available_policies": tuple(chosen)})

    targets = (item for item in request.target_workloads if item.name in workloads)
    chosen = map(enforcing, (item for item in request.clusters if item.name in clusters))
    return request.model_copy(
        update={"clusters": tuple(chosen), "target_workloads": tuple(targets)}
    )
