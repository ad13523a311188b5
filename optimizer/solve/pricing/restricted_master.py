"""The master problem: which columns to take, in PuLP."""

from dataclasses import dataclass

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.solve.blocks.block_problem import BlockProblem, Floats, Ints, Prices
from optimizer.solve.blocks.columns import Columns
from optimizer.solve.solver_adapters import SolverResult, maximise


@dataclass(frozen=True, slots=True)
class MasterResult:
    """How often each column is taken; `proven`: nothing is worth more than that and `above`."""

    multiplicities: Ints
    proven: bool


def solve_relaxed_master(
    blocks: BlockProblem, columns: Columns, *, solver: SolverName, seconds: float
) -> tuple[Floats, Prices] | None:
    """Return how often columns are taken if parts may be, and the prices; None if unsolved."""
    answer = _solve_model(blocks, columns, solver=solver, seconds=seconds, relaxed=True)
    if answer.status != "Optimal":
        return None
    sites, tasks = len(blocks.copies), len(blocks.sizes)
    duals = answer.duals
    return answer.values, Prices(duals[sites : sites + tasks], duals[sites + tasks :])


def solve_master(
    blocks: BlockProblem,
    columns: Columns,
    *,
    solver: SolverName,
    seconds: float,
    start: Ints | None = None,
    nodes: int | None = None,
    target: float | None = None,
    above: float | None = None,
) -> MasterResult | None:
    """Choose among columns, `target` is good enough; None if nothing was found in time.

    Choices that are worth no more than `above` need not be looked at.
    """
    answer = _solve_model(
        blocks,
        columns,
        solver=solver,
        seconds=seconds,
        relaxed=False,
        start=start,
        nodes=nodes,
        target=target,
        above=above,
    )
    if answer.status == "NotSolved":
        return None
    return MasterResult(np.rint(answer.values).astype(np.int64), answer.status == "Optimal")


def is_feasible(blocks: BlockProblem, columns: Columns, times: Ints) -> bool:
    """Tell whether taking columns so often keeps every row."""
    sites = np.bincount(blocks.mode_sites[columns.modes], times, len(blocks.copies))
    tasks = np.bincount(columns.tasks, times[columns.owners], len(blocks.sizes))
    of, rows, amounts = columns.uses(blocks)
    used = np.bincount(rows, amounts * times[of], len(blocks.rows.limits))
    return bool(
        (sites <= blocks.copies).all()
        and (tasks <= blocks.counts).all()
        and (used <= blocks.rows.limits + 1e-7).all()
    )


def _solve_model(
    blocks: BlockProblem,
    columns: Columns,
    *,
    solver: SolverName,
    seconds: float,
    relaxed: bool,
    start: Ints | None = None,
    nodes: int | None = None,
    target: float | None = None,
    above: float | None = None,
) -> SolverResult:
    sites = blocks.mode_sites[columns.modes]
    every = np.arange(len(columns))
    of, further, amounts = columns.uses(blocks)
    first, second = len(blocks.copies), len(blocks.copies) + len(blocks.sizes)
    limits = np.concatenate([blocks.copies, blocks.counts, blocks.rows.limits])
    row = np.concatenate([sites, first + columns.tasks, second + further])
    column = np.concatenate([every, columns.owners, of])
    amount = np.concatenate([np.ones(len(every) + len(columns.tasks)), amounts])
    rows = _rows(row, column, amount, limits)
    upper = [None] * len(every) if relaxed else blocks.copies[sites].tolist()
    return maximise(
        columns.values(blocks),
        rows,
        upper,
        solver=solver,
        seconds=seconds,
        relaxed=relaxed,
        start=None if start is None else start.astype(np.float64),
        nodes=nodes,
        target=target,
        above=above,
    )


def _rows(
    row: Ints, column: Ints, amount: Floats, limits: Floats
) -> list[tuple[list[int], list[float], float]]:
    """Return the rows of a sparse matrix; what is named twice is added up."""
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
