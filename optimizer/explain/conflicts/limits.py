"""The limits that can keep a workload out: what each forbids, and the change that gives way.

Relaxing one never makes anything impossible, so conflicts among them can be found by halving
(QuickXplain). In a sizing problem a limit has a price instead of a bound: `priced` and `use` state
it, and `change` reads the change from the best decision. `supply_limits` has the limits of what
clusters supply, and `relaxable_limits` finds all of a fleet.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import counted, listed
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import Fleet, Workload
from optimizer.domain.solution import Assignment, Decision
from optimizer.explain.conflicts.fleet_changes import (
    LimitChange,
    ScoreKey,
    missing_scores,
    with_cluster,
    with_limit,
    with_scores,
    with_workload,
    without_workload,
)
from optimizer.model.problem import Problem

UNCONSTRAINED = {item.name: item.default for item in fields(Workload)}
"""The values of a workload's fields by which it has no constraint."""

GIVEN_UP = 1.0
"""Size of dropping a constraint of a workload; other sizes are shares of the present limit."""

_STOPPED = 2.0
"""Size of stopping another workload: worse than dropping a constraint."""

_UNLIMITED = 1e15
"""A fleet-wide limit that no use reaches."""

_SMALLEST = 1e-9
"""Guards divisions by amounts that can be 0."""


@dataclass(frozen=True, slots=True)
class RequiredReplicas:
    """A workload to place, and on how many clusters each workload has to run, itself included.

    Workloads that are not in `counts` may run or not.
    """

    workload: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """The best decision of a sizing problem; `fleet` has the limits as they are."""

    fleet: Fleet
    required: RequiredReplicas
    problem: Problem
    decision: Decision

    @property
    def target(self) -> Workload:
        """The workload to place."""
        return self.workload(self.required.workload)

    @property
    def assignments(self) -> list[Assignment]:
        """The assignments of the workload to place."""
        return self.assignments_of(self.required.workload)

    def workload(self, name: str) -> Workload:
        """Return a workload by its name."""
        return next(item for item in self.fleet.workloads if item.name == name)

    def assignments_of(self, name: str) -> list[Assignment]:
        """Return the assignments of a workload."""
        return [item for item in self.decision.assignments if item.workload == name]


@dataclass(frozen=True, eq=False)
class RelaxableLimit(ABC):
    """A limit by its rule's name and in words.

    `changeable`: somebody could change it. `sized`: the change is an amount, which names no
    workload.
    """

    rule: str
    message: str

    changeable: ClassVar[bool] = True
    sized: ClassVar[bool] = False

    def identity(self, target: str) -> Hashable:
        """Return what makes it the same limit for all that are interchangeable with `target`."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        own = values.get("workload") == target
        return tuple((values | {"message": ""} | ({"workload": ""} if own else {})).values())

    @abstractmethod
    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the limit does not hold."""

    def priced(self, fleet: Fleet, _price: float, /) -> Fleet:
        """Return the fleet in which the limit has a price for its largest change, or is gone."""
        return self.relax(fleet)

    def use(self, problem: Problem) -> Floats:
        """Return each assignment's use of the limit, at most 1 over all of a decision."""
        return np.zeros(problem.values.shape)

    def change(self, _sizing: Sizing, /) -> LimitChange | None:
        """Return the change that the best decision needs; None: the limit may stay."""
        return LimitChange(f"drop the constraint: {self.message}", self.relax, GIVEN_UP)


_BARRED = {
    "excluded_clusters": ", which it excludes",
    "unseen": ", whose inventory is too old: see the issues of the plan",
    "unselectable": ", which OCM can't select for it: see the issues of the plan",
}


@dataclass(frozen=True, eq=False)
class WorkloadConstraint(RelaxableLimit):
    """A constraint of one workload, by the field that states it."""

    workload: str
    field: str

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which the workload lacks the constraint."""
        return with_workload(fleet, self.workload, **{self.field: UNCONSTRAINED[self.field]})

    def use(self, problem: Problem) -> Floats:
        """Return, for a minimum, how far each value of the workload lies below its best one."""
        use = super().use(problem)
        if self.field == "minimum_score":
            number = problem.workload_index[self.workload]
            low, high = (float(of(problem.values[number])) for of in (np.nanmin, np.nanmax))
            below = high - np.nan_to_num(problem.values[number], nan=high)
            use[number] = below / max(_SMALLEST, high - low) / _replicas(problem)
        return use

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return a change of the clusters or of the minimum; other constraints are given up."""
        if self.field == "minimum_score":
            return self._lower_minimum(sizing)
        if self.field in ("clusters", "devices") or self.field in _BARRED:
            return self._more_places(sizing)
        return super().change(sizing)

    def _more_places(self, sizing: Sizing) -> LimitChange | None:
        """Return which clusters or devices to add to those named, or to exclude no longer."""
        named, device = getattr(sizing.workload(self.workload), self.field), self.field == "devices"
        placed = sizing.assignments_of(self.workload)
        used = [item.device if device else item.cluster for item in placed]
        if self.field in ("clusters", "devices"):
            added, how = [item for item in used if item not in named], " too"
            left = (*named, *added)
        else:
            added, how = [item for item in named if item in used], _BARRED[self.field]
            left = tuple(item for item in named if item not in used)
        if not added:
            return None
        where = f"{'device ' if device else ''}{listed(dict.fromkeys(added))}"
        message = f"let workload {self.workload} run on {where}{how}"
        changed: dict[str, Any] = {self.field: left}
        apply = partial(with_workload, name=self.workload, **changed)
        return LimitChange(message, apply, GIVEN_UP)

    def _lower_minimum(self, sizing: Sizing) -> LimitChange | None:
        """Return the highest minimum that the decision meets."""
        name = self.workload
        before = sizing.workload(name).minimum_score or 0.0
        least = min(map(sizing.problem.score, sizing.assignments_of(name)), default=before)
        if least >= before:
            return None
        message = f"lower the minimum of workload {name} from {before:g} to {least:g}"
        apply = partial(with_workload, name=name, minimum_score=least)
        return LimitChange(message, apply, min(GIVEN_UP, (before - least) / max(abs(before), 1.0)))


@dataclass(frozen=True, eq=False)
class DrainedCluster(RelaxableLimit):
    """No workload runs on a cluster, because it is drained."""

    cluster: str

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which workloads may run on the cluster."""
        return with_cluster(fleet, self.cluster, lambda item: replace(item, drained=""))

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return that the cluster is used again, if the decision uses it."""
        if all(item.cluster != self.cluster for item in sizing.decision.assignments):
            return None
        return LimitChange(f"end the drain of cluster {self.cluster}", self.relax, GIVEN_UP)


@dataclass(frozen=True, eq=False)
class RunningWorkload(RelaxableLimit):
    """Another workload keeps running on as many clusters as now."""

    workload: str

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet as it is, because what has to run is no part of it."""
        return fleet

    def change(self, sizing: Sizing) -> LimitChange:
        """Return on how many clusters fewer the workload runs."""
        name, before = self.workload, sizing.required.counts[self.workload]
        runs = sum(item.workload == name for item in sizing.decision.assignments)
        left = min(runs, before - 1)
        if left:
            message = f"run workload {name} on {left} clusters instead of {before}"
            return LimitChange(message, partial(with_workload, name=name, replicas=left), _STOPPED)
        message = f"{'stop' if sizing.workload(name).current else 'leave out'} workload {name}"
        return LimitChange(message, partial(without_workload, name=name), _STOPPED)


@dataclass(frozen=True, eq=False)
class FleetWideLimit(RelaxableLimit):
    """A limit over many clusters, such as power; `per` label value it can be several rows."""

    name: str

    sized: ClassVar[bool] = True

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet without the limit."""
        return replace(fleet, limits=tuple(i for i in fleet.limits if i.name != self.name))

    def priced(self, fleet: Fleet, _price: float, /) -> Fleet:
        """Return the fleet in which the limit never binds; what uses it is priced by `use`."""
        return with_limit(fleet, self.name, _UNLIMITED)

    def use(self, problem: Problem) -> Floats:
        """Return the sum over the rows, relative to the largest."""
        total = sum((uses for uses, _ in self._rows(problem)), super().use(problem))
        return total / max(_SMALLEST, float(total.max(initial=0.0)) * _replicas(problem))

    def change(self, sizing: Sizing) -> LimitChange | None:
        """Return the value that the decision needs; None where it needs no higher one."""
        limit = next(item for item in sizing.fleet.limits if item.name == self.name)
        before = limit.most
        policies, pairs = sizing.problem.numbered(sizing.decision)
        needed = (
            sum(float(uses[at]) for at in pairs) + float(by_policy[policies].sum())
            for uses, by_policy in self._rows(sizing.problem)
        )
        most = max(needed, default=0.0)
        if most <= before:
            return None
        message = f"raise {self.name} from {format_quantity(before)} to {format_quantity(most)}"
        if limit.cluster:
            many = counted(int(most), "workload")
            message = f"let cluster {limit.cluster} run {many} instead of {before:g}"
        apply = partial(with_limit, name=self.name, most=most)
        return LimitChange(message, apply, (most - before) / (before or most))

    def _rows(self, problem: Problem) -> list[tuple[Floats, Floats]]:
        """Return what assignments and policies use in each of the limit's rows."""
        return [
            (row.of_assignments(), row.policies)
            for row in problem.limits
            if row.name == self.name or row.name.startswith(f"{self.name} where ")
        ]


@dataclass(frozen=True, eq=False)
class MissingScores(RelaxableLimit):
    """An app runs only on devices for which it has a usable score."""

    app: str
    kind: str

    def relax(self, fleet: Fleet) -> Fleet:
        """Return the fleet in which missing scores of the app are 0."""
        same = (item for item in fleet.workloads if (item.app, item.kind) == (self.app, self.kind))
        return with_scores(fleet, missing_scores(fleet, next(same)))

    def change(self, sizing: Sizing) -> LimitChange:
        """Return which scores have to be delivered."""
        target = sizing.target
        used = {(item.cluster, target.app, item.device) for item in sizing.assignments}
        lacking = [item for item in missing_scores(sizing.fleet, target) if item[1] in used]
        # Scores of devices that it may not use are not read, so they may exist.
        unread = target.devices and not {item.device for item in sizing.assignments} & {
            *target.devices
        }
        return delivered_scores(lacking, unread=bool(unread))


def delivered_scores(
    lacking: Sequence[ScoreKey], *, unread: bool, value: float = 0.0
) -> LimitChange:
    """Return that scores of a value are delivered; `unread`: which may exist."""
    where = ", ".join(
        f"{name} for {app} on {device or 'the kind'} of cluster {cluster}"
        for name, (cluster, app, device) in lacking
    )
    unless = " unless there is one" if unread else ""
    apply = partial(with_scores, missing=tuple(lacking), value=value)
    return LimitChange(f"deliver a score{unless}: {where}", apply, GIVEN_UP)


def _replicas(problem: Problem) -> int:
    return sum(item.replicas for item in problem.workloads)
