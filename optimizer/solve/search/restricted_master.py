"""A choice among ever more columns that lose little, until it is proven or good enough."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from optimizer.solve.blocks.blocks import Blocks
from optimizer.solve.blocks.columns import Columns, Pool
from optimizer.solve.heuristics.neighbourhood import Held
from optimizer.solve.pricing.lagrangian import Effort, Priced, repeated, rounded
from optimizer.solve.pricing.master import feasible, master
from optimizer.solve.pricing.prices import Answers
from optimizer.solve.search.enumeration import nearest

_WHOLE = 1e-6
_HALF = 0.5
_NODES = 200
_FURTHER = 1.5  # decisions are looked for that lose so much more than what must be found
_SCANTY = 4e-4  # of the bound: columns that lose less are too few to make a decision of
_COARSE = 1e-3  # a gap from which on only decisions are looked for that are good enough


def closing(
    blocks: Blocks,
    priced: Priced,
    answers: Answers,
    held: Held,
    bound: float,
    effort: Effort,
    limits: Sequence[int],
    complete: bool = False,
) -> tuple[Held, float]:
    """Choose among ever more of the columns that lose little against the best answers.

    Returns the best decision and the bound that follows: what is not among the columns that lose
    `reach` at most is worth no more than what all best answers are, less this.
    """
    if priced.groups is None:
        return held, bound
    whole, equals = blocks.whole, repeated(blocks)
    for limit in limits:
        value = held.value(blocks)
        if bound - value <= max(effort.gap * abs(value), _WHOLE) or effort.left() <= 0:
            break
        above = _useless(value, bound, effort.gap, whole)
        slack = max(0.0, priced.bound - above)
        near = nearest(
            blocks,
            priced.prices,
            answers,
            slack=slack,
            limit=limit,
            stop=lambda: effort.left() <= 0,
        )
        every = near.reach >= slack
        if effort.left() <= 0 or (complete and not every):
            break
        if not every and not equals:
            if near.reach < _SCANTY * priced.bound:
                continue
            above = max(above, priced.bound - _FURTHER * near.reach)
        target = bound / (1.0 + effort.gap)
        taken = _taken(blocks, priced, held, near.columns, every, above, target, effort)
        if taken is None:
            continue
        found, proven = taken
        if found.value(blocks) > value:
            held = found
            effort.found(held, bound)
        if proven:
            known = max(held.value(blocks), above, priced.bound - near.reach)
            bound = min(bound, rounded(known, whole))
    return held, bound


def _useless(value: float, bound: float, gap: float, whole: bool) -> float:
    """Return what a decision is of no use that is worth no more: not better, or not good enough."""
    least = bound / (1.0 + gap) if gap >= _COARSE else value
    if whole:
        return max(value + _HALF, ceil(least - _WHOLE) - _HALF if least > value else value)
    return max(value, least - _WHOLE * abs(least)) if least > value else value


def _taken(
    blocks: Blocks,
    priced: Priced,
    held: Held,
    near: Columns,
    every: bool,
    above: float,
    target: float,
    effort: Effort,
) -> tuple[Held, bool] | None:
    """Choose among columns, those held and met, unless these are all; tell whether it is proven."""
    pool = Pool(blocks)
    pool.extend(held.columns)
    pool.extend(near)
    if not every and repeated(blocks):
        pool.extend(priced.pool.columns())
    columns = pool.columns()
    taken = master(
        blocks,
        columns,
        solver=effort.solver,
        seconds=effort.left(),
        nodes=None if every else _NODES,
        target=target,
        above=above,
    )
    if taken is None or not feasible(blocks, columns, taken.times):
        return None
    hit = np.flatnonzero(taken.times)
    return Held(columns.pick(hit), taken.times[hit]), taken.proven
