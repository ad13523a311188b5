"""The search over blocks: Lagrangian dual, dive, large neighbourhoods, and a cheap proof.

After that, rounds with ever more effort go on until the gap is closed or the time is up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.bound_rounding import cutoff_of, is_whole, rounded_bound
from optimizer.solve.blocks.columns import ColumnPool, Columns, ColumnSelection
from optimizer.solve.pricing.diving import dive
from optimizer.solve.pricing.lagrangian_dual import (
    LagrangianDual,
    OnIncumbent,
    has_few_classes,
    has_repeated_classes,
    ignore,
    solve_lagrangian_dual,
)
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult, items_if_few, price_blocks
from optimizer.solve.pricing.restricted_master import is_feasible, solve_master
from optimizer.solve.search.column_enumeration import EnumeratedColumns, best_columns_within
from optimizer.solve.search.large_neighbourhood import (
    improve_around_change,
    improve_by_large_neighbourhoods,
)
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import (
    FIRST_COLUMN_LIMITS,
    FIRST_COLUMN_LIMITS_REPEATED,
    LEAST_LOSS,
    LOSS_MARGIN,
)

_LAST_COLUMN_LIMITS = (20_000, 2_000)
"""Columns of the master that is to prove the optimum; the second where classes repeat and the
compact model, small then, proves sooner."""

_LARGEST_MASTER_COLUMNS = 40_000
"""Columns of such a master, however long the search goes on.

No time limit cuts short the writing and presolving of a master.
"""

_CHANGE_LACK = 0.0015
"""Share of the value that the decision of a similar problem may lack to the gap asked for, for the
neighbourhood around its change to come first."""

_WARM_START_LACK = 0.0005
"""Share of the value that it may lack still, for neighbourhoods to come before better prices.

Where more changed, a dive from new prices finds more, sooner.
"""

_SMALL_CORE = 150
"""Sites and workloads, each counted, up to which that compact model is small."""


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
    on_incumbent: OnIncumbent = ignore,
) -> SearchResult:
    """Return a decision whose gap is small enough, or the best one in time.

    `start`: a decision to improve on, if it is feasible. `start_prices`: where the dual starts.
    """
    dual = solve_lagrangian_dual(
        blocks, context, start, start_prices=start_prices, on_incumbent=on_incumbent
    )
    first = rounded_bound(dual.bound, is_whole(blocks))
    incumbent, bound = dual.incumbent, first
    for incumbent, bound in _improvements(blocks, context, dual, first, on_incumbent):
        if context.is_close(incumbent.value(blocks), bound) or context.is_over():
            break
    return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)


def improve_start(
    blocks: BlockProblem,
    context: SolveContext,
    start: ColumnSelection | None,
    prices: Prices,
    on_incumbent: OnIncumbent = ignore,
) -> ColumnSelection | None:
    """Return the decision of a similar problem, improved by neighbourhoods at its prices."""
    if start is None or not is_feasible(blocks, start.columns, start.multiplicities):
        return start
    pricing = price_blocks(blocks, items_if_few(blocks), prices)
    value, bound = start.value(blocks), rounded_bound(pricing.bound, is_whole(blocks))
    if bound - value <= (context.gap + _CHANGE_LACK) * abs(value):
        found = improve_around_change(blocks, prices, pricing, start, context)
        if found.value(blocks) > value:
            start, value = found, found.value(blocks)
            on_incumbent(start, bound)
    if bound - value > (context.gap + _WARM_START_LACK) * abs(value):
        return start
    return improve_by_large_neighbourhoods(
        blocks, prices, pricing, start, bound, context, on_incumbent
    )


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
        blocks, dual.prices, pricing, known.incumbent, bound, context, on_incumbent, effort=effort
    )
    incumbent, bound = close_gap(
        blocks,
        dual,
        pricing,
        incumbent,
        bound,
        context,
        (min(effort * _last_column_limit(blocks), _LARGEST_MASTER_COLUMNS),),
        on_incumbent,
        needs_all=True,
    )
    return SearchResult(incumbent, max(bound, incumbent.value(blocks)), dual)


def _last_column_limit(blocks: BlockProblem) -> int:
    """Return up to how many columns a master that is to prove the optimum has at first."""
    core = int(blocks.copies.sum() + blocks.counts.sum()) <= _SMALL_CORE
    return _LAST_COLUMN_LIMITS[core and has_repeated_classes(blocks)]


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
        blocks, dual.prices, pricing, incumbent, bound, context, on_incumbent
    )
    yield incumbent, bound
    last = (_last_column_limit(blocks),)
    yield close_gap(
        blocks, dual, pricing, incumbent, bound, context, last, on_incumbent, needs_all=True
    )


def close_gap(
    blocks: BlockProblem,
    dual: LagrangianDual,
    pricing: PricingResult,
    incumbent: ColumnSelection,
    bound: float,
    context: SolveContext,
    limits: Sequence[int],
    on_incumbent: OnIncumbent = ignore,
    *,
    needs_all: bool = False,
) -> tuple[ColumnSelection, float]:
    """Return the best decision, and the bound that follows.

    Let C be the loss up to which the columns of a master are complete, U the bound at the prices. A
    decision with a column outside is worth at most U - C, so after a proven master the bound is

        max(incumbent, cutoff, U - C)

    `limits`: columns of one master after another. `needs_all`: end where not all columns up to the
    cutoff are within a limit.
    """
    if dual.items is None:
        return incumbent, bound
    whole, equals = is_whole(blocks), has_repeated_classes(blocks)
    for limit in limits:
        value = incumbent.value(blocks)
        if context.is_close(value, bound) or context.is_over():
            break
        cutoff_value = cutoff_of(value, bound, context.gap, whole)
        slack = max(0.0, dual.bound - cutoff_value)
        enumerated = best_columns_within(
            blocks, dual.prices, pricing, slack=slack, limit=limit, stop=context.is_over
        )
        all_enumerated = enumerated.complete_loss >= slack
        if context.is_over() or (needs_all and not all_enumerated):
            break
        if not all_enumerated and not equals:
            if enumerated.complete_loss < LEAST_LOSS * dual.bound:
                continue
            cutoff_value = max(cutoff_value, dual.bound - LOSS_MARGIN * enumerated.complete_loss)
        columns = _master_columns(blocks, dual, incumbent, enumerated, slack)
        taken = solve_master(
            blocks,
            columns,
            context,
            nodes=None if all_enumerated else 200,
            target=bound / (1.0 + context.gap),
            cutoff=cutoff_value,
        )
        if taken is None:
            continue
        found = columns.taken(taken.multiplicities)
        if found.value(blocks) > value:
            incumbent = found
            on_incumbent(incumbent, bound)
        if taken.proven:
            known = max(
                incumbent.value(blocks), cutoff_value, dual.bound - enumerated.complete_loss
            )
            bound = min(bound, rounded_bound(known, whole))
    return incumbent, bound


def _master_columns(
    blocks: BlockProblem,
    dual: LagrangianDual,
    incumbent: ColumnSelection,
    enumerated: EnumeratedColumns,
    slack: float,
) -> Columns:
    """Return the incumbent's columns and those enumerated, and the dual's if these lack some."""
    pool = ColumnPool(blocks)
    pool.extend(incumbent.columns)
    pool.extend(enumerated.columns)
    if enumerated.complete_loss < slack and has_repeated_classes(blocks):
        pool.extend(dual.pool.columns())
    return pool.columns()
