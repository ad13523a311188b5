"""Why a workload has no place, or fewer than it asks for, and the repair that gives it one more.

A conflict is an irreducible infeasible subsystem of limits: they exclude something together, and
none is redundant.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property

from dsf.api.untrusted_text import counted, listed
from optimizer.candidates.further_layouts import NO_FURTHER_LAYOUTS, FurtherLayouts
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution, TimeLeft, unlimited
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.conflicts.correction_sets import (
    InfeasibleSubsystem,
    LimitSet,
    infeasible_subsystem,
    known_changes,
    minimal_correction_sets,
    sized_repairs,
)
from optimizer.explain.conflicts.feasibility import FeasibilityOracle, KnownAnswers, replica_counts
from optimizer.explain.conflicts.fleet_changes import missing_scores
from optimizer.explain.conflicts.limits import (
    RelaxableLimit,
    RequiredReplicas,
    RunningWorkload,
    WorkloadConstraint,
)
from optimizer.explain.conflicts.relaxable_limits import own_constraints, partners, relaxable_limits
from optimizer.explain.conflicts.repairs import RepairTrials, TriedRepair
from optimizer.explain.forced_problems import solve_with_workload
from optimizer.model.problem import Problem
from optimizer.model.symmetry import relaxation_keys
from optimizer.wire.explanation import ConflictingLimit, UnplacedReason

_SHOWN_CLUSTERS = 3
"""Clusters that a message names."""

_MOST_CONSTRAINTS = 50
"""Constraints of other workloads that are tried: each takes solves."""

_NO_ROOM = "these limits together leave no room{} while everything else keeps its place"
_ROOM = "there is room for it"


def short_of_replicas(fleet: Fleet, solution: Solution) -> tuple[str, ...]:
    """Return the workloads that run on fewer clusters than they ask for, in their order."""
    found = replica_counts(solution.decision)
    return tuple(w.name for w in fleet.workloads if found.get(w.name, 0) < w.replicas)


class UnplacedReasons:
    """Why workloads lack a place; what holds for interchangeable workloads is computed once.

    `late`: the workloads for which the time allowed only a part of the reason.
    """

    def __init__(
        self,
        fleet: Fleet,
        problem: Problem,
        solution: Solution,
        solve: ProblemSolver,
        time_left: TimeLeft = unlimited,
        layouts: FurtherLayouts = NO_FURTHER_LAYOUTS,
    ) -> None:
        self._fleet, self._problem, self._solution = fleet, problem, solution
        self._solve, self._time_left = solve, time_left
        self._layouts = layouts
        self._counts = replica_counts(solution.decision)
        self._trials = RepairTrials(fleet, solve)
        self._known = defaultdict[Hashable, KnownAnswers](KnownAnswers)
        self.late: list[str] = []

    def of(self, workload: str) -> UnplacedReason:
        """Return what keeps a workload from one more place, and the cheapest repair.

        Raises BudgetExceeded where the time allowed nothing of that.
        """
        if not self._time_left():
            raise BudgetExceeded
        counts = {**self._counts, workload: self._counts.get(workload, 0) + 1}
        required = RequiredReplicas(workload, counts)
        if counts[workload] > len(self._fleet.clusters):
            message = (
                "it already runs on every cluster that the request names: name another cluster, or"
                f" ask for {counted(counts[workload] - 1, 'replica')}"
            )
            return UnplacedReason(workload=workload, message=message)
        known = self._known[self._symmetry_keys[workload]]
        limits = relaxable_limits(self._fleet, required, self._layouts, known.nodes)
        oracle = FeasibilityOracle(
            self._fleet, required, limits, self._solve, self._time_left, known
        )
        room = oracle.feasible(())
        if room is None:
            self.late.append(workload)
            return UnplacedReason(workload=workload, message="not computed in time")
        return self._does_not_pay(required) if room else self._no_room(oracle)

    @cached_property
    def _symmetry_keys(self) -> Mapping[str, Hashable]:
        """By workload, a key that is equal where the same reasons hold."""
        apps = {
            item.app for item in self._fleet.workloads if any(missing_scores(self._fleet, item))
        }
        return relaxation_keys(self._fleet, self._counts, apps)

    def _no_room(self, oracle: FeasibilityOracle) -> UnplacedReason:
        """Return an irreducible conflict and its repair."""
        name = oracle.required.workload
        oracle.learn_from(self._solution.decision)
        if oracle.feasible_with(()) is False:
            message = "there is no room for it, whichever limits are changed"
            return UnplacedReason(workload=name, message=message)
        oracle, found = self._conflict(oracle)
        clusters, where = [item.name for item in self._fleet.clusters], ""
        rules = {item.rule for item in found.members}
        if rules & {"apart", "spread"} and "pinned" not in rules:
            where = f" on {counted(len(clusters), 'cluster')} ({listed(clusters, _SHOWN_CLUSTERS)})"
        reason = UnplacedReason(
            workload=name,
            message=_NO_ROOM.format(where),
            limits=tuple(
                ConflictingLimit(rule=item.rule, message=item.message) for item in found.members
            ),
            irreducible=found.irreducible,
        )

        def cheapest() -> TriedRepair | None:
            repairs = sized_repairs(oracle, minimal_correction_sets(oracle, found.members))
            return self._trials.cheapest(oracle.required, repairs)

        return self._with_repair(reason, oracle.required, cheapest, oracle)

    def _conflict(
        self, oracle: FeasibilityOracle
    ) -> tuple[FeasibilityOracle, InfeasibleSubsystem[RelaxableLimit]]:
        """Return an irreducible conflict, with what other workloads in it state if it needs that.

        The oracle has these constraints among its limits. Where no time is left, they are missing.
        """
        found = infeasible_subsystem(oracle.limits, oracle.feasible_with)
        while stated := _unnamed_constraints(oracle, found.members):
            limits, held = (*oracle.limits, *stated), found.members
            wide = FeasibilityOracle(
                self._fleet, oracle.required, limits, self._solve, self._time_left, oracle.known
            )
            every = sorted((*held, *stated), key=lambda item: isinstance(item, RunningWorkload))
            try:
                if wide.feasible_with(held) is not True:
                    break
                oracle, found = wide, infeasible_subsystem(every, wide.feasible_with)
            except BudgetExceeded:
                break
        return oracle, found

    def _with_repair(
        self,
        reason: UnplacedReason,
        required: RequiredReplicas,
        find: Callable[[], TriedRepair | None],
        oracle: FeasibilityOracle | None = None,
    ) -> UnplacedReason:
        """Return a reason with its repair, or where the time is over with one that is known."""
        try:
            tried = find()
        except BudgetExceeded:
            self.late.append(required.workload)
            known = known_changes(oracle) if oracle else ()
            late = "a cheaper change" if known else "what would change that"
            message = f"{reason.message}; {late} was not computed in time"
            remedy = TriedRepair(known, *self._now).value(required) if known else None
            return reason.model_copy(update={"message": message, "remedy": remedy})
        return reason.model_copy(update={"remedy": tried and tried.value(required)})

    @property
    def _now(self) -> tuple[Fleet, Problem, Solution]:
        return self._fleet, self._problem, self._solution

    def _does_not_pay(self, required: RequiredReplicas) -> UnplacedReason:
        """Return what placing a workload costs that has room: others use it better."""
        problem, solution, name = self._problem, self._solution, required.workload
        if solution.status == "Feasible":
            message = (
                f"{_ROOM}; what it costs is not known, as the plan is not proven to be the best"
            )
            return UnplacedReason(workload=name, message=message)
        forced = solve_with_workload(problem, solution, name, required.counts[name], self._solve)
        if forced.lost is None:
            self.late.append(name)
            message = f"{_ROOM}; what placing it would cost was not computed in time"
            return UnplacedReason(workload=name, message=message)
        cost = forced.lost
        message = f"{_ROOM}, but the best solution that has it is worth {cost.total:g} less"
        if cost.total <= 0:
            message = f"{_ROOM}, and a solution with it is worth as much"
        now = TriedRepair((), *self._now)
        return self._with_repair(
            UnplacedReason(workload=name, message=message, lost=cost),
            required,
            lambda: self._trials.raised(required, now, forced),
        )


def _unnamed_constraints(
    oracle: FeasibilityOracle, members: LimitSet
) -> tuple[WorkloadConstraint, ...]:
    """Return what others state that a conflict needs to run, unless the oracle has it as a limit.

    Empty also where that is too much to be told.
    """
    known = {(i.workload, i.field) for i in oracle.limits if isinstance(i, WorkloadConstraint)}
    needed = {item.workload for item in members if isinstance(item, RunningWorkload)}
    for item in members:
        if isinstance(item, WorkloadConstraint) and item.rule == "near":
            needed |= partners(oracle.fleet, item.workload)
    found = tuple(
        limit
        for item in oracle.fleet.workloads
        if item.name in needed
        for limit in own_constraints(oracle.fleet, item)
        if (limit.workload, limit.field) not in known
    )
    return found if len(found) <= _MOST_CONSTRAINTS else ()
