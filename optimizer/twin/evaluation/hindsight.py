"""What the best placements would have been worth to somebody who knew all scores beforehand.

Without a budget that is the sum of the best plans of all moments, which the product's solver
bounds. Within budgets of moves it is the bound that an integer program over all moments together
proves: no plans that keep the budgets are worth more.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from optimizer.candidates.layout_bounds import bounded_over_all_layouts
from optimizer.domain.arrays import Floats
from optimizer.domain.settings import DEFAULTS
from optimizer.domain.solution import Assignment
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES
from optimizer.solve.solver_adapters import maximise
from optimizer.solve.strategy import solve_problem
from optimizer.twin.evaluation.moments import DecisionMoment
from optimizer.wire.placement_optimization import PlacementOptimizationSpec

MOST_COLUMNS = 40_000
"""Variables of the integer program: more take minutes."""

SECONDS = 30.0
"""For the integer program, whose bound counts then, and for each moment, which takes less."""

_GAP = 1e-4


class PeriodBudget(NamedTuple):
    """The most moves in each period of so many seconds."""

    seconds: float
    moves: float


class BestMoment(NamedTuple):
    """A bound on the value of any plan from a time on, for some seconds."""

    begins: float
    seconds: float
    value: float

    @property
    def value_hours(self) -> float:
        """The value times the hours."""
        return self.value * self.seconds / 3600


def best_moments(moments: Iterable[DecisionMoment]) -> tuple[BestMoment, ...]:
    """Return a bound on the value of any plan at each moment; plans may change at each of them."""
    return tuple(BestMoment(moment.begins, moment.seconds, _bound(moment)) for moment in moments)


def _bound(moment: DecisionMoment) -> float:
    solver = DEFAULTS.solver
    found = solve_problem(moment.problem, solver=solver, time_limit_seconds=SECONDS, gap=_GAP)
    found = bounded_over_all_layouts(moment.fleet, found)
    return found.objective_value if found.bound is None else found.bound


def best_within_budgets(
    moments: Sequence[DecisionMoment], budgets: Sequence[PeriodBudget]
) -> float | None:
    """Return a bound on the value x hours of plans that keep budgets of moves.

    A replica that leaves a cluster where it could stay is a move, wherever it goes. Periods of a
    budget follow each other from time 0. None: too large, no bound was found in time, or not all
    layouts of GPUs are in the program.
    """
    columns = sum(moment.problem.size for moment in moments)
    if not moments or columns > MOST_COLUMNS or any(one.fleet.omitted_layouts for one in moments):
        return None
    objective, rows, moves = _integer_program(moments)
    rows += _budget_rows(budgets, moves)
    found = maximise(
        objective, rows, [1.0] * len(objective), solver=DEFAULTS.solver, seconds=SECONDS, gap=_GAP
    )
    return found.bound


_Row = tuple[Sequence[int], Sequence[float], float]


def _integer_program(
    moments: Sequence[DecisionMoment],
) -> tuple[Floats, list[_Row], list[tuple[float, int]]]:
    """Return objective, rows, and the variable of each possible move with its time."""
    weights, rows, firsts = list[Floats](), list[_Row](), list[int]()
    first = 0
    for moment in moments:
        firsts.append(first)
        weights.append(moment.problem.weights() * moment.seconds / 3600)
        rows += [
            ((row.columns + first).tolist(), row.coefficients.tolist(), row.limit)
            for rule in RULES
            for row in rule(moment.problem)
        ]
        first += moment.problem.size
    moves = list[tuple[float, int]]()
    placed = [_columns(item.problem, at) for item, at in zip(moments, firsts, strict=True)]
    for (before, now), moment in zip(pairwise(placed), moments[1:], strict=True):
        for place in before.keys() & now.keys():
            leaves = first + len(moves)
            members = [*before[place], *now[place], leaves]
            signs = [1.0] * len(before[place]) + [-1.0] * len(now[place]) + [-1.0]
            rows.append((members, signs, 0.0))
            moves.append((moment.begins, leaves))
    return np.concatenate([*weights, np.zeros(len(moves))]), rows, moves


def _columns(problem: Problem, first: int) -> dict[tuple[str, str], list[int]]:
    """Return the variables of each workload and cluster, numbered from `first` on."""
    found = defaultdict[tuple[str, str], list[int]](list)
    for number, variable in enumerate(problem.variables):
        if isinstance(variable, Assignment):
            found[variable.workload, variable.cluster].append(first + number)
    return found


def _budget_rows(
    budgets: Iterable[PeriodBudget], moves: Sequence[tuple[float, int]]
) -> Iterator[_Row]:
    for budget in budgets:
        periods = defaultdict[int, list[int]](list)
        for at, column in moves:
            periods[int(at // budget.seconds)].append(column)
        for members in periods.values():
            yield members, [1.0] * len(members), budget.moves


def period_budgets(spec: PlacementOptimizationSpec, replicas: int) -> list[PeriodBudget]:
    """Return the budgets for moves to better places that always count."""
    return [
        PeriodBudget(item.period.total_seconds(), item.most(replicas))
        for item in spec.budgets
        if item.schedule is None and "BetterScore" in item.reasons
    ]
