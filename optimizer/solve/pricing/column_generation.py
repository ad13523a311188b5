"""Column generation: the prices of the master's relaxation, and columns they call for.

Where subgradient steps stall - many equal tasks, few prices - a few rounds reach the best bound:
P. C. Gilmore, R. E. Gomory, "A linear programming approach to the cutting-stock problem",
Operations Research 9 (1961).
"""

from collections.abc import Callable

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.solve.blocks.blocks import Blocks
from optimizer.solve.blocks.candidates import Candidates
from optimizer.solve.blocks.columns import Columns, Pool
from optimizer.solve.pricing.master import relaxed_master
from optimizer.solve.pricing.prices import Answers, Prices, places, respond

_ROUNDS = 40
_MOST = 3_000  # columns in one master
_CLOSED = 1e-6
_BLEND = 0.5  # how far prices asked for lie from the best known towards the master's


def generated(
    blocks: Blocks,
    groups: list[Candidates] | None,
    prices: Prices,
    pool: Pool,
    *,
    solver: SolverName,
    left: Callable[[], float],
) -> tuple[float, Prices, Columns]:
    """Return the lowest bound reached with its prices, and the columns of the last master."""
    answers = respond(blocks, groups, prices)
    lowest, best = answers.bound, prices
    columns = close(blocks, pool.columns(), prices, answers, _MOST)
    for _ in range(_ROUNDS):
        solved = relaxed_master(blocks, columns, solver=solver, seconds=left())
        if solved is None:
            break
        value = float(solved[0] @ columns.values(blocks))
        if lowest - value <= _CLOSED * abs(lowest):
            break
        met = Pool(blocks)
        met.extend(columns)
        known = len(met)
        for blend in (1.0, _BLEND):
            asked = _between(best, solved[1], blend)
            answers = respond(blocks, groups, asked)
            _every_mode(blocks, answers, met)
            if answers.bound < lowest:
                lowest, best = answers.bound, asked
        if len(met) == known or left() <= 0:
            break
        columns = close(blocks, met.columns(), best, respond(blocks, groups, best), _MOST)
    return lowest, best, columns


def close(blocks: Blocks, columns: Columns, prices: Prices, answers: Answers, most: int) -> Columns:
    """Return the columns that lose least against their site's best answer, `most` of them."""
    lost = answers.worth[blocks.mode_sites[columns.modes]] - columns.profits(blocks, prices)
    return columns.pick(np.sort(np.argsort(lost, kind="stable")[:most]))


def _between(one: Prices, other: Prices, share: float) -> Prices:
    return Prices(
        one.tasks + share * (other.tasks - one.tasks), one.rows + share * (other.rows - one.rows)
    )


def _every_mode(blocks: Blocks, answers: Answers, pool: Pool) -> None:
    """Take up the best filling of every mode, one mode of each site at a time."""
    rank = np.arange(len(blocks.mode_sites)) - np.searchsorted(blocks.mode_sites, blocks.mode_sites)
    for index in range(1, int(rank.max(initial=0)) + 1):
        modes = np.flatnonzero(rank == index)
        pool.add_places(modes, *places(blocks, answers.filling, modes))
