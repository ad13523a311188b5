"""Conflicts, which are irreducible infeasible subsystems (IIS), and minimal correction sets.

Members of an IIS exclude something together, and none is redundant. QuickXplain (U. Junker, AAAI
2004) halves the limits and needs about k log(n/k) tests for k members among n limits. A deletion
filter (J. Chinneck and E. Dravnieks, ORSA Journal on Computing 3, 1991) then tests once without
each member, which proves that it is needed.

Minimal correction sets are the smallest sets of limits that make room when they are relaxed. Each
meets every infeasible subsystem, so they are grown from such subsystems, fewest members first
(hitting-set tree; Reiter, Artificial Intelligence 32, 1987).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from optimizer.explain.conflicts.feasibility import (
    FeasibilityOracle,
)
from optimizer.explain.conflicts.limit_changes import (
    LimitChanges,
    lacking_supply,
    least_changes,
    rank,
)
from optimizer.explain.conflicts.limits import RelaxableLimit
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


def minimal_correction_sets(oracle: FeasibilityOracle, first: LimitSet) -> list[LimitSet]:
    """Return the smallest correction sets that are found, given one infeasible subsystem."""
    subsystems, level = list[LimitSet]([first]), list[LimitSet]([()])
    for _ in range(MAX_LIMITS):
        found, left = list[LimitSet](), list[LimitSet]()
        grown = sorted(_grown(oracle, level, subsystems), key=partial(lacking_supply, oracle))
        for relaxing in grown[:TESTED_CORRECTION_SETS]:
            answer = oracle.feasible(relaxing)
            if answer is not None:
                (found if answer else left).append(relaxing)
        if found:
            return found[:SIZED_CORRECTION_SETS]
        level = left
    return []


def sized_repairs(oracle: FeasibilityOracle, sets: Iterable[LimitSet]) -> list[LimitChanges]:
    """Return the least changes that make room for each correction set, the cheapest first."""
    found = [least_changes(oracle, relaxing) for relaxing in sets]
    return sorted((changes for changes in found if changes), key=rank)


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
