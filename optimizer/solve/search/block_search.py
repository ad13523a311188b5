"""The search over blocks: Lagrangian dual, dive, large neighbourhoods, and a cheap proof.

After that, rounds with ever more effort go on until the gap is closed or the time is up.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.columns import ColumnSelection
from optimizer.solve.pricing.diving import dive
from optimizer.solve.pricing.lagrangian_dual import (
    LagrangianDual,
    OnIncumbent,
    has_few_classes,
    has_repeated_classes,
    ignore,
    rounded_bound,
    solve_lagrangian_dual,
)
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.search.gap_closing import close_gap
from optimizer.solve.search.large_neighbourhood import improve_by_large_neighbourhoods
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import (
    FIRST_COLUMN_LIMITS,
    FIRST_COLUMN_LIMITS_REPEATED,
    LARGEST_MASTER_COLUMNS,
    LAST_COLUMN_LIMIT,
    LAST_COLUMN_LIMIT_REPEATED,
    SMALL_CORE,
)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The incumbent, the lowest bound, and the Lagrangian dual that they come from."""

    incumbent: ColumnSelection
    bound: float
    dual: LagrangianDual


def search_blocks(
    blocks: BlockProblem,
    context: SolveContext,
    start: ColumnSelection | None = None,
    *,
    start_prices: Prices | None = None,
    upper_bound: float = np.inf,
    on_incumbent: OnIncumbent = ignore,
) -> SearchResult:
    """Return a decision whose gap is small enough, or the best one in time.

    `start`: a decision to improve on, if it is feasible. `start_prices`: where the dual starts.
    `upper_bound`: known from elsewhere; no decision is worth more.
    """
    dual = solve_lagrangian_dual(
        blocks,
        context,
        start,
        start_prices=start_prices,
        on_incumbent=on_incumbent,
        collect=False,
    )
    first = min(rounded_bound(dual.bound, blocks.integral), upper_bound)
    incumbent, bound = dual.incumbent, first
    for incumbent, bound in _improvements(blocks, context, dual, first, on_incumbent):
        if context.is_close(incumbent.value(blocks), bound) or context.is_over():
            break
    return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)


def search_further(
    blocks: BlockProblem,
    known: SearchResult,
    context: SolveContext,
    effort: int,
    on_incumbent: OnIncumbent = ignore,
) -> SearchResult:
    """Return the result after one more round of neighbourhoods and of a proof, `effort` times each.

    Rounds of different effort draw different neighbourhoods.
    """
    dual, bound = known.dual, known.bound
    pricing = price_blocks(blocks, dual.items, dual.prices)
    incumbent = improve_by_large_neighbourhoods(
        blocks,
        dual.prices,
        pricing.site_profits,
        known.incumbent,
        bound,
        context,
        on_incumbent,
        effort=effort,
    )
    incumbent, bound = close_gap(
        blocks,
        dual,
        pricing,
        incumbent,
        bound,
        context,
        (min(effort * _last_column_limit(blocks), LARGEST_MASTER_COLUMNS),),
        on_incumbent,
        needs_all=True,
    )
    return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)


def _last_column_limit(blocks: BlockProblem) -> int:
    """Return up to how many columns a master that is to prove the optimum has at first."""
    core = blocks.copies.sum() + blocks.counts.sum() <= SMALL_CORE
    repeated = has_repeated_classes(blocks)
    return LAST_COLUMN_LIMIT_REPEATED if core and repeated else LAST_COLUMN_LIMIT


def _improvements(
    blocks: BlockProblem,
    context: SolveContext,
    dual: LagrangianDual,
    bound: float,
    on_incumbent: OnIncumbent,
) -> Iterator[tuple[ColumnSelection, float]]:
    """Yield the incumbent and the bound: of the dual, then after each step that improves them."""
    incumbent, repeated = dual.incumbent, has_repeated_classes(blocks)
    yield incumbent, bound
    pricing = price_blocks(blocks, dual.items, dual.prices)
    if has_few_classes(blocks):
        limits = FIRST_COLUMN_LIMITS_REPEATED if repeated else FIRST_COLUMN_LIMITS
        incumbent, bound = close_gap(
            blocks, dual, pricing, incumbent, bound, context, limits, on_incumbent
        )
        yield incumbent, bound
    found = ColumnSelection(*dive(blocks, dual.prices, stop=context.is_over))
    if found.value(blocks) > incumbent.value(blocks):
        incumbent = found
        on_incumbent(incumbent, bound)
    yield incumbent, bound
    incumbent = improve_by_large_neighbourhoods(
        blocks, dual.prices, pricing.site_profits, incumbent, bound, context, on_incumbent
    )
    yield incumbent, bound
    last = (_last_column_limit(blocks),)
    yield close_gap(
        blocks, dual, pricing, incumbent, bound, context, last, on_incumbent, needs_all=True
    )
