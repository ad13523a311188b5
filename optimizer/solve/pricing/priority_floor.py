"""Prices of the rows that say what earlier priorities must have.

Steps alone take long to find them: they are far above all others, for what an earlier priority
loses is to be worth nothing. At such a price the rows count as a part of every place's value, and
prices of tasks are found for that first.
"""

from dataclasses import replace

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.pricing.lagrangian_dual import SearchContext, solve_lagrangian_dual

_LEVELS = ((16.0, 64.0), (4.0, 1.0))
"""Prices tried, in values of the best place: upwards, then downwards, while that helps."""


def priority_floor_prices(blocks: BlockProblem, count: int, effort: SearchContext) -> Prices | None:
    """Return prices to start from where the last `count` rows say what must be kept.

    None where the time is up before there are any.
    """
    most = float(np.max(blocks.values, initial=0.0, where=np.isfinite(blocks.values)))
    best, lowest = None, np.inf
    for levels in _LEVELS:
        for level in levels:
            if effort.left() <= 0:
                return best
            price = level * max(most, 1.0)
            found = solve_lagrangian_dual(
                _with_floors_priced(blocks, count, price), effort, collect=False
            )
            bound = found.bound + price * float(blocks.rows.limits[-count:].sum())
            if bound >= lowest:
                break
            rows = np.concatenate([found.prices.rows, np.full(count, price)])
            best, lowest = Prices(found.prices.tasks, rows), bound
    return best


def _with_floors_priced(blocks: BlockProblem, count: int, price: float) -> BlockProblem:
    """Return the same with the last rows as a part of values instead, at a price."""
    rows, values = blocks.rows, blocks.values.copy()
    first = len(rows.limits) - count
    kept = rows.place_rows >= first
    np.subtract.at(
        values,
        (rows.place_tasks[kept], rows.place_slots[kept]),
        price * rows.place_coefficients[kept],
    )
    others, modes = ~kept, rows.mode_rows < first
    return replace(
        blocks,
        values=values,
        rows=replace(
            rows,
            limits=rows.limits[:first],
            place_rows=rows.place_rows[others],
            place_tasks=rows.place_tasks[others],
            place_slots=rows.place_slots[others],
            place_coefficients=rows.place_coefficients[others],
            mode_rows=rows.mode_rows[modes],
            mode_modes=rows.mode_modes[modes],
            mode_coefficients=rows.mode_coefficients[modes],
        ),
    )
