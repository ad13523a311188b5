"""Solves the Lagrangian dual: the prices of the lowest bound, and an incumbent meanwhile.

    minimise bound(u, v) over u, v >= 0

M. Held, R. M. Karp, "The traveling-salesman problem and minimum spanning trees: part II",
Mathematical Programming 1 (1971), by subgradients; where few classes repeat, by column generation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from optimizer.solve import tuning
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.bound_rounding import is_whole, rounded_bound
from optimizer.solve.blocks.columns import ColumnPool, ColumnSelection, concatenated_columns
from optimizer.solve.blocks.knapsack import KnapsackBand
from optimizer.solve.pricing.diving import dive
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    initial_prices,
    items_if_few,
    lower_bound_by_sifting,
    lower_bound_by_subgradients,
    price_blocks,
)
from optimizer.solve.pricing.restricted_master import generate_columns, is_feasible
from optimizer.solve.time_limit import SolveContext

OnIncumbent = Callable[[ColumnSelection, float], None]
"""Called with every better decision over blocks, and the bound by then."""


def ignore(_incumbent: ColumnSelection, _bound: float) -> None:
    """Do nothing with an incumbent."""


@dataclass(frozen=True, slots=True)
class LagrangianDual:
    """The lowest bound with its prices, the incumbent, and columns where classes repeat."""

    bound: float
    prices: Prices
    items: list[KnapsackBand] | None
    incumbent: ColumnSelection
    pool: ColumnPool


def solve_lagrangian_dual(
    blocks: BlockProblem,
    context: SolveContext,
    start: ColumnSelection | None = None,
    *,
    start_prices: Prices | None = None,
    on_incumbent: OnIncumbent = ignore,
) -> LagrangianDual:
    """Return the lowest bound found by a subgradient descent and, where it is small, by the master.

    `start`: a decision to begin with, if it is feasible. `start_prices`: where the descent begins,
    instead of one price for all capacity.
    """
    pool, steps, reached = ColumnPool(blocks), 0, np.inf
    heuristic = _IncumbentHeuristic(blocks, context, on_incumbent)
    items = items_if_few(blocks)
    repeated, small = has_repeated_classes(blocks), has_few_classes(blocks)

    def stop() -> bool:
        return context.is_over() or heuristic.enough(reached)

    def seen(pricing: PricingResult, prices: Prices) -> None:
        nonlocal steps, reached
        steps, reached = steps + 1, min(reached, pricing.bound)
        if repeated and items is not None and steps > tuning.WARM_UP_STEPS:
            pool.add(pricing.modes, pricing.workloads, pricing.resources)
        if steps in tuning.QUICK_DIVE_STEPS and blocks.values.size > tuning.QUICK_DIVE_ASSIGNMENTS:
            heuristic.decide(prices, reached)

    lowest, best = _starting_point(blocks, items, start_prices, stop)
    reached = lowest
    heuristic.begin(start, lowest)
    if not heuristic.enough(lowest):
        heuristic.decide(best, lowest)
    if not stop():
        bound, found = (
            lower_bound_by_sifting(blocks, best, on_pricing=seen, stop=stop)
            if items is None
            else lower_bound_by_subgradients(
                blocks,
                items,
                best,
                target_drop=tuning.DUAL_TARGET_DROP,
                patience=tuning.FEW_CLASSES_STEP_PATIENCE if small else tuning.STEP_PATIENCE,
                on_pricing=seen,
                stop=stop,
            )
        )
        if bound < lowest:
            lowest, best = bound, found
    if repeated and items is not None and small and not stop():
        pool.extend(
            heuristic.incumbent.columns
        )  # without these columns the master may be infeasible
        bound, found, columns = generate_columns(blocks, items, best, pool, context)
        pool = ColumnPool(blocks)
        pool.extend(columns)
        if bound < lowest:
            lowest, best = bound, found
    return LagrangianDual(lowest, best, items, heuristic.incumbent, pool)


def _starting_point(
    blocks: BlockProblem,
    items: list[KnapsackBand] | None,
    known: Prices | None,
    stop: Callable[[], bool],
) -> tuple[float, Prices]:
    """Return the bound and the prices to start from: those known, or one price for all capacity."""
    if known is not None:
        return price_blocks(blocks, items, known).bound, known
    return initial_prices(blocks, lambda found: price_blocks(blocks, items, found).bound, stop)


def lagrangian_bound(blocks: BlockProblem, context: SolveContext) -> float:
    """Return a value that no decision exceeds, in objective units."""
    return rounded_bound(solve_lagrangian_dual(blocks, context).bound, is_whole(blocks))


def has_few_classes(blocks: BlockProblem) -> bool:
    """Tell whether masters of this problem take so little time that they come first."""
    return len(blocks.sizes) + len(blocks.copies) <= tuning.FEW_CLASSES


def has_repeated_classes(blocks: BlockProblem) -> bool:
    """Tell whether sites or workloads repeat: subgradients stall there, and masters are small."""
    return bool(blocks.copies.max() > 1 or blocks.most_per_site.max() > 1)


class _IncumbentHeuristic:
    """Keeps the incumbent of quick dives, which run at numbers of steps, not at times."""

    def __init__(
        self, blocks: BlockProblem, context: SolveContext, on_incumbent: OnIncumbent
    ) -> None:
        self._blocks, self._context, self._on_incumbent = blocks, context, on_incumbent
        self.incumbent = ColumnSelection(concatenated_columns([]), np.zeros(0, np.int64))
        self._value = -np.inf

    def decide(self, prices: Prices, bound: float) -> None:
        """Dive quickly from these prices."""
        found = dive(self._blocks, prices, stop=self._context.is_over, quick=True)
        self.offer(ColumnSelection(*found), bound)

    def begin(self, start: ColumnSelection | None, bound: float) -> None:
        """Take a start from elsewhere, if it is feasible."""
        if start is not None and is_feasible(self._blocks, start.columns, start.multiplicities):
            self.offer(start, bound)

    def offer(self, found: ColumnSelection, bound: float) -> None:
        """Make a decision the incumbent, and report it, if it is better."""
        if found.value(self._blocks) > self._value:
            self.incumbent, self._value = found, found.value(self._blocks)
            self._on_incumbent(found, bound)

    def enough(self, bound: float) -> bool:
        """Tell whether the incumbent is within the gap of a bound."""
        decided = self._value > -np.inf
        near = max(self._context.gap * abs(self._value), 1e-9)
        return decided and bound - self._value <= near


def priority_floor_prices(blocks: BlockProblem, count: int, context: SolveContext) -> Prices | None:
    """Return start prices where the last `count` linking rows are priority floors.

    None if the time is up before there are any.
    """
    most = float(np.max(blocks.values, initial=0.0, where=np.isfinite(blocks.values)))
    best, lowest = None, np.inf
    for levels in tuning.FLOOR_PRICE_LEVELS:
        for level in levels:
            if context.is_over():
                return best
            price = level * max(most, 1.0)
            found = solve_lagrangian_dual(_with_floors_priced(blocks, count, price), context)
            bound = found.bound + price * float(blocks.linking.limits[-count:].sum())
            if bound >= lowest:
                break
            rows = np.concatenate([found.prices.linking, np.full(count, price)])
            best, lowest = Prices(found.prices.workloads, rows), bound
    return best


def _with_floors_priced(blocks: BlockProblem, count: int, price: float) -> BlockProblem:
    """Return the problem with the last rows relaxed into the values, at this price."""
    rows, values = blocks.linking, blocks.values.copy()
    first = len(rows.limits) - count
    kept = rows.assignment_rows >= first
    np.subtract.at(
        values,
        (rows.assignment_workloads[kept], rows.assignment_resources[kept]),
        price * rows.assignment_coefficients[kept],
    )
    others, modes = ~kept, rows.choice_rows < first
    return replace(
        blocks,
        values=values,
        linking=replace(
            rows,
            limits=rows.limits[:first],
            says=rows.says[:first],
            assignment_rows=rows.assignment_rows[others],
            assignment_workloads=rows.assignment_workloads[others],
            assignment_resources=rows.assignment_resources[others],
            assignment_coefficients=rows.assignment_coefficients[others],
            choice_rows=rows.choice_rows[modes],
            choices=rows.choices[modes],
            choice_coefficients=rows.choice_coefficients[modes],
        ),
    )
