"""Column generation: the prices of the master's relaxation, and columns they call for.

Where subgradient steps stall - many equal tasks, few prices - a few rounds reach the best bound:
P. C. Gilmore, R. E. Gomory, "A linear programming approach to the cutting-stock problem",
Operations Research 9 (1961).
"""

from collections.abc import Callable

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.columns import ColumnPool, Columns
from optimizer.solve.blocks.knapsack_items import KnapsackItems
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    places_of_modes,
    price_blocks,
)
from optimizer.solve.pricing.restricted_master import solve_relaxed_master

_ROUNDS = 40
_MOST = 3_000  # columns in one master
_CLOSED = 1e-6
_BLEND = 0.5  # how far prices asked for lie from the best known towards the master's


def generate_columns(
    blocks: BlockProblem,
    groups: list[KnapsackItems] | None,
    prices: Prices,
    pool: ColumnPool,
    *,
    solver: SolverName,
    left: Callable[[], float],
) -> tuple[float, Prices, Columns]:
    """Return the lowest bound reached with its prices, and the columns of the last master."""
    answers = price_blocks(blocks, groups, prices)
    lowest, best = answers.bound, prices
    columns = best_columns(blocks, pool.columns(), prices, answers, _MOST)
    for _ in range(_ROUNDS):
        solved = solve_relaxed_master(blocks, columns, solver=solver, seconds=left())
        if solved is None:
            break
        value = float(solved[0] @ columns.values(blocks))
        if lowest - value <= _CLOSED * abs(lowest):
            break
        met = ColumnPool(blocks)
        met.extend(columns)
        known = len(met)
        for blend in (1.0, _BLEND):
            asked = _between(best, solved[1], blend)
            answers = price_blocks(blocks, groups, asked)
            _add_every_mode(blocks, answers, met)
            if answers.bound < lowest:
                lowest, best = answers.bound, asked
        if len(met) == known or left() <= 0:
            break
        columns = best_columns(
            blocks, met.columns(), best, price_blocks(blocks, groups, best), _MOST
        )
    return lowest, best, columns


def best_columns(
    blocks: BlockProblem, columns: Columns, prices: Prices, answers: PricingResult, most: int
) -> Columns:
    """Return the columns that lose least against their site's best answer, `most` of them."""
    lost = answers.worth[blocks.mode_sites[columns.modes]] - columns.profits(blocks, prices)
    return columns.pick(np.sort(np.argsort(lost, kind="stable")[:most]))


def _between(one: Prices, other: Prices, share: float) -> Prices:
    return Prices(
        one.tasks + share * (other.tasks - one.tasks), one.rows + share * (other.rows - one.rows)
    )


def _add_every_mode(blocks: BlockProblem, answers: PricingResult, pool: ColumnPool) -> None:
    """Take up the best filling of every mode, one mode of each site at a time."""
    rank = np.arange(len(blocks.mode_sites)) - np.searchsorted(blocks.mode_sites, blocks.mode_sites)
    for index in range(1, int(rank.max(initial=0)) + 1):
        modes = np.flatnonzero(rank == index)
        pool.add(modes, *places_of_modes(blocks, answers.knapsacks, modes))
