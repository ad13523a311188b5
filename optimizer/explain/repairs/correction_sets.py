"""Minimal correction sets: the smallest sets of limits that make room when they are relaxed.

Every correction set meets every infeasible subsystem, so the sets are grown from such subsystems,
fewest members first (hitting-set tree; Reiter, Artificial Intelligence 32, 1987).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import ceil, inf

import numpy as np

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import TimeLeft, unlimited
from optimizer.explain.conflicts.feasibility_check import check_feasibility
from optimizer.explain.conflicts.feasibility_oracle import FeasibilityOracle
from optimizer.explain.conflicts.feasibility_problem import (
    WORTH,
    all_placed,
    feasibility_problem,
    required_without,
    without_costs,
)
from optimizer.explain.conflicts.fleet_changes import LimitChange
from optimizer.explain.conflicts.irreducible_subsystem import infeasible_subsystem
from optimizer.explain.conflicts.limit_kinds import (
    RelaxableLimit,
    RequiredReplicas,
    SuppliedCapacity,
)
from optimizer.explain.conflicts.relaxable_limits import relaxed
from optimizer.explain.conflicts.supply_amounts import supply_step, useful_amount
from optimizer.explain.repairs.limit_changes import (
    Sizing,
    added_supply,
    limit_change,
    priced_use,
    widened,
)
from optimizer.explain.solver_ports import BudgetExceeded, ProblemSolver
from optimizer.explain.tuning import SIZED_CORRECTION_SETS, TESTED_CORRECTION_SETS
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem

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


_PRICES = 0.4
"""All prices together, as a share of what one assignment is worth: less than a half, which is how
far the objective may be from the worth of all (`feasibility_problem.all_placed`)."""

_KEPT = 1e-3
"""What keeping a workload that may stop is worth: less than any step of supply costs."""

_ROUNDING = 1e-9


def least_changes(
    fleet: Fleet,
    required: RequiredReplicas,
    limits: Sequence[RelaxableLimit],
    solve: ProblemSolver,
    lacking: float = inf,
) -> tuple[LimitChange, ...] | None:
    """Return the least changes of these limits that make room; None where there are none.

    The sum of their relative sizes is least. `lacking`: this much more of the supply, where the
    limits are one supply, is known to be enough.
    """
    (single, *others) = limits
    if isinstance(single, SuppliedCapacity) and not others:
        return _least_supply(fleet, required, single, solve, lacking)
    needed = required_without(required, limits)
    wide = formulate(_priced(fleet, limits, needed))
    if not set(needed) <= set(wide.workload_index):
        return None
    solution = solve(_sizing_problem(wide, required, limits, needed))
    if not all_placed(solution, sum(needed.values())):
        return None
    sizing = Sizing(fleet, required, wide, solution.decision)
    made = (limit_change(limit, sizing) for limit in limits)
    return tuple(item for item in made if item is not None)


def _least_supply(
    fleet: Fleet,
    required: RequiredReplicas,
    limit: SuppliedCapacity,
    solve: ProblemSolver,
    lacking: float,
) -> tuple[LimitChange, ...] | None:
    """Return the least supply of one device that makes room, found by bisection."""
    step = supply_step(fleet, limit.kind)
    most = ceil(min(lacking, useful_amount(fleet, limit.kind)) / step - _ROUNDING)
    low, high = 0, max(1, most)

    def suffices(steps: int) -> bool:
        changed = added_supply(limit, fleet, steps * step).apply(fleet)
        problem = feasibility_problem(changed, required.counts)
        return problem is not None and bool(check_feasibility(problem, required.counts, solve))

    if lacking == inf and not suffices(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return (added_supply(limit, fleet, high * step),)


def _priced(fleet: Fleet, limits: Sequence[RelaxableLimit], needed: Mapping[str, int]) -> Fleet:
    """Return the fleet in which the limits that have an amount have a price, others are dropped."""
    wide = without_costs(relaxed(fleet, [item for item in limits if not item.sized]), needed)
    sized = (item for item in limits if item.sized)
    return reduce(lambda made, item: widened(item, made, _price(limits)), sized, wide)


def _price(limits: Sequence[RelaxableLimit]) -> float:
    """Return what the largest change of one limit costs."""
    return _PRICES * WORTH / len(limits)


def _sizing_problem(
    wide: Problem,
    required: RequiredReplicas,
    limits: Sequence[RelaxableLimit],
    needed: Mapping[str, int],
) -> Problem:
    """Return the problem whose optimum has all that is needed at the least price."""
    freed = {item.keeps_running for item in limits}
    each = dict.fromkeys(needed, WORTH) | dict.fromkeys(freed, _KEPT)
    worth = np.array([each.get(item.name, 0.0) for item in wide.workloads])
    values = np.where(np.isnan(wide.values), np.nan, worth[:, np.newaxis])
    for item in limits:
        values = values - _price(limits) * priced_use(item, wide, required)
    return replace(wide, values=values)
