"""The fleet as the optimizer sees it: frozen values, the MIG layouts of its GPUs included."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.api.optimization import Optimization
from dsf.placement import Toleration
from optimizer.domain.arrays import Floats
from optimizer.domain.dra.device_sets import DeviceClasses
from optimizer.domain.issue import Issue
from optimizer.domain.nodes import NodeGroup, Packing, PodGroup
from optimizer.domain.score_matrix import ScoreMatrix

ProfileCounts = tuple[tuple[str, int], ...]
"""How many instances of which profile, in the order of the geometry; no zeros."""


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """The layout of each GPU of a node, by index; None is MIG off.

    `taken`: the devices of each GPU that other than target workloads use; empty if they use none.
    """

    node: str
    gpus: tuple[ProfileCounts | None, ...]
    taken: tuple[tuple[tuple[str, int], ...], ...] = ()


def gpu_name(node: str, index: int) -> str:
    """Return the name of a GPU: `gpu-node-1/0`, or `0` if its node has no name."""
    return f"{node}/{index}" if node else str(index)


class GpuPattern(NamedTuple):
    """What a GPU may become; `instances` is None where MIG is off.

    `supply` counts what the demand can use, device by device; `supplies` names all of it.
    `pieces` is how fragmented it is: its instances, and the compute slices that none of them has.
    """

    supply: tuple[int, ...]
    cost: float
    changed: bool
    pieces: int
    instances: ProfileCounts | None
    supplies: tuple[tuple[str, int], ...]


class OmittedLayouts(NamedTuple):
    """A pool for which only some of the relevant candidates were generated.

    `kept`: how many. `bound`: by how much the others can at most be worth more, for every demand.
    `groups` of equal GPUs: how many, and what patterns supply of the `devices` asked for.
    """

    cluster: str
    pool: str
    kept: int
    bound: float
    devices: tuple[str, ...]
    groups: tuple[tuple[int, tuple[GpuPattern, ...]], ...]


CLUSTER_NAME_KEY = "metadata.name"
"""The label key that stands for a cluster's name."""


@dataclass(frozen=True, slots=True)
class Selector:
    """How a Placement selects one managed cluster: by the label `key`, by name if it is empty."""

    cluster: str
    key: str = ""


class Supply(NamedTuple):
    """An amount of a device of a kind; kinds without devices, such as cpu, have an empty device."""

    kind: str
    device: str
    amount: float


def net_supplies(
    supplies: Iterable[Supply], used: Iterable[Supply]
) -> tuple[tuple[Supply, ...], tuple[Supply, ...]]:
    """Return the supplies less what is used, without empty ones, and what they don't cover."""
    rest: dict[tuple[str, str], float] = {}
    for item in used:
        key = item.kind, item.device
        rest[key] = rest.get(key, 0.0) + item.amount
    left = []
    for item in supplies:
        key = item.kind, item.device
        taken = min(item.amount, rest.get(key, 0.0))
        if taken:
            rest[key] -= taken
        if item.amount > taken or not taken:
            left.append(item._replace(amount=item.amount - taken))
    uncovered = (Supply(*key, amount) for key, amount in sorted(rest.items()) if amount > 0)
    return tuple(left), tuple(uncovered)


@dataclass(frozen=True, slots=True)
class CandidatePolicy:
    """A policy that a cluster may enforce, and what the policy supplies.

    At most one candidate of a pool is enforced. `current`: it is enforced now; otherwise changing
    to it costs `cost`. `uses`: amounts that it takes of fleet-wide limits, by name. `layouts`: the
    MIG layouts of a policy to be generated; `declared_layouts`: those that an existing policy
    declares in its annotation. `tolerations`: of the Placement that binds it.
    """

    policy: str
    supplies: tuple[Supply, ...]
    pool: str = ""
    current: bool = False
    cost: float = 0.0
    uses: tuple[tuple[str, float], ...] = ()
    layouts: tuple[NodeLayout, ...] = ()
    declared_layouts: tuple[NodeLayout, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A managed cluster and its candidate policies, in the order of the request.

    `base`: what the cluster supplies without any policy. `enforced`: policies in force that the
    request does not list. `no_new_policies`: OCM can't select it for a policy that is generated
    now; one that was generated and is in force may stay. `used_by_others`: what others' workloads
    use of what policies supply; the supplies of listed candidates are already less by it.
    `nodes`: its nodes that are ready; None where the cluster has no inventory. `capacity_source`:
    Seen, or Stated where an inventory must not count. `packing`: which Pods its scheduler is
    trusted to start on them. `drained`: until when no workload may run there, in words; empty: now
    they may.
    """

    name: str
    selector: Selector
    candidates: tuple[CandidatePolicy, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    base: tuple[Supply, ...] = ()
    enforced: tuple[CandidatePolicy, ...] = ()
    no_new_policies: bool = False
    used_by_others: tuple[Supply, ...] = ()
    nodes: tuple[NodeGroup, ...] | None = None
    device_classes: DeviceClasses = field(default_factory=dict)
    capacity_source: str = "Seen"
    packing: Packing = "AnyOrder"
    drained: str = ""
    max_workloads: int | None = None

    def label(self, key: str) -> str:
        """Return the value of a label, empty where there is none; CLUSTER_NAME_KEY is the name."""
        return self.name if key == CLUSTER_NAME_KEY else self.labels.get(key, "")

    @property
    def supplies(self) -> Iterator[Supply]:
        """What the candidates supply, and what the cluster supplies without any policy."""
        for candidate in self.candidates:
            yield from candidate.supplies
        yield from self.base


class TopologySpread(NamedTuple):
    """At most `most` replicas per value of a cluster label, for all workloads of `group` together.

    Workloads with equal key, most and group share the constraint; an empty group is the workload
    alone.
    """

    key: str
    most: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """A ManifestWorkReplicaSet: its request, its constraints and preferences, its Placement.

    Fields that `WorkloadSpec` (optimizer/wire/object_specs.py) has too mean the same here; a text
    is empty where there is no constraint. `requests`: (kind, amount) besides `amount` of `kind`.
    `current`: the clusters where it runs now; leaving one costs `move_cost`. `unselectable`:
    clusters that OCM can't select for its Placement; `avoided`: those with a taint PreferNoSelect.
    `pods`: what a replica starts on its cluster, as far as it is known. `devices`: those that the
    Pods name, or that are stated; empty: any. `unseen`: clusters where it does not run, and whose
    inventory is too old to place anything new. `pending`: clusters where the scheduler finds no
    node for some of its Pods, each with the part of them that is ready.
    """

    name: str
    app: str
    kind: str
    amount: float
    placement: str
    labels: Mapping[str, str] = field(default_factory=dict)
    requests: tuple[tuple[str, float], ...] = ()
    replicas: int = 1
    priority: int = 0
    spread: tuple[TopologySpread, ...] = ()
    clusters: tuple[str, ...] = ()
    excluded_clusters: tuple[str, ...] = ()
    affinity: str = ""
    anti_affinity: str = ""
    workload_affinity: str = ""
    workload_anti_affinity: str = ""
    apart_from: tuple[str, ...] = ()
    together_with: tuple[str, ...] = ()
    minimum_score: float | None = None
    move_cost: float = 0.0
    current: tuple[str, ...] = ()
    uses: tuple[tuple[str, float], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    unselectable: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()
    pods: tuple[PodGroup, ...] = ()
    devices: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    pending: tuple[tuple[str, float], ...] = ()

    @property
    def running(self) -> tuple[str, ...]:
        """The clusters where it is placed now, without those where no Pod of it is ready."""
        ready = dict(self.pending)
        return tuple(name for name in self.current if ready.get(name, 1.0))

    @property
    def cluster_selectors(self) -> tuple[str, ...]:
        """The label selectors of clusters that its constraints have."""
        return tuple(filter(None, (self.affinity, self.anti_affinity)))

    @property
    def workload_selectors(self) -> tuple[str, ...]:
        """The label selectors of other workloads that its constraints have."""
        return tuple(filter(None, (self.workload_affinity, self.workload_anti_affinity)))


@dataclass(frozen=True, slots=True)
class Objective:
    """A named score and its weight in the objective.

    With `minimum` and `maximum` a score is clipped and scaled to 0..100:
    100 * (score - minimum) / (maximum - minimum). `invert`: less is better, so 100 - scaled score,
    or -score without a range.
    """

    score: str
    weight: float = 1.0
    minimum: float | None = None
    maximum: float | None = None
    invert: bool = False

    def value(self, score: float) -> float:
        """Return the weighted value of a score."""
        return float(self.values(np.array([score]))[0])

    def values(self, scores: Floats) -> Floats:
        """Return the weighted values of scores; NaN stays NaN."""
        if self.minimum is None or self.maximum is None:
            return self.weight * (-scores if self.invert else scores)
        share = (np.clip(scores, self.minimum, self.maximum) - self.minimum) / (
            self.maximum - self.minimum
        )
        return self.weight * 100 * (1 - share if self.invert else share)


@dataclass(frozen=True, slots=True)
class FleetLimit:
    """A fleet-wide limit: at most `most` of a score, or of an amount named in `uses`.

    It sums over all assignments and enforced policies of the clusters that match `selector`. With
    `per`, the limit holds for each value of this cluster label separately. `moving`: it counts, of
    these workloads, the assignments on clusters where they do not run now. `cluster`: it counts the
    workloads on this cluster.
    """

    name: str
    most: float
    score: str = ""
    uses: str = ""
    selector: str = ""
    per: str = ""
    moving: frozenset[str] = frozenset()
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Clusters, workloads, scores and limits: everything that a problem is formulated from.

    `issues`: what could not be used of the input, missing scores included; `unlisted_issues` counts
    the issues that are not listed because there are too many.
    `omitted_layouts`: the GPU pools for which some useful candidates were not generated.
    `busy_devices_stay`: devices in use survive a change of policy (mig.reconfigure `instance`).
    `tolerations`, `cluster_sets`: of every generated Placement. `avoidance_cost`: at most so much
    of an assignment's value is lost on a cluster that the workload avoids. `optimization`: the name
    of the one that owns what a decision generates.
    """

    namespace: str
    clusters: tuple[Cluster, ...]
    workloads: tuple[Workload, ...]
    scores: Mapping[str, ScoreMatrix]
    objectives: tuple[Objective, ...]
    limits: tuple[FleetLimit, ...] = ()
    issues: tuple[Issue, ...] = ()
    unlisted_issues: int = 0
    omitted_layouts: tuple[OmittedLayouts, ...] = ()
    busy_devices_stay: bool = False
    tolerations: tuple[Toleration, ...] = ()
    cluster_sets: tuple[str, ...] = ()
    avoidance_cost: float = 0.0
    optimization: str = DEFAULT_OPTIMIZATION

    @property
    def owner(self) -> Optimization:
        """The optimization that owns what a decision generates."""
        return Optimization(self.namespace, self.optimization)
