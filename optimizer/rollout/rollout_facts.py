"""What the hub says about the replicas and policies of a rollout."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dsf.api.conditions import is_true
from dsf.api.optimization import Optimization
from dsf.kube.port import Object
from optimizer.placement_status.comparison import placement_status
from optimizer.rollout.rollout_state import Replica
from optimizer.snapshot.object_readers import name_of, replica_set_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import BoundPolicy, PlacementStatus, WorkloadLanding


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
        """Tell whether a replica is available and stays."""
        work = self.works.get(replica)
        return work is not None and work.available and not work.deleting

    def landed(self, replica: Replica) -> bool:
        """Tell whether a replica runs and OCM reports so for all replicas of its Placement."""
        landing = self.landings.get(replica)
        return self.runs(replica) and landing is not None and landing.state == "Landed"


def rollout_facts(
    observation: Observation,
    *,
    owner: Optimization,
    workloads: Collection[str],
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
