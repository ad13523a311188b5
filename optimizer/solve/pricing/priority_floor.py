"""First prices of the rows that keep the value of higher priorities (priority floors).

Subgradients alone take long to find them, because they are far above all other prices: losing value
of a higher priority must never pay. At a price p of such a row, p times its coefficients can be
added to the values of assignments; the other prices are then found as usual.
"""

from dataclasses import replace

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.pricing.lagrangian_dual import solve_lagrangian_dual
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import FLOOR_PRICE_LEVELS


def priority_floor_prices(blocks: BlockProblem, count: int, context: SolveContext) -> Prices | None:
    """Return start prices where the last `count` linking rows are priority floors.

    None if the time is up before there are any.
    """
    most = float(np.max(blocks.values, initial=0.0, where=np.isfinite(blocks.values)))
    best, lowest = None, np.inf
    for levels in FLOOR_PRICE_LEVELS:
        for level in levels:
            if context.is_over():
                return best
            price = level * max(most, 1.0)
            found = solve_lagrangian_dual(
                _with_floors_priced(blocks, count, price), context, collect=False
            )
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
            assignment_rows=rows.assignment_rows[others],
            assignment_workloads=rows.assignment_workloads[others],
            assignment_resources=rows.assignment_resources[others],
            assignment_coefficients=rows.assignment_coefficients[others],
            choice_rows=rows.choice_rows[modes],
            choices=rows.choices[modes],
            choice_coefficients=rows.choice_coefficients[modes],
        ),
    )
