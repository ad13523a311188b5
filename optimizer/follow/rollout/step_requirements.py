"""What the hub says of a rollout, and what a step needs of it before it is written and complete."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from dsf.api.conditions import is_true
from dsf.api.optimization import Optimization
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube.kinds import POLICY
from dsf.kube.port import Object
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.follow.placement_status.comparison import placement_status
from optimizer.follow.placement_status.landing import COMPLIANT
from optimizer.follow.record.content import RecordContent, unpacked
from optimizer.follow.rollout.rollout_state import Replica, RolloutState
from optimizer.plan.manifests import COMPLIANT as COMPLIANT_CLAIM
from optimizer.plan.nodes_since import enforced_candidates, lacking_nodes
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.object_readers import name_of, replica_set_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import BoundPolicy, PlacementStatus, WorkloadLanding
from optimizer.wire.request import OptimizeRequest, RequestedCluster, RequestedPolicy
from optimizer.wire.rollout import RolloutWait


class ReplicaWork(NamedTuple):
    """The ManifestWork of a replica: whether it is being deleted, and whether it is available."""

    deleting: bool
    available: bool


@dataclass(frozen=True, slots=True)
class RolloutFacts:
    """The objects of one observation, indexed for the questions that a rollout asks."""

    observation: Observation
    status: PlacementStatus
    clusters: frozenset[str]
    works: Mapping[Replica, ReplicaWork]
    landings: Mapping[Replica, WorkloadLanding]
    policies: Mapping[tuple[str, str], BoundPolicy]

    def runs(self, replica: Replica) -> bool:
        """Tell whether a replica is available and stays, with its Pods as far as they are known."""
        work, landing = self.works.get(replica), self.landings.get(replica)
        waits = landing is not None and landing.state == "WaitingForPods"
        return work is not None and work.available and not work.deleting and not waits

    def landed(self, replica: Replica) -> bool:
        """Tell whether a replica runs and OCM reports so for all replicas of its Placement."""
        landing = self.landings.get(replica)
        return self.runs(replica) and landing is not None and landing.state == "Landed"


def rollout_facts(
    observation: Observation, *, owner: Optimization, workloads: Collection[str]
) -> RolloutFacts:
    """Return the facts of an optimization; ManifestWorks of other workloads are left out."""
    status = placement_status(observation, *owner)
    return RolloutFacts(
        observation=observation,
        status=status,
        clusters=frozenset(map(name_of, observation.managed_clusters)),
        works=_works(observation.works or (), owner.namespace, workloads),
        landings={Replica(item.workload, item.cluster): item for item in status.workloads},
        policies={(item.cluster, item.policy): item for item in status.policies},
    )


def _works(
    works: Iterable[Object], namespace: str, workloads: Collection[str]
) -> dict[Replica, ReplicaWork]:
    found = dict[Replica, ReplicaWork]()
    for work in works:
        of, name = replica_set_of(work)
        if of == namespace and name in workloads:
            deleting = bool(work["metadata"].get("deletionTimestamp"))
            available = is_true(work, "Applied") and is_true(work, "Available")
            found[Replica(name, work["metadata"]["namespace"])] = ReplicaWork(deleting, available)
    return found


def needed_before(
    before: RolloutState, after: RolloutState, facts: RolloutFacts
) -> tuple[RolloutWait, ...]:
    """Return what keeps the step between two states from being written; empty if nothing does.

    - A workload that stops somewhere runs on all clusters that it keeps, its Pods included, unless
      the plan leaves it uncovered.
    - On a cluster that changes a policy or gets a replica, nothing runs that stopped earlier.
    - A cluster that gets a replica, or whose claim counts again, has compliant policies.
    """
    starts = {item.cluster for item in after.replicas - before.replicas}
    changed = {choice.cluster for choice in before.policies ^ after.policies}
    claimed = (starts | {item.cluster for item in before.keep - after.keep}) - changed
    return (
        *_left_clusters(starts, facts),
        *_not_running(before, after, facts),
        *_not_idle(before, after, starts | changed, facts),
        *_not_compliant((item for item in after.policies if item.cluster in claimed), facts),
    )


def needed_after(
    before: RolloutState, after: RolloutState, facts: RolloutFacts
) -> tuple[RolloutWait, ...]:
    """Return what keeps a written step from being complete; empty if nothing does.

    What it enforced is compliant, claims included; what it started has landed; what it stopped is
    gone.
    """
    stopped = (item for item in before.replicas - after.replicas if item.cluster in facts.clusters)
    return (
        *_not_compliant(after.policies - before.policies, facts),
        *(
            _landing_wait(item, facts)
            for item in sorted(after.replicas - before.replicas)
            if not facts.landed(item)
        ),
        *(_still_there(item) for item in sorted(stopped) if item in facts.works),
    )


def _left_clusters(clusters: Iterable[str], facts: RolloutFacts) -> Iterator[RolloutWait]:
    for name in sorted(set(clusters) - facts.clusters):
        yield RolloutWait(
            reason="ClusterLeft",
            message=f"the hub has no cluster {UntrustedName(name)}: turn the rollout back or"
            " cancel it, and plan again",
        )


def _not_running(
    before: RolloutState, after: RolloutState, facts: RolloutFacts
) -> Iterator[RolloutWait]:
    stopping = {item.workload for item in before.replicas - after.replicas}
    for item in sorted(before.replicas & after.replicas):
        covered = item.workload in stopping and item.workload not in after.uncovered
        if covered and not facts.runs(item):
            wait = _landing_wait(item, facts)
            yield wait.model_copy(
                update={"message": f"before another replica stops: {wait.message}"}
            )


def _not_idle(
    before: RolloutState, after: RolloutState, clusters: Iterable[str], facts: RolloutFacts
) -> Iterator[RolloutWait]:
    on, known = set(clusters), before.replicas | after.replicas
    for item in sorted(facts.works):
        if item.cluster in on and item not in known:
            yield _still_there(item)


def _not_compliant(
    choices: Iterable[PolicyEnforcement], facts: RolloutFacts
) -> Iterator[RolloutWait]:
    for choice in sorted(choices):
        where = f"on cluster {UntrustedName(choice.cluster)}"
        name = UntrustedName(choice.policy)
        bound = facts.policies.get(choice)
        compliance = bound.compliance if bound else ""
        claim = bound.claim if bound else ""
        if compliance != COMPLIANT:
            yield _with_drift(
                choice.cluster,
                RolloutWait(
                    reason=compliance or "NotReported",
                    message=f"policy {name} is not compliant {where}",
                ),
                facts,
            )
        elif claim != COMPLIANT_CLAIM:
            shown = UntrustedName(claim or "missing")
            yield _with_drift(
                choice.cluster,
                RolloutWait(
                    reason=claim or "NoClaim",
                    message=f"policy {name} is compliant {where}, and its claim is {shown}",
                ),
                facts,
            )


def _with_drift(cluster: str, wait: RolloutWait, facts: RolloutFacts) -> RolloutWait:
    """Return the wait, or why OCM can't select the cluster at all."""
    for item in facts.status.drift:
        if item.kind == "ManagedCluster" and item.name == cluster:
            return RolloutWait(reason=item.reason, message=f"{item.message}; {wait.message}")
    return wait


def _landing_wait(replica: Replica, facts: RolloutFacts) -> RolloutWait:
    shown = f"workload {UntrustedName(replica.workload)} on {UntrustedName(replica.cluster)}"
    landing = facts.landings.get(replica)
    if landing is None:
        return RolloutWait(reason="NotPlaced", message=f"{shown}: no Placement names the cluster")
    if landing.state == "Landed":
        message = f"{shown}: its ManifestWork is not available yet"
        return RolloutWait(reason="NotAvailable", message=message)
    return RolloutWait(
        reason=landing.reason,
        message=f"{shown}: {landing.state}: {landing.message}",
        since=landing.since,
    )


def _still_there(replica: Replica) -> RolloutWait:
    shown = f"workload {UntrustedName(replica.workload)} on {UntrustedName(replica.cluster)}"
    return RolloutWait(reason="NotIdle", message=f"{shown} is still being removed")


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
