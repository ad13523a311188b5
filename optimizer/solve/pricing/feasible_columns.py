"""Columns that keep the further rows by themselves.

A site's knapsacks know those rows by their prices alone, so an answer may ask for more of a further
kind than the cluster has: without some of its places it is a column that can be taken.
"""

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Flags, Floats, Ints
from optimizer.solve.blocks.columns import Columns

_TOLERANCE = 1e-7


def feasible_columns(
    blocks: BlockProblem, columns: Columns, limits: Floats
) -> tuple[Columns, Ints]:
    """Return columns without the places by which they alone exceed limits, and their numbers.

    Of the places that could go, those go that are worth least for what they use.
    """
    kept = np.ones(len(columns.tasks), np.bool_)
    if len(limits) and len(columns):
        _drop(blocks, columns, limits, kept)
    lengths = np.bincount(columns.owners, kept, len(columns)).astype(np.int64)
    full = np.flatnonzero(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths[full])])
    return Columns(columns.modes[full], starts, columns.tasks[kept], columns.slots[kept]), full


def _drop(blocks: BlockProblem, columns: Columns, limits: Floats, kept: Flags) -> None:
    """Unmark places of the columns that exceed limits by themselves."""
    places, rows, amounts = columns.uses_of_places(blocks)
    owners, mode_rows, mode_amounts = columns.uses_of_modes(blocks)
    keys = np.concatenate([columns.owners[places], owners]) * len(limits)
    keys += np.concatenate([rows, mode_rows])
    distinct, inverse = np.unique(keys, return_inverse=True)
    used = np.bincount(inverse, np.concatenate([amounts, mode_amounts]), len(distinct))
    exceeded = used > limits[distinct % len(limits)] + _TOLERANCE
    worth = blocks.values[columns.tasks, columns.slots]
    by_place = np.argsort(places, kind="stable")
    places, rows, amounts = places[by_place], rows[by_place], amounts[by_place]
    for column in np.unique(distinct[exceeded] // len(limits)).tolist():
        own = slice(*np.searchsorted(distinct, [column * len(limits), (column + 1) * len(limits)]))
        left = limits[distinct[own] % len(limits)] - used[own]
        part = slice(*np.searchsorted(places, columns.starts[[column, column + 1]]))
        at = np.searchsorted(distinct[own] % len(limits), rows[part])
        _keep_fitting(left, places[part], at, amounts[part], worth, kept)


def _keep_fitting(
    left: Floats, places: Ints, rows: Ints, amounts: Floats, worth: Floats, kept: Flags
) -> None:
    """Unmark places of one column until no row has less than nothing `left`, or none helps."""
    while (short := np.flatnonzero(left < -_TOLERANCE)).size:
        helps = np.flatnonzero((rows == short[0]) & (amounts > 0) & kept[places])
        if not helps.size:
            return
        gone = places[helps[np.argmin(worth[places[helps]] / amounts[helps])]]
        kept[gone] = False
        own = places == gone
        np.add.at(left, rows[own], amounts[own])
