"""A choice among ever more columns that lose little, until it is proven or good enough."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem
from optimizer.solve.blocks.columns import ColumnPool, Columns, ColumnSelection
from optimizer.solve.pricing.lagrangian_dual import (
    LagrangianDual,
    SearchContext,
    has_repeated_classes,
    rounded_bound,
)
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult
from optimizer.solve.pricing.restricted_master import is_feasible, solve_master
from optimizer.solve.search.column_enumeration import best_columns_within

_WHOLE = 1e-6
_HALF = 0.5
_NODES = 200
_FURTHER = 1.5  # decisions are looked for that lose so much more than what must be found
_SCANTY = 4e-4  # of the bound: columns that lose less are too few to make a decision of
_COARSE = 1e-3  # a gap from which on only decisions are looked for that are good enough


def close_gap(
    blocks: BlockProblem,
    priced: LagrangianDual,
    answers: PricingResult,
    held: ColumnSelection,
    bound: float,
    effort: SearchContext,
    limits: Sequence[int],
    complete: bool = False,
) -> tuple[ColumnSelection, float]:
    """Choose among ever more of the columns that lose little against the best answers.

    Returns the best decision and the bound that follows: what is not among the columns that lose
    `reach` at most is worth no more than what all best answers are, less this.
    """
    if priced.items is None:
        return held, bound
    whole, equals = blocks.whole, has_repeated_classes(blocks)
    for limit in limits:
        value = held.value(blocks)
        if bound - value <= max(effort.gap * abs(value), _WHOLE) or effort.left() <= 0:
            break
        above = cutoff(value, bound, effort.gap, whole)
        slack = max(0.0, priced.bound - above)
        near = best_columns_within(
            blocks,
            priced.prices,
            answers,
            slack=slack,
            limit=limit,
            stop=lambda: effort.left() <= 0,
        )
        every = near.complete_loss >= slack
        if effort.left() <= 0 or (complete and not every):
            break
        if not every and not equals:
            if near.complete_loss < _SCANTY * priced.bound:
                continue
            above = max(above, priced.bound - _FURTHER * near.complete_loss)
        target = bound / (1.0 + effort.gap)
        taken = _solve_restricted_master(
            blocks, priced, held, near.columns, every, above, target, effort
        )
        if taken is None:
            continue
        found, proven = taken
        if found.value(blocks) > value:
            held = found
            effort.found(held, bound)
        if proven:
            known = max(held.value(blocks), above, priced.bound - near.complete_loss)
            bound = min(bound, rounded_bound(known, whole))
    return held, bound


def cutoff(value: float, bound: float, gap: float, whole: bool) -> float:
    """Return what a decision is of no use that is worth no more: not better, or not good enough."""
    least = bound / (1.0 + gap) if gap >= _COARSE else value
    if whole:
        return max(value + _HALF, ceil(least - _WHOLE) - _HALF if least > value else value)
    return max(value, least - _WHOLE * abs(least)) if least > value else value


def _solve_restricted_master(
    blocks: BlockProblem,
    priced: LagrangianDual,
    held: ColumnSelection,
    near: Columns,
    every: bool,
    above: float,
    target: float,
    effort: SearchContext,
) -> tuple[ColumnSelection, bool] | None:
    """Choose among columns, those held and met, unless these are all; tell whether it is proven."""
    pool = ColumnPool(blocks)
    pool.extend(held.columns)
    pool.extend(near)
    if not every and has_repeated_classes(blocks):
        pool.extend(priced.pool.columns())
    columns = pool.columns()
    taken = solve_master(
        blocks,
        columns,
        solver=effort.solver,
        seconds=effort.left(),
        nodes=None if every else _NODES,
        target=target,
        above=above,
    )
    if taken is None or not is_feasible(blocks, columns, taken.multiplicities):
        return None
    hit = np.flatnonzero(taken.multiplicities)
    return ColumnSelection(columns.pick(hit), taken.multiplicities[hit]), taken.proven
