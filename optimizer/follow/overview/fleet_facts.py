"""What answers about a fleet are made of, as it was read from the hub at one moment."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dsf.api.names import ROOT_POLICY_LABEL
from dsf.kube.port import Object
from dsf.placement import Obstacle
from optimizer.domain.arrays import members_by_key
from optimizer.follow.overview.capacity import IDLE_SCORE, ClusterCapacity, capacities
from optimizer.follow.overview.score_overview import ClusterScores, ScorerOverview
from optimizer.follow.placement_status.hub_state import HubState, read_hub_state
from optimizer.snapshot.capacity.node_inventories import by_cluster
from optimizer.snapshot.object_readers import (
    is_generated,
    is_workload,
    labels_of,
    name_of,
    stated_drain,
    until_text,
)
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.scores.score_row import ScoreRow
from optimizer.wire.placement_optimization import KeptOptimization
from optimizer.wire.placement_status import (
    BoundPolicy,
    PlacementStatus,
    UnplacedByPlan,
    WorkloadLanding,
)


@dataclass(frozen=True)
class FleetFacts:
    """The objects of one namespace, the managed clusters, all scores and all scorers.

    `status`: what OCM has made of what was generated in the namespace. `rows`: the entries of
    scores by name, if they were kept: those of IDLE_SCORE always. `with_workloads`: if the
    namespace has nothing, those that have workloads, as far as they are known; None if nobody
    looked for them. `asked_scores`: the scores that something in force asks for; None: any may be.
    `waiting`: by workload, the PlacementOptimization with a plan that would place it once it is
    approved, or applied.
    """

    namespace: str
    observation: Observation
    status: PlacementStatus
    scores: ClusterScores = field(default_factory=dict)
    scorers: tuple[ScorerOverview, ...] = ()
    rows: Mapping[str, Sequence[ScoreRow]] = field(default_factory=dict)
    with_workloads: Sequence[str] | None = None
    asked_scores: Collection[str] | None = None
    waiting: Mapping[str, KeptOptimization] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the namespace has no object that a plan could be about."""
        seen = self.observation
        return not (seen.workloads or seen.policies or seen.placements or seen.bindings)

    @cached_property
    def hub(self) -> HubState:
        """The objects by name, and what is enforced where."""
        return read_hub_state(self.observation, self.namespace)

    @cached_property
    def capacity(self) -> Mapping[str, ClusterCapacity]:
        """The capacity of each managed cluster that has a NodeInventory which may be read."""
        seen, scorer = self.observation, self.scorer_of(IDLE_SCORE)
        is_share = scorer is None or scorer.unit == "%"
        idle = self.rows.get(IDLE_SCORE, ()) if is_share else ()
        return capacities(self.hub.clusters, seen.inventories or (), idle, seen.observed_at)

    @property
    def without_inventory(self) -> Sequence[str]:
        """The managed clusters that have no NodeInventory."""
        return [name for name in self.hub.clusters if name not in self.capacity]

    @cached_property
    def inventories(self) -> Mapping[str, Object]:
        """The NodeInventories by cluster, as far as they may be read."""
        return by_cluster(self.observation.inventories)

    @cached_property
    def faults(self) -> Mapping[str, Obstacle]:
        """Why OCM selects a managed cluster for no new Placement, by name; only such clusters."""
        found = ((name, self.hub.fault(name)) for name in self.hub.clusters)
        return {name: fault for name, fault in found if fault}

    @cached_property
    def drained(self) -> Mapping[str, str]:
        """Until when annotations drain a managed cluster, by name; only clusters drained now."""
        now = self.observation.observed_at
        drains = ((name, stated_drain(obj, None)) for name, obj in self.hub.clusters.items())
        found = {name: until_text(drain.drained_until(now)) for name, drain in drains if drain}
        return {name: until for name, until in found.items() if until}

    @cached_property
    def workloads(self) -> Mapping[str, Object]:
        """The ManifestWorkReplicaSets with the labels of a request, by name."""
        found = {name_of(obj): obj for obj in self.observation.workloads}
        return {name: found[name] for name in sorted(found) if is_workload(found[name])}

    @cached_property
    def policies(self) -> Mapping[str, Object]:
        """The policies that people wrote, by name: neither generated nor replicated ones."""
        found = {name_of(obj): obj for obj in self.observation.policies}
        return {
            name: found[name]
            for name in sorted(found)
            if not is_generated(found[name]) and ROOT_POLICY_LABEL not in labels_of(found[name])
        }

    @cached_property
    def policies_by_cluster(self) -> Mapping[str, Sequence[Object]]:
        """The policies by the managed cluster that their name ends with after a `-`.

        Under the empty name are those that name none.
        """
        return members_by_key(
            (_cluster_in(name, self.hub.clusters), obj) for name, obj in self.policies.items()
        )

    @cached_property
    def bound(self) -> Mapping[str, Sequence[BoundPolicy]]:
        """The policies that generated PlacementBindings bind to each managed cluster."""
        return members_by_key((item.cluster, item) for item in self.status.policies)

    @cached_property
    def running(self) -> Mapping[str, Sequence[WorkloadLanding]]:
        """The workloads that were placed on each managed cluster."""
        return members_by_key((item.cluster, item) for item in self.status.workloads)

    @cached_property
    def landings(self) -> Mapping[str, Sequence[WorkloadLanding]]:
        """How far OCM is with each placed workload, on each of its managed clusters."""
        return members_by_key((item.workload, item) for item in self.status.workloads)

    @cached_property
    def left_out(self) -> Mapping[str, UnplacedByPlan]:
        """Why a recorded plan gives a workload fewer places than it asks for, by workload."""
        return {item.workload: item for item in self.status.unplaced}

    def scorer_of(self, score: str) -> ScorerOverview | None:
        """Return the DynamicScorer that fills a score; None if none is known."""
        return next((item for item in self.scorers if item.score == score), None)


def _cluster_in(policy: str, clusters: Mapping[str, Object]) -> str:
    """Return the longest name of a cluster that the name of a policy ends with after a `-`."""
    _, *rests = policy.split("-")
    ends = ("-".join(rests[at:]) for at in range(len(rests)))
    return next((end for end in ends if end in clusters), "")
