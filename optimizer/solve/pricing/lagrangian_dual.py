"""The lowest bound that steps find, its prices, and a decision meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.columns import ColumnPool, ColumnSelection, concatenated_columns
from optimizer.solve.blocks.knapsack_items import KnapsackItems
from optimizer.solve.pricing.column_generation import generate_columns
from optimizer.solve.pricing.diving import dive
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    initial_prices,
    items_if_few,
    lower_bound_by_subgradients,
    price_blocks,
)
from optimizer.solve.pricing.restricted_master import is_feasible

_REACHES = (0.01, 0.003)
_WORTH_IT = 2e-4
_WARM = 30
_WHOLE = 1e-6
_ROUNDING = 1e-9  # a bound that is so close is reached
_FEW = 150  # sites and tasks up to which masters take so little that nothing else need come first
_HASTY = (30, 100)  # steps after which a decision is made meanwhile
_LONG = 200_000  # places, from which on pricing takes so long that this is worth it
_HURRIED, _PATIENT = 3, 8  # steps without progress before they become smaller


@dataclass(frozen=True, slots=True)
class SearchContext:
    """How to search: `gap` is what is good enough, `left` tells the seconds left.

    `found` is told every decision that is better than those before, with the bound by then.
    `most`: no decision is worth more, as is known from elsewhere. `prices`: to start from.
    """

    solver: SolverName
    gap: float
    seed: int
    left: Callable[[], float]
    found: Callable[[ColumnSelection, float], None] = lambda _held, _bound: None
    most: float = np.inf
    prices: Prices | None = None


@dataclass(frozen=True, slots=True)
class LagrangianDual:
    """The lowest bound with its prices, a first decision, and the columns met on the way."""

    bound: float
    prices: Prices
    items: list[KnapsackItems] | None
    incumbent: ColumnSelection
    pool: ColumnPool


def solve_lagrangian_dual(
    blocks: BlockProblem,
    effort: SearchContext,
    start: ColumnSelection | None = None,
    *,
    collect: bool = True,
) -> LagrangianDual:
    """Find prices by steps, ever smaller ones, then by the master where that is small.

    `collect`: take up the columns met also where no master here wants them.
    """
    pool, steps, hurry, reached = ColumnPool(blocks), 0, _IncumbentHeuristic(blocks, effort), np.inf
    groups = items_if_few(blocks)
    equals, small = has_repeated_classes(blocks), has_few_classes(blocks)

    def stop() -> bool:
        return effort.left() <= 0 or hurry.enough(reached)

    def seen(answers: PricingResult, prices: Prices) -> None:
        nonlocal steps, reached
        steps, reached = steps + 1, min(reached, answers.bound)
        if (collect or equals) and groups is not None and steps > _WARM:
            pool.add(answers.modes, answers.tasks, answers.slots)
        if steps in _HASTY and blocks.values.size > _LONG:
            hurry.decide(prices, reached)

    lowest, best = _starting_point(blocks, groups, effort.prices, stop)
    hurry.begin(start, lowest)
    hurry.decide(best, lowest)
    for reach in () if stop() else _REACHES:
        bound, found = lower_bound_by_subgradients(
            blocks,
            groups,
            best,
            reach=reach,
            patience=_HURRIED if small else _PATIENT,
            seen=seen,
            stop=stop,
        )
        gained = lowest - bound
        if bound < lowest:
            lowest, best = bound, found
        if small or not equals or gained <= _WORTH_IT * abs(lowest) or stop():
            break
    if equals and groups is not None and small and not stop():
        pool.extend(
            hurry.incumbent.columns
        )  # without them the master may have no choice that is legal
        bound, found, columns = generate_columns(
            blocks, groups, best, pool, solver=effort.solver, left=effort.left
        )
        pool = ColumnPool(blocks)
        pool.extend(columns)
        if bound < lowest:
            lowest, best = bound, found
    return LagrangianDual(lowest, best, groups, hurry.incumbent, pool)


def _starting_point(
    blocks: BlockProblem,
    groups: list[KnapsackItems] | None,
    known: Prices | None,
    stop: Callable[[], bool],
) -> tuple[float, Prices]:
    """Return prices to start from, and their bound."""
    if known is not None:
        return price_blocks(blocks, groups, known).bound, known
    return initial_prices(blocks, lambda found: price_blocks(blocks, groups, found).bound, stop)


def lagrangian_bound(blocks: BlockProblem, effort: SearchContext) -> float:
    """Return a value that no decision exceeds."""
    return rounded_bound(solve_lagrangian_dual(blocks, effort).bound, blocks.whole)


def has_few_classes(blocks: BlockProblem) -> bool:
    """Tell whether masters of this problem take so little that nothing else need come first."""
    return len(blocks.sizes) + len(blocks.copies) <= _FEW


def has_repeated_classes(blocks: BlockProblem) -> bool:
    """Tell whether tasks or sites are many of a kind: steps stall there, and masters are small."""
    return bool(blocks.copies.max() > 1 or blocks.most.max() > 1)


def rounded_bound(bound: float, whole: bool) -> float:
    """Return the bound that follows where every decision is worth a whole number."""
    return float(floor(bound + _WHOLE)) if whole else bound


class _IncumbentHeuristic:
    """Decides meanwhile: the best of hasty dives, at numbers of steps and not at times."""

    def __init__(self, blocks: BlockProblem, effort: SearchContext) -> None:
        self._blocks, self._effort = blocks, effort
        self.incumbent, self._value = (
            ColumnSelection(concatenated_columns([]), np.zeros(0, np.int64)),
            -np.inf,
        )

    def decide(self, prices: Prices, bound: float) -> None:
        """Dive from prices."""
        stop = self._effort.left
        self.offer(
            ColumnSelection(*dive(self._blocks, prices, stop=lambda: stop() <= 0, hasty=True)),
            bound,
        )

    def begin(self, start: ColumnSelection | None, bound: float) -> None:
        """Take a decision from elsewhere, where it keeps every row."""
        if start is not None and is_feasible(self._blocks, start.columns, start.multiplicities):
            self.offer(start, bound)

    def offer(self, found: ColumnSelection, bound: float) -> None:
        """Take a decision, and tell it, where it is better than those before."""
        if found.value(self._blocks) > self._value:
            self.incumbent, self._value = found, found.value(self._blocks)
            self._effort.found(found, bound)

    def enough(self, bound: float) -> bool:
        """Tell whether the best is good enough against a bound."""
        decided = self._value > -np.inf
        near = max(self._effort.gap * abs(self._value), _ROUNDING)
        return decided and bound - self._value <= near
