"""Column generation: the optimal prices of the relaxed master, and the columns that it needs.

Where subgradients stall, because many workloads are identical and few prices differ, some rounds
reach the optimum of the dual: P. C. Gilmore, R. E. Gomory, "A linear programming approach to the
cutting-stock problem", Operations Research 9 (1961). Prices are smoothed towards the best ones: P.
Wentges, "Weighted Dantzig-Wolfe decomposition", International Transactions in Operational Research
4 (1997).
"""

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.columns import ColumnPool, Columns
from optimizer.solve.blocks.knapsack_items import KnapsackBand
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    assignments_of_modes,
    price_blocks,
)
from optimizer.solve.pricing.restricted_master import solve_relaxed_master
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import MASTER_COLUMNS, MASTER_GAP, MASTER_ROUNDS, PRICE_BLEND


def generate_columns(
    blocks: BlockProblem,
    items: list[KnapsackBand] | None,
    prices: Prices,
    pool: ColumnPool,
    context: SolveContext,
) -> tuple[float, Prices, Columns]:
    """Return the lowest bound with its prices, and the columns of the last master."""
    pricing = price_blocks(blocks, items, prices)
    lowest, best = pricing.bound, prices
    columns = best_columns(blocks, pool.columns(), prices, pricing, MASTER_COLUMNS)
    for _ in range(MASTER_ROUNDS):
        solved = solve_relaxed_master(
            blocks, columns, solver=context.solver, seconds=context.seconds_left()
        )
        if solved is None:
            break
        value = float(solved[0] @ columns.values(blocks))
        if lowest - value <= MASTER_GAP * abs(lowest):
            break
        met = ColumnPool(blocks)
        met.extend(columns)
        known = len(met)
        for blend in (1.0, PRICE_BLEND):
            asked = _between(best, solved[1], blend)
            pricing = price_blocks(blocks, items, asked)
            _add_every_mode(blocks, pricing, met)
            if pricing.bound < lowest:
                lowest, best = pricing.bound, asked
        if len(met) == known or context.is_over():
            break
        columns = best_columns(
            blocks, met.columns(), best, price_blocks(blocks, items, best), MASTER_COLUMNS
        )
    return lowest, best, columns


def best_columns(
    blocks: BlockProblem, columns: Columns, prices: Prices, pricing: PricingResult, most: int
) -> Columns:
    """Return the `most` columns that lose least, that is, profit_s less the column's profit."""
    lost = pricing.site_profits[blocks.mode_sites[columns.modes]] - columns.profits(blocks, prices)
    return columns.pick(np.sort(np.argsort(lost, kind="stable")[:most]))


def _between(one: Prices, other: Prices, share: float) -> Prices:
    return Prices(
        one.workloads + share * (other.workloads - one.workloads),
        one.linking + share * (other.linking - one.linking),
    )


def _add_every_mode(blocks: BlockProblem, pricing: PricingResult, pool: ColumnPool) -> None:
    """Add the optimal column of every mode, for one mode of each site at a time."""
    rank = np.arange(len(blocks.mode_sites)) - np.searchsorted(blocks.mode_sites, blocks.mode_sites)
    for index in range(1, int(rank.max(initial=0)) + 1):
        modes = np.flatnonzero(rank == index)
        pool.add(modes, *assignments_of_modes(blocks, pricing.knapsacks, modes))
