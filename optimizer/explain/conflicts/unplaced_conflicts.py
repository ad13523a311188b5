"""Why a workload has no place, or fewer than it asks for, and the repair that gives it one more.

A conflict is an irreducible infeasible subsystem (IIS): its limits exclude something together, and
none is redundant. QuickXplain (U. Junker, AAAI 2004) halves the limits and needs about k log(n/k)
tests for k members among n limits. Each member is proven to be needed if every test has an answer.

Minimal correction sets are the smallest sets of limits that make room when they are relaxed. Each
meets every infeasible subsystem, so they are grown from such subsystems, fewest members first
(hitting-set tree; Reiter, Artificial Intelligence 32, 1987).
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from typing import Generic, TypeVar

from optimizer.candidates.further_layouts import NO_FURTHER_LAYOUTS, FurtherLayouts
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution, TimeLeft, unlimited
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.conflicts.feasibility import FeasibilityOracle, KnownAnswers, replica_counts
from optimizer.explain.conflicts.fleet_changes import missing_scores
from optimizer.explain.conflicts.limits import RelaxableLimit, RequiredReplicas
from optimizer.explain.conflicts.relaxable_limits import relaxable_limits
from optimizer.explain.conflicts.repairs import (
    LimitChanges,
    RepairTrials,
    TriedRepair,
    least_changes,
    rank,
)
from optimizer.explain.conflicts.supply_limits import NodeBoundary, SuppliedCapacity
from optimizer.explain.forced_problems import solve_with_workload
from optimizer.explain.tuning import SIZED_CORRECTION_SETS, TESTED_CORRECTION_SETS
from optimizer.model.problem import Problem
from optimizer.model.symmetry import relaxation_keys
from optimizer.wire.explanation import ConflictingLimit, UnplacedReason

T = TypeVar("T")

FeasibilityTest = Callable[[Sequence[T]], bool | None]
"""Tells whether all required replicas can run while these limits hold; None: not known."""


@dataclass(frozen=True, slots=True)
class InfeasibleSubsystem(Generic[T]):
    """Limits that no decision keeps together; irreducible: without any one of them some does."""

    members: tuple[T, ...]
    irreducible: bool


def infeasible_subsystem(
    limits: Sequence[T], possible: FeasibilityTest[T]
) -> InfeasibleSubsystem[T]:
    """Return an infeasible subsystem of limits that are infeasible together, in their order.

    A test without an answer leaves its limit in, and the result is not called irreducible.
    """
    answers = {possible(())}

    def infeasible(held: Sequence[T]) -> bool:
        answer = possible(held)
        answers.add(answer)
        return answer is False

    found = _quickxplain((), list(limits), infeasible, grown=False)
    members = tuple(item for item in limits if item in found)
    return InfeasibleSubsystem(members, irreducible=None not in answers)


def _quickxplain(
    held: Sequence[T], limits: list[T], infeasible: Callable[[Sequence[T]], bool], *, grown: bool
) -> list[T]:
    if grown and infeasible(held):
        return []
    if len(limits) <= 1:
        return limits
    half = len(limits) // 2
    first, second = limits[:half], limits[half:]
    later = _quickxplain([*held, *first], second, infeasible, grown=True)
    sooner = _quickxplain([*held, *later], first, infeasible, grown=bool(later))
    return [*sooner, *later]


MAX_LIMITS = 5
"""Limits in a correction set: nobody changes more than a handful for one workload."""

LimitSet = tuple[RelaxableLimit, ...]


def minimal_correction_sets(oracle: FeasibilityOracle, first: LimitSet) -> list[LimitSet]:
    """Return the smallest correction sets that are found, given one infeasible subsystem.

    Sets of several limits are looked for only where no supply of that many limits is known to do.
    """
    subsystems, level = list[LimitSet]([first]), list[LimitSet]([()])
    for size in range(1, MAX_LIMITS + 1):
        if size > 1 and (known := oracle.supply_sets(size)):
            return [min(known, key=partial(_lacking, oracle))]
        found, left = list[LimitSet](), list[LimitSet]()
        grown = sorted(_grown(oracle, level, subsystems), key=partial(_lacking, oracle))
        for relaxing in grown[:TESTED_CORRECTION_SETS]:
            answer = oracle.feasible(relaxing)
            if answer is not None:
                (found if answer else left).append(relaxing)
        if found:
            return found[:SIZED_CORRECTION_SETS]
        level = left
    return []


def known_changes(oracle: FeasibilityOracle) -> LimitChanges:
    """Return the fewest changes of supply that are known to make room, without a solve."""
    sets = oracle.supply_sets(1) or oracle.supply_sets(2)
    lacking = oracle.known.lacking
    return tuple(
        limit.grown(oracle.fleet, lacking[key], oracle.required.workload)
        for limit in min(sets, key=partial(_lacking, oracle), default=())
        for key in oracle.keys_of([limit])
        if isinstance(limit, SuppliedCapacity | NodeBoundary) and key in lacking
    )


def _lacking(oracle: FeasibilityOracle, relaxing: LimitSet) -> float:
    """Return how much supply is lacking; infinity where that is not known."""
    return sum(oracle.known.lacking.get(key, inf) for key in oracle.keys_of(relaxing))


def sized_repairs(oracle: FeasibilityOracle, sets: Iterable[LimitSet]) -> list[LimitChanges]:
    """Return the least changes that make room for each correction set, the cheapest first."""
    found = [_least_changes(oracle, relaxing) for relaxing in sets]
    return sorted((changes for changes in found if changes), key=rank)


def _least_changes(oracle: FeasibilityOracle, limits: LimitSet) -> LimitChanges | None:
    """Return the least changes of limits; those that name no workload are found once."""
    if not all(item.sized for item in limits):
        return least_changes(oracle, limits)
    key = frozenset(oracle.keys_of(limits))
    if key not in oracle.known.changes:
        oracle.known.changes[key] = least_changes(oracle, limits)
    return oracle.known.changes[key]


def _grown(
    oracle: FeasibilityOracle, level: Sequence[LimitSet], subsystems: list[LimitSet]
) -> list[LimitSet]:
    """Return each set with one more changeable member, from a subsystem that the set misses."""
    sets: dict[frozenset[int], LimitSet] = {}
    for relaxing in level:
        missed = next((item for item in subsystems if not set(item) & set(relaxing)), None)
        if missed is None:
            left = [item for item in oracle.limits if item not in relaxing]
            missed = infeasible_subsystem(left, oracle.feasible_with).members
            subsystems.append(missed)
        for item in missed:
            if item.changeable:
                sets.setdefault(frozenset(map(id, (*relaxing, item))), (*relaxing, item))
    return list(sets.values())


_NO_ROOM = "these limits together leave no room while everything placed keeps running"
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
            message = "it already runs on every cluster that the request names"
            return UnplacedReason(workload=workload, message=message)
        limits = relaxable_limits(self._fleet, required, self._layouts)
        known = self._known[self._symmetry_keys[workload]]
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
        found = infeasible_subsystem(oracle.limits, oracle.feasible_with)
        reason = UnplacedReason(
            workload=name,
            message=_NO_ROOM,
            limits=tuple(
                ConflictingLimit(rule=item.rule, message=item.message) for item in found.members
            ),
            irreducible=found.irreducible,
        )

        def cheapest() -> TriedRepair | None:
            repairs = sized_repairs(oracle, minimal_correction_sets(oracle, found.members))
            return self._trials.cheapest(oracle.required, repairs)

        return self._with_repair(reason, oracle.required, cheapest, oracle)

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
