"""Conflicts, which are irreducible infeasible subsystems (IIS), and minimal correction sets.

Members of an IIS exclude something together, and none is redundant. QuickXplain (U. Junker, AAAI
2004) halves the limits and needs about k log(n/k) tests for k members among n limits. A deletion
filter (J. Chinneck and E. Dravnieks, ORSA Journal on Computing 3, 1991) then tests once without
each member, which proves that it is needed.

Minimal correction sets are the smallest sets of limits that make room when they are relaxed. Each
meets every infeasible subsystem, so they are grown from such subsystems, fewest members first
(hitting-set tree; Reiter, Artificial Intelligence 32, 1987).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Generic, TypeVar

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import TimeLeft, unlimited
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.conflicts.feasibility import (
    FeasibilityOracle,
)
from optimizer.explain.conflicts.limit_changes import LimitChanges, least_changes, rank
from optimizer.explain.conflicts.limits import RelaxableLimit, RequiredReplicas
from optimizer.explain.tuning import SIZED_CORRECTION_SETS, TESTED_CORRECTION_SETS

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
    found = _quickxplain((), list(limits), possible, grown=False)
    if len(found) < len(limits) and possible(found) is not False:
        found = list(limits)
    return _deletion_filter([item for item in limits if item in found], possible)


def _quickxplain(
    held: Sequence[T], limits: list[T], possible: FeasibilityTest[T], *, grown: bool
) -> list[T]:
    if grown and possible(held) is False:
        return []
    if len(limits) <= 1:
        return limits
    half = len(limits) // 2
    first, second = limits[:half], limits[half:]
    later = _quickxplain([*held, *first], second, possible, grown=True)
    sooner = _quickxplain([*held, *later], first, possible, grown=bool(later))
    return [*sooner, *later]


def _deletion_filter(found: list[T], possible: FeasibilityTest[T]) -> InfeasibleSubsystem[T]:
    needed = list(found)
    proven = True
    for item in found:
        others = [other for other in needed if other is not item]
        answer = possible(others)
        if answer is False:
            needed = others
        proven = proven and answer is not None
    return InfeasibleSubsystem(tuple(needed), proven)


MAX_LIMITS = 5
"""Limits in a correction set: nobody changes more than a handful for one workload."""

LimitSet = tuple[RelaxableLimit, ...]


@dataclass(frozen=True)
class ConflictSearch:
    """A fleet, the replicas that it should run, and every limit that has a name."""

    fleet: Fleet
    required: RequiredReplicas
    limits: LimitSet
    solve: ProblemSolver
    time_left: TimeLeft = unlimited

    def feasible_with(self, held: Sequence[RelaxableLimit]) -> bool | None:
        """Tell whether all required replicas can run while only these limits hold."""
        kept = set(map(id, held))
        return self.oracle.feasible(item for item in self.limits if id(item) not in kept)

    @cached_property
    def oracle(self) -> FeasibilityOracle:
        """Remembers the answers."""
        return FeasibilityOracle(self.fleet, self.required, self.limits, self.solve, self.time_left)

    def lacking(self, relaxing: LimitSet) -> float:
        """Return how much supply is lacking, infinity where not known: smallest is tried first."""
        return sum(self.oracle.lacking.get(id(item), inf) for item in relaxing)


def minimal_correction_sets(search: ConflictSearch, first: LimitSet) -> list[LimitSet]:
    """Return the smallest correction sets that are found, given one infeasible subsystem."""
    subsystems, level = list[LimitSet]([first]), list[LimitSet]([()])
    for _ in range(MAX_LIMITS):
        found, left = list[LimitSet](), list[LimitSet]()
        grown = sorted(_grown(search, level, subsystems), key=search.lacking)
        for relaxing in grown[:TESTED_CORRECTION_SETS]:
            answer = search.oracle.feasible(relaxing)
            if answer is not None:
                (found if answer else left).append(relaxing)
        if found:
            return found[:SIZED_CORRECTION_SETS]
        level = left
    return []


def sized_repairs(search: ConflictSearch, sets: Iterable[LimitSet]) -> list[LimitChanges]:
    """Return the least changes that make room for each correction set, the cheapest first."""
    found = [
        changes
        for relaxing in _while_time_left(search.time_left, sets)
        if (
            changes := least_changes(
                search.fleet, search.required, relaxing, search.solve, search.lacking(relaxing)
            )
        )
    ]
    return sorted(found, key=rank)


def _grown(
    search: ConflictSearch, level: Sequence[LimitSet], subsystems: list[LimitSet]
) -> list[LimitSet]:
    """Return each set with one more changeable member, from a subsystem that the set misses."""
    sets: dict[frozenset[int], LimitSet] = {}
    for relaxing in level:
        missed = next((item for item in subsystems if not set(item) & set(relaxing)), None)
        if missed is None:
            left = [item for item in search.limits if item not in relaxing]
            missed = infeasible_subsystem(left, search.feasible_with).members
            subsystems.append(missed)
        for item in missed:
            if item.changeable:
                sets.setdefault(frozenset(map(id, (*relaxing, item))), (*relaxing, item))
    return list(sets.values())


def _while_time_left(time_left: TimeLeft, sets: Iterable[LimitSet]) -> Iterator[LimitSet]:
    for item in sets:
        if not time_left():
            raise BudgetExceeded
        yield item
