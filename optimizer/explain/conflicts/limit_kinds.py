"""The kinds of limits that can keep a workload out.

Each kind knows the fleet without the limit, what a step of relaxing it costs in a sizing problem
(`repair_sizes`), and which change the solution of that problem asks for.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Supply, Workload
from optimizer.domain.quantity import format_quantity
from optimizer.domain.solution import Decision
from optimizer.explain.conflicts.fleet_changes import (
    AddedSupply,
    LimitChange,
    missing_scores,
    with_cluster,
    with_limit,
    with_scores,
    with_supplies,
    with_workload,
    without_workload,
)
from optimizer.explain.conflicts.supply_amounts import doubling_steps, useful_amount
from optimizer.model.problem import Problem

GIVEN_UP = 1.0
"""Size of dropping a constraint of a workload; other sizes are shares of what there is."""

STOPPED = 2.0
"""Size of stopping another workload: worse than dropping a constraint."""

_UNLIMITED = 1e15
_SMALLEST = 1e-9
"""Guards divisions by amounts that can be 0."""

_ADDED = "added"
"""Prefix of the candidates that stand for steps of supply; no Policy has a slash in its name."""


@dataclass(frozen=True, slots=True)
class RequiredReplicas:
    """A workload to place, and on how many clusters each workload has to run, itself included.

    Workloads that are not in `counts` may run or not.
    """

    workload: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """The best decision of a problem in which limits have a price instead of a bound.

    `fleet` has the limits as they are.
    """

    fleet: Fleet
    required: RequiredReplicas
    problem: Problem
    decision: Decision

    @property
    def target(self) -> Workload:
        """The workload to place."""
        return next(item for item in self.fleet.workloads if item.name == self.required.workload)

    @property
    def clusters(self) -> list[str]:
        """Where the workload to place runs in the decision."""
        placed = self.decision.assignments
        return [item.cluster for item in placed if item.workload == self.required.workload]


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

    @abstractmethod
    def identity(self, renamed: Mapping[str, str]) -> Hashable:
        """Return what makes it the same limit, where workloads have other names."""

    @abstractmethod
    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the limit does not hold."""

    def widen(self, fleet: Fleet, _price: float) -> Fleet:
        """Return the fleet in which the limit has a price: `_price` for its largest change."""
        return self.relax(fleet)

    def use(self, problem: Problem, _required: RequiredReplicas) -> Floats:
        """Return each assignment's use of the limit, at most 1 over all assignments."""
        return np.zeros_like(problem.base)

    def change(self, _sizing: Sizing) -> LimitChange | None:
        """Return the change that a sized problem asks for; None: the limit may stay."""
        return LimitChange(f"give up: {self.message}", self.relax, GIVEN_UP)


@dataclass(frozen=True, eq=False)
class WorkloadConstraint(RelaxableLimit):
    """A constraint of one workload, which `nothing` in a field of it takes away."""

    workload: str
    field: str
    nothing: object

    def identity(self, renamed: Mapping[str, str]) -> Hashable:
        """Return the rule and the workload."""
        return self.rule, renamed.get(self.workload, self.workload)

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the workload lacks the constraint."""
        return with_workload(fleet, self.workload, **{self.field: self.nothing})


class PinnedClusters(WorkloadConstraint):
    """The workload runs only on the clusters that it names."""

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return which clusters to add to those named."""
        allowed = sizing.target.clusters
        added = [item for item in sizing.clusters if item not in allowed]
        if not added:
            return None
        apply = partial(with_workload, name=self.workload, clusters=(*allowed, *added))
        return LimitChange(
            f"let workload {self.workload} run on {', '.join(added)} too", apply, GIVEN_UP
        )


class ExcludedClusters(WorkloadConstraint):
    """The workload does not run on clusters that it names."""

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return which clusters to exclude no longer."""
        excluded, used = sizing.target.excluded_clusters, sizing.clusters
        allowed = [item for item in excluded if item in used]
        if not allowed:
            return None
        left = tuple(item for item in excluded if item not in used)
        apply = partial(with_workload, name=self.workload, excluded_clusters=left)
        message = f"let workload {self.workload} run on {', '.join(allowed)}, which it excludes"
        return LimitChange(message, apply, GIVEN_UP)


class MinimumScore(WorkloadConstraint):
    """The workload accepts no assignment below a value."""

    def use(self, problem: Problem, required: RequiredReplicas) -> Floats:
        """Return how far each of the workload's values lies below its best one."""
        number = problem.workload_index[required.workload]
        row = problem.values[number]
        low, high = float(np.nanmin(row)), float(np.nanmax(row))
        use = np.zeros(problem.values.shape)
        below = high - np.nan_to_num(row, nan=high)
        use[number] = below / max(_SMALLEST, high - low) / _all_replicas(problem)
        return use

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return the highest minimum that the decision meets."""
        problem, before = sizing.problem, sizing.target.minimum_score or 0.0
        own = (item for item in sizing.decision.assignments if item.workload == self.workload)
        at = [found for item in own if (found := problem.indexes(item)) is not None]
        least = min((float(problem.values[found]) for found in at), default=before)
        if least >= before:
            return None
        message = f"lower the minimum of workload {self.workload} from {before:g} to {least:g}"
        size = min(GIVEN_UP, (before - least) / max(abs(before), 1.0))
        return LimitChange(
            message, partial(with_workload, name=self.workload, minimum_score=least), size
        )


@dataclass(frozen=True, eq=False)
class RunningWorkload(RelaxableLimit):
    """Another workload keeps running on as many clusters as now."""

    workload: str

    @property
    def keeps_running(self) -> str:
        """The workload that need not run where the limit is relaxed."""
        return self.workload

    def identity(self, renamed: Mapping[str, str]) -> Hashable:
        """Return the rule and the workload."""
        return self.rule, renamed.get(self.workload, self.workload)

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet as it is: what has to run is no part of it."""
        return fleet

    def change(self, sizing: Sizing) -> LimitChange:
        """Return on how many clusters fewer it runs."""
        name, before = self.workload, sizing.required.counts[self.workload]
        running = sum(item.workload == name for item in sizing.decision.assignments)
        left = min(running, before - 1)
        if left:
            message = f"run workload {name} on {left} clusters instead of {before}"
            return LimitChange(message, partial(with_workload, name=name, replicas=left), STOPPED)
        return LimitChange(f"stop workload {name}", partial(without_workload, name=name), STOPPED)


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

    def identity(self, _renamed: Mapping[str, str]) -> Hashable:
        """Return the rule and the resource."""
        return self.rule, self.resource

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the cluster has enough of the device for all workloads."""
        enough = Supply(self.kind, self.device, useful_amount(fleet, self.kind))
        return with_supplies(fleet, self.cluster, (enough,))

    def widen(self, fleet: Fleet, price: float) -> Fleet:
        """Return the fleet in which steps of more supply are candidates that have a cost."""
        total = useful_amount(fleet, self.kind)
        added = tuple(
            CandidatePolicy(
                f"{self._prefix}{number}",
                (Supply(self.kind, self.device, amount),),
                pool=f"{self._prefix}{number}",
                cost=price * amount / total / 2,
            )
            for number, amount in enumerate(doubling_steps(fleet, self.kind))
        )
        return with_cluster(fleet, self.cluster, partial(_with_candidates, added))

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return how much to add."""
        problem = sizing.problem
        steps = [
            problem.policies[problem.policy_index[item]]
            for item in sizing.decision.policies
            if item.cluster == self.cluster and item.policy.startswith(self._prefix)
        ]
        amount = sum(supply for step in steps for _, supply in step.supplies)
        return self.added(sizing.fleet, amount) if amount else None

    def added(self, fleet: Fleet, amount: float) -> LimitChange:
        """Return so much more of the device on the cluster."""
        what = f"{self.kind} {self.device}".strip()
        message = (
            f"add {format_quantity(amount)} {what} to cluster {self.cluster}{self._whatever(fleet)}"
        )
        supply = Supply(self.kind, self.device, amount)
        apply = partial(with_supplies, cluster=self.cluster, added=(supply,))
        size = amount / useful_amount(fleet, self.kind)
        return AddedSupply(message, apply, size, self.cluster, supply)

    def _whatever(self, fleet: Fleet) -> str:
        """Return the words that tell the addition from more of what one policy supplies."""
        own = next(item for item in fleet.clusters if item.name == self.cluster)
        supplies = (supply for item in own.candidates for supply in item.supplies)
        if any(supply.kind == self.kind for supply in supplies):
            return ", available whichever policy it enforces"
        return ""

    @property
    def _prefix(self) -> str:
        return f"{_ADDED}/{self.kind}/{self.device}/"


@dataclass(frozen=True, eq=False)
class FleetWideLimit(RelaxableLimit):
    """A limit over many clusters, such as power; `per` label value it can be several rows."""

    name: str

    sized: ClassVar[bool] = True

    def identity(self, _renamed: Mapping[str, str]) -> Hashable:
        """Return the rule and the limit's name."""
        return self.rule, self.name

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet without the limit."""
        return replace(fleet, limits=tuple(i for i in fleet.limits if i.name != self.name))

    def widen(self, fleet: Fleet, _price: float) -> Fleet:
        """Return the fleet in which the limit is so high that only its price counts."""
        return with_limit(fleet, self.name, _UNLIMITED)

    def use(self, problem: Problem, _required: RequiredReplicas) -> Floats:
        """Return what each assignment uses of the limit."""
        total = sum(item.of_assignments() for item in problem.limits if self._is(item.name))
        most = float(np.max(total, initial=0.0)) * _all_replicas(problem)
        return np.asarray(total / max(_SMALLEST, most))

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return the value that the decision needs; None where it needs no higher one."""
        before = next(item.most for item in sizing.fleet.limits if item.name == self.name)
        problem, decision = sizing.problem, sizing.decision
        found = [at for item in decision.assignments if (at := problem.indexes(item)) is not None]
        policies = [problem.policy_index[item] for item in decision.policies]
        uses = [0.0]
        for limit in problem.limits:
            if self._is(limit.name):
                used = limit.of_assignments()
                own = sum(float(used[at]) for at in found)
                uses.append(own + sum(float(limit.policies[at]) for at in policies))
        most = max(uses)
        if most <= before:
            return None
        message = f"raise {self.name} from {format_quantity(before)} to {format_quantity(most)}"
        size = (most - before) / max(before, _SMALLEST)
        return LimitChange(message, partial(with_limit, name=self.name, most=most), size)

    def _is(self, row: str) -> bool:
        return row == self.name or row.startswith(f"{self.name} where ")


@dataclass(frozen=True, eq=False)
class OnePolicyPerPool(RelaxableLimit):
    """A pool of a cluster enforces one policy. Nobody can change that."""

    cluster: str
    pool: str

    changeable: ClassVar[bool] = False

    def identity(self, _renamed: Mapping[str, str]) -> Hashable:
        """Return the rule, the cluster and the pool."""
        return self.rule, self.cluster, self.pool

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which every policy of the pool can be enforced at once."""
        return with_cluster(fleet, self.cluster, self._each_its_own_pool)

    def _each_its_own_pool(self, cluster: Cluster) -> Cluster:
        def in_own_pool(item: CandidatePolicy) -> CandidatePolicy:
            return (
                replace(item, pool=f"{self.pool}/{item.policy}") if item.pool == self.pool else item
            )

        return replace(cluster, candidates=tuple(map(in_own_pool, cluster.candidates)))


@dataclass(frozen=True, eq=False)
class MissingScores(RelaxableLimit):
    """An app runs only on devices for which it has a usable score."""

    app: str
    kind: str

    def identity(self, _renamed: Mapping[str, str]) -> Hashable:
        """Return the rule and the app."""
        return self.rule, self.app

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which missing scores of the app are 0."""
        same = (item for item in fleet.workloads if (item.app, item.kind) == (self.app, self.kind))
        return with_scores(fleet, missing_scores(fleet, next(same)))

    def change(self, sizing: Sizing) -> LimitChange:
        """Return which scores have to be delivered."""
        target = sizing.target
        used = {
            (item.cluster, target.app, item.device)
            for item in sizing.decision.assignments
            if item.workload == target.name
        }
        lacking = [item for item in missing_scores(sizing.fleet, target) if item[1] in used]
        where = ", ".join(
            f"{name} for {app} on {device or 'the kind'} of cluster {cluster}"
            for name, (cluster, app, device) in lacking
        )
        apply = partial(with_scores, missing=tuple(lacking))
        return LimitChange(f"deliver a score: {where}", apply, GIVEN_UP)


def _with_candidates(added: tuple[CandidatePolicy, ...], cluster: Cluster) -> Cluster:
    return replace(cluster, candidates=(*cluster.candidates, *added))


def _all_replicas(problem: Problem) -> int:
    """Return the most assignments that a decision can have."""
    return sum(item.replicas for item in problem.workloads)
