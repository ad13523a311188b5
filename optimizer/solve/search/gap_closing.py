"""Closes the gap: masters over ever more of the columns that lose least, below a cutoff."""

from collections.abc import Sequence
from math import ceil

from optimizer.solve.blocks.block_problem import BlockProblem
from optimizer.solve.blocks.columns import ColumnPool, Columns, ColumnSelection
from optimizer.solve.pricing.lagrangian_dual import (
    LagrangianDual,
    OnIncumbent,
    has_repeated_classes,
    ignore,
    rounded_bound,
)
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult
from optimizer.solve.pricing.restricted_master import is_feasible, solve_master
from optimizer.solve.search.column_enumeration import best_columns_within
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import (
    COARSE_GAP,
    LEAST_LOSS,
    LOSS_MARGIN,
    RESTRICTED_MASTER_NODES,
    VALUE_TOLERANCE,
)

_HALF = 0.5


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
    integral, equals = blocks.integral, has_repeated_classes(blocks)
    for limit in limits:
        value = incumbent.value(blocks)
        if context.is_close(value, bound) or context.is_over():
            break
        cutoff_value = cutoff_of(value, bound, context.gap, integral)
        slack = max(0.0, dual.bound - cutoff_value)
        enumerated = best_columns_within(
            blocks,
            dual.prices,
            pricing,
            slack=slack,
            limit=limit,
            stop=context.is_over,
        )
        all_enumerated = enumerated.complete_loss >= slack
        if context.is_over() or (needs_all and not all_enumerated):
            break
        if not all_enumerated and not equals:
            if enumerated.complete_loss < LEAST_LOSS * dual.bound:
                continue
            cutoff_value = max(cutoff_value, dual.bound - LOSS_MARGIN * enumerated.complete_loss)
        target = bound / (1.0 + context.gap)
        taken = _solve_restricted_master(
            blocks,
            dual,
            incumbent,
            enumerated.columns,
            all_enumerated,
            cutoff_value,
            target,
            context,
        )
        if taken is None:
            continue
        found, proven = taken
        if found.value(blocks) > value:
            incumbent = found
            on_incumbent(incumbent, bound)
        if proven:
            known = max(
                incumbent.value(blocks), cutoff_value, dual.bound - enumerated.complete_loss
            )
            bound = min(bound, rounded_bound(known, integral))
    return incumbent, bound


def cutoff_of(value: float, bound: float, gap: float, integral: bool) -> float:
    """Return the cutoff: a decision of this value or less is not an improvement.

    With a coarse gap, neither is a decision that is not close enough to the bound.
    """
    least = bound / (1.0 + gap) if gap >= COARSE_GAP else value
    if integral:
        return max(value + _HALF, ceil(least - VALUE_TOLERANCE) - _HALF if least > value else value)
    return max(value, least - VALUE_TOLERANCE * abs(least)) if least > value else value


def _solve_restricted_master(
    blocks: BlockProblem,
    dual: LagrangianDual,
    incumbent: ColumnSelection,
    enumerated: Columns,
    all_enumerated: bool,
    cutoff_value: float,
    target: float,
    context: SolveContext,
) -> tuple[ColumnSelection, bool] | None:
    """Solve the master over the enumerated columns and the incumbent's; tell whether it is proven.

    Unless all columns are enumerated, those of the Lagrangian dual are added. None if it is
    unsolved.
    """
    pool = ColumnPool(blocks)
    pool.extend(incumbent.columns)
    pool.extend(enumerated)
    if not all_enumerated and has_repeated_classes(blocks):
        pool.extend(dual.pool.columns())
    columns = pool.columns()
    taken = solve_master(
        blocks,
        columns,
        solver=context.solver,
        seconds=context.seconds_left(),
        nodes=None if all_enumerated else RESTRICTED_MASTER_NODES,
        target=target,
        cutoff=cutoff_value,
    )
    if taken is None or not is_feasible(blocks, columns, taken.multiplicities):
        return None
    return columns.taken(taken.multiplicities), taken.proven
