"""Columns that satisfy the linking rows by themselves.

The knapsacks of a site know linking rows by their prices alone, so a column may ask for more of an
extra kind than the cluster has. Without some of its assignments it can be taken.
"""

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.solve.blocks.block_problem import BlockProblem
from optimizer.solve.blocks.columns import Columns
from optimizer.solve.tuning import ROW_TOLERANCE


def feasible_columns(
    blocks: BlockProblem, columns: Columns, limits: Floats
) -> tuple[Columns, Ints]:
    """Return columns without the assignments that alone exceed limits, and their positions.

    Of the assignments that use a violated row, that of least value per amount goes first.
    """
    kept = np.ones(len(columns.workloads), np.bool_)
    if len(limits) and len(columns):
        _drop(blocks, columns, limits, kept)
    lengths = np.bincount(columns.owners, kept, len(columns)).astype(np.int64)
    full = np.flatnonzero(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths[full])])
    return Columns(
        columns.modes[full], starts, columns.workloads[kept], columns.resources[kept]
    ), full


def _drop(blocks: BlockProblem, columns: Columns, limits: Floats, kept: Bools) -> None:
    """Unmark assignments of the columns that exceed limits by themselves."""
    assignments, rows, amounts = columns.uses_of_assignments(blocks)
    owners, mode_rows, mode_amounts = columns.uses_of_modes(blocks)
    keys = np.concatenate([columns.owners[assignments], owners]) * len(limits)
    keys += np.concatenate([rows, mode_rows])
    distinct, inverse = np.unique(keys, return_inverse=True)
    used = np.bincount(inverse, np.concatenate([amounts, mode_amounts]), len(distinct))
    exceeded = used > limits[distinct % len(limits)] + ROW_TOLERANCE
    worth = blocks.values[columns.workloads, columns.resources]
    by_assignment = np.argsort(assignments, kind="stable")
    assignments, rows, amounts = (
        assignments[by_assignment],
        rows[by_assignment],
        amounts[by_assignment],
    )
    for column in np.unique(distinct[exceeded] // len(limits)).tolist():
        own = slice(*np.searchsorted(distinct, [column * len(limits), (column + 1) * len(limits)]))
        left = limits[distinct[own] % len(limits)] - used[own]
        part = slice(*np.searchsorted(assignments, columns.starts[[column, column + 1]]))
        at = np.searchsorted(distinct[own] % len(limits), rows[part])
        _keep_fitting(left, assignments[part], at, amounts[part], worth, kept)


def _keep_fitting(
    left: Floats, assignments: Ints, rows: Ints, amounts: Floats, worth: Floats, kept: Bools
) -> None:
    """Unmark assignments of one column until no row is exceeded, or none helps any more."""
    while (short := np.flatnonzero(left < -ROW_TOLERANCE)).size:
        helps = np.flatnonzero((rows == short[0]) & (amounts > 0) & kept[assignments])
        if not helps.size:
            return
        gone = assignments[helps[np.argmin(worth[assignments[helps]] / amounts[helps])]]
        kept[gone] = False
        own = assignments == gone
        np.add.at(left, rows[own], amounts[own])
