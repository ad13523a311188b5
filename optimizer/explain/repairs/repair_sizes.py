"""How much of each limit must change, once it is known which limits must.

The sizing problem has a price for each step by which a limit is relaxed. Every required assignment
is worth more than all prices together, so the optimum places all workloads at the least price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import ceil, inf

import numpy as np

from optimizer.domain.fleet import Fleet
from optimizer.explain.conflicts.feasibility_check import check_feasibility
from optimizer.explain.conflicts.feasibility_problem import (
    WORTH,
    all_placed,
    feasibility_problem,
    required_without,
    without_costs,
)
from optimizer.explain.conflicts.fleet_changes import LimitChange
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
from optimizer.explain.solver_ports import ProblemSolver
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem

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
