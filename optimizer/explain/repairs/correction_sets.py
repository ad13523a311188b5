"""Minimal correction sets: the smallest sets of limits that make room when they are relaxed.

Every correction set meets every infeasible subsystem, so the sets are grown from such subsystems,
fewest members first (hitting-set tree; Reiter, Artificial Intelligence 32, 1987).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from optimizer.domain.fleet import Fleet
from optimizer.domain.stop_callback import TimeLeft, unlimited
from optimizer.explain.conflicts.feasibility_oracle import FeasibilityOracle
from optimizer.explain.conflicts.fleet_changes import LimitChange
from optimizer.explain.conflicts.irreducible_subsystem import infeasible_subsystem
from optimizer.explain.conflicts.limit_kinds import RelaxableLimit, RequiredReplicas
from optimizer.explain.repairs.repair_sizes import least_changes
from optimizer.explain.solver_ports import BudgetExceeded, ProblemSolver
from optimizer.explain.tuning import SIZED_CORRECTION_SETS, TESTED_CORRECTION_SETS

MAX_LIMITS = 5
"""Limits in a correction set: nobody changes more than a handful for one workload."""

LimitSet = tuple[RelaxableLimit, ...]
LimitChanges = tuple[LimitChange, ...]


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


def rank(changes: LimitChanges) -> tuple[int, float]:
    """Return what repairs are ordered by: the number of changes, then their total size."""
    return len(changes), sum(item.size for item in changes)


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
