"""The kinds of limits that can keep a workload out.

Each kind knows the fleet without the limit. `repairs.limit_changes` decides by how much it changes.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from optimizer.candidates.further_layouts import FurtherLayout
from optimizer.domain.fleet import Cluster, Fleet, Supply, Workload
from optimizer.explain.conflicts.fleet_changes import (
    missing_scores,
    with_candidates,
    with_cluster,
    with_scores,
    with_supplies,
    with_workload,
)
from optimizer.explain.conflicts.supply_amounts import useful_amount

UNCONSTRAINED = {item.name: item.default for item in fields(Workload)}
"""The values of a workload's fields by which it has no constraint."""


@dataclass(frozen=True, slots=True)
class RequiredReplicas:
    """A workload to place, and on how many clusters each workload has to run, itself included.

    Workloads that are not in `counts` may run or not.
    """

    workload: str
    counts: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class RelaxableLimit(ABC):
    """A limit by its rule's name and in words. Relaxing one never makes anything impossible.

    `changeable`: somebody could change it. `sized`: it has an amount, which a sizing problem
    prices by steps.
    """

    rule: str
    message: str

    changeable: ClassVar[bool] = True
    sized: ClassVar[bool] = False

    @property
    def keeps_running(self) -> str:
        """The workload that need not run where the limit is relaxed; empty: none."""
        return ""

    def identity(self, renamed: Mapping[str, str]) -> Hashable:
        """Return what makes it the same limit, where workloads have other names."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        values["message"] = ""
        if "workload" in values:
            values["workload"] = renamed.get(values["workload"], values["workload"])
        return tuple(values.values())

    @abstractmethod
    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the limit does not hold."""


@dataclass(frozen=True, eq=False)
class WorkloadConstraint(RelaxableLimit):
    """A constraint of one workload, by the field that states it."""

    workload: str
    field: str

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the workload lacks the constraint."""
        return with_workload(fleet, self.workload, **{self.field: UNCONSTRAINED[self.field]})


@dataclass(frozen=True, eq=False)
class RunningWorkload(RelaxableLimit):
    """Another workload keeps running on as many clusters as now."""

    workload: str

    @property
    def keeps_running(self) -> str:
        """The workload."""
        return self.workload

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet as it is, because what has to run is no part of it."""
        return fleet


@dataclass(frozen=True, eq=False)
class SuppliedCapacity(RelaxableLimit):
    """What a cluster supplies of a device at most."""

    cluster: str
    kind: str
    device: str

    sized: ClassVar[bool] = True

    @property
    def resource(self) -> tuple[str, str, str]:
        """Cluster, kind and device."""
        return self.cluster, self.kind, self.device

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the cluster has enough of the device for all workloads."""
        enough = Supply(self.kind, self.device, useful_amount(fleet, self.kind))
        return with_supplies(fleet, self.cluster, (enough,))


@dataclass(frozen=True, eq=False)
class FleetWideLimit(RelaxableLimit):
    """A limit over many clusters, such as power; `per` label value it can be several rows."""

    name: str

    sized: ClassVar[bool] = True

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet without the limit."""
        return replace(fleet, limits=tuple(i for i in fleet.limits if i.name != self.name))


@dataclass(frozen=True, eq=False)
class CandidateLayouts(RelaxableLimit):
    """The GPUs of a pool get only the layouts of its candidates."""

    cluster: str
    further: tuple[FurtherLayout, ...]

    sized: ClassVar[bool] = True

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the pool can have the further layouts too."""
        return with_candidates(fleet, self.cluster, (item.policy for item in self.further))


@dataclass(frozen=True, eq=False)
class OnePolicyPerPool(RelaxableLimit):
    """A pool of a cluster enforces one policy. Nobody can change that."""

    cluster: str
    pool: str

    changeable: ClassVar[bool] = False

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which every policy of the pool can be enforced at once."""
        return with_cluster(fleet, self.cluster, self._each_its_own_pool)

    def _each_its_own_pool(self, cluster: Cluster) -> Cluster:
        candidates = (
            replace(item, pool=f"{self.pool}/{item.policy}") if item.pool == self.pool else item
            for item in cluster.candidates
        )
        return replace(cluster, candidates=tuple(candidates))


@dataclass(frozen=True, eq=False)
class MissingScores(RelaxableLimit):
    """An app runs only on devices for which it has a usable score."""

    app: str
    kind: str

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which missing scores of the app are 0."""
        same = (item for item in fleet.workloads if (item.app, item.kind) == (self.app, self.kind))
        return with_scores(fleet, missing_scores(fleet, next(same)))
