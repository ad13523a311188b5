"""The search over blocks: Lagrangian dual, dive, large neighbourhoods, and a cheap proof."""

from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem
from optimizer.solve.blocks.columns import ColumnSelection
from optimizer.solve.pricing.diving import dive
from optimizer.solve.pricing.lagrangian_dual import (
    LagrangianDual,
    SearchContext,
    has_few_classes,
    has_repeated_classes,
    rounded_bound,
    solve_lagrangian_dual,
)
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.search.gap_closing import close_gap
from optimizer.solve.search.large_neighbourhood import improve_by_large_neighbourhoods
from optimizer.solve.tuning import (
    FIRST_COLUMN_LIMITS,
    FIRST_COLUMN_LIMITS_REPEATED,
    LAST_COLUMN_LIMIT,
    LAST_COLUMN_LIMIT_REPEATED,
    NEIGHBOURHOOD_FAILURES,
    SMALL_CORE,
    VALUE_TOLERANCE,
)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The incumbent, the lowest bound, and the Lagrangian dual that they come from."""

    incumbent: ColumnSelection
    bound: float
    dual: LagrangianDual


def search_blocks(
    blocks: BlockProblem, context: SearchContext, start: ColumnSelection | None = None
) -> SearchResult:
    """Return a decision whose gap is small enough, or the best one in time.

    `start`: a decision to improve on, if it is feasible.
    """
    dual = solve_lagrangian_dual(blocks, context, start, collect=False)
    incumbent, bound = (
        dual.incumbent,
        min(rounded_bound(dual.bound, blocks.integral), context.upper_bound),
    )

    def enough(value: float) -> bool:
        return bound - value <= max(context.gap * abs(value), VALUE_TOLERANCE)

    if enough(incumbent.value(blocks)) or context.seconds_left() <= 0:
        return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)
    pricing = price_blocks(blocks, dual.items, dual.prices)
    if has_few_classes(blocks):
        limits = (
            FIRST_COLUMN_LIMITS_REPEATED if has_repeated_classes(blocks) else FIRST_COLUMN_LIMITS
        )
        incumbent, bound = close_gap(blocks, dual, pricing, incumbent, bound, context, limits)
        if enough(incumbent.value(blocks)) or context.seconds_left() <= 0:
            return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)
    found = ColumnSelection(*dive(blocks, dual.prices, stop=lambda: context.seconds_left() <= 0))
    if found.value(blocks) > incumbent.value(blocks):
        incumbent = found
        context.on_incumbent(incumbent, bound)
    if enough(incumbent.value(blocks)) or context.seconds_left() <= 0:
        return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)
    incumbent = improve_by_large_neighbourhoods(
        blocks,
        dual.prices,
        pricing.site_profits,
        incumbent,
        solver=context.solver,
        random=np.random.default_rng(context.seed),
        enough=enough,
        found=lambda better: context.on_incumbent(better, bound),
        seconds_left=context.seconds_left,
        tries=NEIGHBOURHOOD_FAILURES,
    )
    if not enough(incumbent.value(blocks)) and context.seconds_left() > 0:
        core = blocks.copies.sum() + blocks.counts.sum() <= SMALL_CORE
        last = (
            LAST_COLUMN_LIMIT_REPEATED
            if core and has_repeated_classes(blocks)
            else LAST_COLUMN_LIMIT
        )
        incumbent, bound = close_gap(
            blocks, dual, pricing, incumbent, bound, context, (last,), True
        )
    return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)
