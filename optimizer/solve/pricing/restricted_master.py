"""The restricted master: how often to take which of the known columns, in PuLP."""

from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.columns import ROW_TOLERANCE, ColumnPool, Columns
from optimizer.solve.blocks.knapsack import KnapsackBand
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    assignments_of_modes,
    price_blocks,
)
from optimizer.solve.solver_adapters import maximise
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import PRICE_BLEND


@dataclass(frozen=True, slots=True)
class MasterResult:
    """How often each column is taken; `proven`: nothing is worth more than this and the cutoff."""

    multiplicities: Ints
    proven: bool


def solve_relaxed_master(
    blocks: BlockProblem, columns: Columns, context: SolveContext
) -> tuple[Floats, Prices] | None:
    """Return the linear relaxation: how often columns are taken, and its duals as prices.

    None if it is not solved in time.
    """
    answer = maximise(
        columns.values(blocks),
        _rows(blocks, columns),
        [None] * len(columns),
        solver=context.solver,
        seconds=context.seconds_left(),
        relaxed=True,
    )
    if answer.status != "Optimal":
        return None
    sites, workloads = len(blocks.copies), len(blocks.sizes)
    duals = answer.duals
    return answer.values, Prices(duals[sites : sites + workloads], duals[sites + workloads :])


def solve_master(
    blocks: BlockProblem,
    columns: Columns,
    context: SolveContext,
    *,
    start: Ints | None = None,
    nodes: int | None = None,
    target: float | None = None,
    cutoff: float | None = None,
) -> MasterResult | None:
    """Return an integral solution; None if there is none in time, or rounding breaks a row.

    `target`: objective value that is good enough. `cutoff`: solutions that are worth no more are
    not wanted. `nodes`: branch-and-bound nodes at most.
    """
    answer = maximise(
        columns.values(blocks),
        _rows(blocks, columns),
        blocks.copies[blocks.mode_sites[columns.modes]].tolist(),
        solver=context.solver,
        seconds=context.seconds_left(),
        start=None if start is None else start.astype(np.float64),
        nodes=nodes,
        target=target,
        cutoff=cutoff,
    )
    if answer.status == "NotSolved":
        return None
    times = np.rint(answer.values).astype(np.int64)
    feasible = is_feasible(blocks, columns, times)
    return MasterResult(times, answer.status == "Optimal") if feasible else None


def is_feasible(blocks: BlockProblem, columns: Columns, times: Ints) -> bool:
    """Tell whether taking columns this often satisfies every row."""
    sites = np.bincount(blocks.mode_sites[columns.modes], times, len(blocks.copies))
    workloads = np.bincount(columns.workloads, times[columns.owners], len(blocks.sizes))
    of, rows, amounts = columns.uses(blocks)
    used = np.bincount(rows, amounts * times[of], len(blocks.linking.limits))
    return bool(
        (sites <= blocks.copies).all()
        and (workloads <= blocks.counts).all()
        and (used <= blocks.linking.limits + ROW_TOLERANCE).all()
    )


def _rows(blocks: BlockProblem, columns: Columns) -> list[tuple[list[int], list[float], float]]:
    """Return the rows of sites, workloads and linking; entries of equal position are added up."""
    of, linking, amounts = columns.uses(blocks)
    first, second = len(blocks.copies), len(blocks.copies) + len(blocks.sizes)
    limits = np.concatenate([blocks.copies, blocks.counts, blocks.linking.limits])
    sites = blocks.mode_sites[columns.modes]
    row = np.concatenate([sites, first + columns.workloads, second + linking])
    column = np.concatenate([np.arange(len(columns)), columns.owners, of])
    amount = np.concatenate([np.ones(len(columns) + len(columns.workloads)), amounts])
    count = int(column.max(initial=-1)) + 1
    keys, inverse = np.unique(row * max(count, 1) + column, return_inverse=True)
    sums = np.bincount(inverse, amount, len(keys))
    ends = np.searchsorted(keys, np.arange(1, len(limits) + 1) * max(count, 1))
    starts = np.concatenate([[0], ends[:-1]])
    members = (keys % max(count, 1)).tolist()
    values = sums.tolist()
    return [
        (members[a:b], values[a:b], float(limit))
        for a, b, limit in zip(starts.tolist(), ends.tolist(), limits.tolist(), strict=True)
    ]


_MASTER_COLUMNS = 3_000
"""Columns of one master of column generation at most."""


def generate_columns(
    blocks: BlockProblem,
    items: list[KnapsackBand] | None,
    prices: Prices,
    pool: ColumnPool,
    context: SolveContext,
) -> tuple[float, Prices, Columns]:
    """Return the lowest bound with its prices, and the columns of the last master.

    Solves at most 40 masters.
    """
    pricing = price_blocks(blocks, items, prices)
    lowest, best = pricing.bound, prices
    columns = _best_columns(blocks, pool.columns(), prices, pricing)
    for _ in range(40):
        solved = solve_relaxed_master(blocks, columns, context)
        if solved is None:
            break
        value = float(solved[0] @ columns.values(blocks))
        if lowest - value <= 1e-6 * abs(lowest):
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
        columns = _best_columns(blocks, met.columns(), best, price_blocks(blocks, items, best))
    return lowest, best, columns


def _best_columns(
    blocks: BlockProblem, columns: Columns, prices: Prices, pricing: PricingResult
) -> Columns:
    """Return the columns that lose least, that is, profit_s less the column's profit."""
    lost = pricing.site_profits[blocks.mode_sites[columns.modes]] - columns.profits(blocks, prices)
    return columns.pick(np.sort(np.argsort(lost, kind="stable")[:_MASTER_COLUMNS]))


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
