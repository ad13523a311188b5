"""Limits that exclude something together, and the smallest sets of them whose change makes room.

An irreducible infeasible subsystem (IIS) is found by QuickXplain (U. Junker, AAAI 2004), which
halves the limits and needs about k log(n/k) tests for k members among n limits. Each member is
proven to be needed if every test has an answer.

Minimal correction sets are the smallest sets of limits that make room when they are relaxed. Each
meets every infeasible subsystem, so they are grown from such subsystems, fewest members first
(hitting-set tree; Reiter, Artificial Intelligence 32, 1987).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Generic, TypeVar

from optimizer.explain.conflicts.feasibility import FeasibilityOracle
from optimizer.explain.conflicts.limits import RelaxableLimit
from optimizer.explain.conflicts.repairs import LimitChanges, least_changes, rank
from optimizer.explain.conflicts.supply_limits import NodeBoundary, SuppliedCapacity
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
