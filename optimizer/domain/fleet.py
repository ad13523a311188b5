"""The fleet as the optimizer sees it: frozen values, no Kubernetes objects."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.gpu_layout import NodeLayout, OmittedLayouts
from optimizer.domain.issue import Issue
from optimizer.domain.score_matrix import ScoreMatrix

CLUSTER_NAME_KEY = "metadata.name"
"""The label key that stands for a cluster's name."""


@dataclass(frozen=True, slots=True)
class Selector:
    """How a Placement selects one managed cluster: by a label, or by name where `key` is empty."""

    cluster: str
    key: str = ""


class Supply(NamedTuple):
    """`amount` devices of a kind; an empty device for kinds that have none, such as cpu."""

    kind: str
    device: str
    amount: float


@dataclass(frozen=True, slots=True)
class CandidatePolicy:
    """A policy that a cluster may enforce, and what it supplies then.

    Of the candidates of one pool of a cluster at most one is enforced. `cost`: what changing to
    it costs where it is not `current`. `uses`: what it uses of fleet-wide limits, by name.
    `layouts`: what its GPUs become, where the policy is to be generated; `divided`: the same of a
    listed one that says so.
    """

    policy: str
    supplies: tuple[Supply, ...]
    pool: str = ""
    current: bool = False
    cost: float = 0.0
    uses: tuple[tuple[str, float], ...] = ()
    layouts: tuple[NodeLayout, ...] = ()
    declared_layouts: tuple[NodeLayout, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A managed cluster, its candidates in the order of the request, what it has without any.

    `enforced`: policies in force that the request does not list.
    """

    name: str
    selector: Selector
    candidates: tuple[CandidatePolicy, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    base: tuple[Supply, ...] = ()
    enforced: tuple[CandidatePolicy, ...] = ()

    def label(self, key: str) -> str:
        """Return the value of a label, empty where there is none; CLUSTER_NAME_KEY is the name."""
        return self.name if key == CLUSTER_NAME_KEY else self.labels.get(key, "")

    @property
    def supplies(self) -> Iterator[Supply]:
        """Everything that a candidate supplies, and what the cluster has without any."""
        for candidate in self.candidates:
            yield from candidate.supplies
        yield from self.base


class TopologySpread(NamedTuple):
    """At most `most` places per value of a cluster label, for all workloads of `group` together.

    Workloads share a spread where key, most and group are equal; an empty group is the workload
    alone.
    """

    key: str
    most: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """A ManifestWorkReplicaSet: what it asks for, and the Placement that says where it runs.

    `extras`: (kind, amount) asked beside `amount` of `kind`. `clusters`: only these, where any are
    named. `affinity`, `anti_affinity`: label selectors that a cluster must and must not meet.
    `near`, `apart`: label selectors of workloads that must and must not run on the same cluster.
    `minimum`: least acceptable value of a place. `current`: clusters where it runs now; leaving
    one costs `move_cost`. `uses`: what each replica uses of fleet-wide limits, by name.
    """

    name: str
    app: str
    kind: str
    amount: float
    placement: str
    labels: Mapping[str, str] = field(default_factory=dict)
    extras: tuple[tuple[str, float], ...] = ()
    replicas: int = 1
    priority: int = 0
    spread: tuple[TopologySpread, ...] = ()
    clusters: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    affinity: str = ""
    anti_affinity: str = ""
    near: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    minimum: float | None = None
    move_cost: float = 0.0
    current: tuple[str, ...] = ()
    uses: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Objective:
    """A named score and its weight in the value of a place.

    With `minimum` and `maximum` a score counts from 0 (at the minimum or below) to 100 (at the
    maximum or above), else as it is. `invert`: less is better, 100 - score or -score.
    """

    score: str
    weight: float = 1.0
    minimum: float | None = None
    maximum: float | None = None
    invert: bool = False

    def value(self, score: float) -> float:
        """Return what a score is worth."""
        return float(self.values(np.array([score]))[0])

    def values(self, scores: Floats) -> Floats:
        """Return what scores are worth, NaN where there is none."""
        if self.minimum is None or self.maximum is None:
            return self.weight * (-scores if self.invert else scores)
        share = (np.clip(scores, self.minimum, self.maximum) - self.minimum) / (
            self.maximum - self.minimum
        )
        return self.weight * 100 * (1 - share if self.invert else share)


@dataclass(frozen=True, slots=True)
class FleetLimit:
    """At most `most` of a named score, or of what `uses` calls it, over all places and policies.

    `selector`: only on clusters whose labels meet it. `per`: for each value of this cluster label
    by itself.
    """

    name: str
    most: float
    score: str = ""
    uses: str = ""
    selector: str = ""
    per: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What can be placed where, and named scores.

    `issues`: what the hub holds but could not be used, and pairs without a usable score, of
    which there can be too many: `unlisted_issues` more are only counted.
    `left_out`: the GPU pools of which not every candidate that matters was generated.
    `busy_stay`: busy devices outlast the replacing of a policy (MigOptions.reconfigure `instance`).
    """

    namespace: str
    clusters: tuple[Cluster, ...]
    workloads: tuple[Workload, ...]
    scores: Mapping[str, ScoreMatrix]
    objectives: tuple[Objective, ...]
    limits: tuple[FleetLimit, ...] = ()
    issues: tuple[Issue, ...] = ()
    unlisted_issues: int = 0
    left_out: tuple[OmittedLayouts, ...] = ()
    busy_devices_stay: bool = False
