"""Every limit of a fleet that can keep a workload out: by name, and the fleet without it.

Relaxing one never makes anything impossible, so conflicts among them can be found by halving
(QuickXplain). What no change can give is not among them: a workload runs once per cluster.
`limit_changes` decides by how much a limit changes.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import ClassVar

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import listed
from dsf.kube.selectors import valid_selector
from optimizer.candidates.further_layouts import NO_FURTHER_LAYOUTS, FurtherLayout, FurtherLayouts
from optimizer.domain.fleet import Cluster, Fleet, Supply, Workload
from optimizer.explain.conflicts.fleet_changes import (
    missing_scores,
    supplied,
    useful_amount,
    with_candidates,
    with_cluster,
    with_scores,
    with_supplies,
    with_workload,
)
from optimizer.model.problem import NO_DEVICE

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


def relaxable_limits(
    fleet: Fleet, required: RequiredReplicas, layouts: FurtherLayouts = NO_FURTHER_LAYOUTS
) -> tuple[RelaxableLimit, ...]:
    """Return every limit on one more assignment of a workload, its own constraints first."""
    target = next(item for item in fleet.workloads if item.name == required.workload)
    return (
        *_own_constraints(target),
        *_anti_affinities_to(fleet, target),
        *_fleet_wide(fleet),
        *_capacities(fleet),
        *_candidate_layouts(layouts),
        *_pools(fleet),
        *_unscored(fleet, target),
        *_running(required),
    )


def relaxed(fleet: Fleet, limits: Iterable[RelaxableLimit]) -> Fleet:
    """Return the fleet in which some limits do not hold."""
    return reduce(lambda made, limit: limit.relax(made), limits, fleet)


def _own_constraints(target: Workload) -> Iterator[RelaxableLimit]:
    spreads = ", ".join(
        f"at most {item.most} {f'of group {item.group} ' if item.group else ''}per {item.key}"
        for item in target.spread
    )
    for rule, field, says in (
        ("pinned", "clusters", f"runs only on {listed(target.clusters)}"),
        ("excluded", "excluded_clusters", f"never runs on {listed(target.excluded_clusters)}"),
        (
            "selectable",
            "unselectable",
            f"has a Placement for which OCM can't select {listed(target.unselectable)}",
        ),
        ("affinity", "affinity", f"runs only on clusters that match {target.affinity}"),
        (
            "anti-affinity",
            "anti_affinity",
            f"runs on no cluster that matches {target.anti_affinity}",
        ),
        ("minimum", "minimum_score", f"accepts no score below {target.minimum_score or 0:g}"),
        ("spread", "spread", f"spreads: {spreads}"),
        ("near", "workload_affinity", f"needs a workload that matches {target.workload_affinity}"),
    ):
        if getattr(target, field) != UNCONSTRAINED[field]:
            yield WorkloadConstraint(rule, f"workload {target.name} {says}", target.name, field)
    if target.workload_anti_affinity:
        yield _anti_affinity(target)


def _anti_affinity(item: Workload) -> WorkloadConstraint:
    message = f"workload {item.name} shares no cluster with {item.workload_anti_affinity}"
    return WorkloadConstraint("apart", message, item.name, "workload_anti_affinity")


def _anti_affinities_to(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    """Yield the constraints by which other workloads exclude this one from their clusters."""
    for item in fleet.workloads:
        text = item.workload_anti_affinity
        if text and item.name != target.name and valid_selector(text).matches(target.labels):
            yield _anti_affinity(item)


def _fleet_wide(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for limit in fleet.limits:
        per = f" per {limit.per}" if limit.per else ""
        message = f"{limit.name} is at most {format_quantity(limit.most)}{per}"
        yield FleetWideLimit("limits", message, limit.name)


def _capacities(fleet: Fleet) -> Iterator[RelaxableLimit]:
    """Yield what each cluster supplies of devices that workloads could use."""
    kinds = {item.kind for item in fleet.workloads}
    further = {kind for item in fleet.workloads for kind, _ in item.requests}
    for cluster in fleet.clusters:
        resources = {(supply.kind, supply.device) for supply in supplied(cluster)}
        lacking = kinds - {kind for kind, _ in resources} - further
        resources |= {(kind, NO_DEVICE) for kind in further | lacking}
        for kind, device in sorted(resources):
            if kind in kinds | further:
                yield _capacity(cluster, kind, device)


def _capacity(cluster: Cluster, kind: str, device: str) -> RelaxableLimit:
    amounts = (item.amount for item in supplied(cluster) if item[:2] == (kind, device))
    what = f"{format_quantity(max(amounts, default=0.0))} {kind} {device}".strip()
    message = f"cluster {cluster.name} supplies at most {what}"
    return SuppliedCapacity("capacity", message, cluster.name, kind, device)


def _candidate_layouts(layouts: FurtherLayouts) -> Iterator[RelaxableLimit]:
    """Yield that a pool has no other layouts; before `_pools`, which puts candidates apart."""
    for (cluster, pool), further in layouts.items():
        used = sorted({name for item in further for name in item.freed})
        where = f"pool {pool} of cluster {cluster}" if pool else f"cluster {cluster}"
        message = f"{where} has candidates for only some layouts of its GPUs"
        if used:
            message = f"{where} keeps the layout of GPUs in use: {listed(used)}"
        yield CandidateLayouts("layouts", message, cluster, further)


def _pools(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for cluster in fleet.clusters:
        for pool in dict.fromkeys(item.pool for item in cluster.candidates):
            if sum(item.pool == pool for item in cluster.candidates) > 1:
                where = f"pool {pool} of cluster" if pool else "cluster"
                message = f"{where} {cluster.name} enforces one policy"
                yield OnePolicyPerPool("one_policy_per_pool", message, cluster.name, pool)


def _unscored(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    if any(missing_scores(fleet, target)):
        message = f"app {target.app} runs only on devices for which it has a usable score"
        yield MissingScores("unscored", message, target.app, target.kind)


def _running(required: RequiredReplicas) -> Iterator[RelaxableLimit]:
    for name, count in required.counts.items():
        if name != required.workload and count:
            where = "keeps running" if count == 1 else f"keeps running on {count} clusters"
            yield RunningWorkload("runs", f"workload {name} {where}", name)
