"""Columns of the Dantzig-Wolfe master: a mode of a site, and the assignments that fill it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.solve.blocks.block_problem import BlockProblem, Prices, Subproblem, matches

ROW_TOLERANCE = 1e-7
"""Units of a linking row, whose largest coefficient is 1: a smaller violation is rounding."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns in compressed sparse form; column i has assignments `starts[i]` to `starts[i + 1]`.

    `modes` [columns], `starts` [columns + 1], `workloads` and `resources` [assignments].
    """

    modes: Ints
    starts: Ints
    workloads: Ints
    resources: Ints

    def __len__(self) -> int:
        return len(self.modes)

    @property
    def owners(self) -> Ints:
        """The column of each assignment, [assignments]."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def pick(self, chosen: Ints) -> "Columns":
        """Return some of the columns, in the given order."""
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], lengths)
        return Columns(self.modes[chosen], starts, self.workloads[at], self.resources[at])

    def taken(self, multiplicities: Ints) -> "ColumnSelection":
        """Return the columns that are taken at least once."""
        hit = np.flatnonzero(multiplicities)
        return ColumnSelection(self.pick(hit), multiplicities[hit])

    def values(self, blocks: BlockProblem) -> Floats:
        """Return what each column adds to the objective, [columns]."""
        assignments = blocks.values[self.workloads, self.resources]
        total: Floats = blocks.mode_values[self.modes] + np.bincount(
            self.owners, assignments, len(self)
        )
        return total

    def uses(self, blocks: BlockProblem) -> tuple[Ints, Ints, Floats]:
        """Return the entries of the linking rows: columns, rows and amounts, of equal length."""
        at, of_assignments, amounts = self.uses_of_assignments(blocks)
        columns, of_modes, more = self.uses_of_modes(blocks)
        return (
            np.concatenate([self.owners[at], columns]),
            np.concatenate([of_assignments, of_modes]),
            np.concatenate([amounts, more]),
        )

    def uses_of_assignments(self, blocks: BlockProblem) -> tuple[Ints, Ints, Floats]:
        """Return the entries of assignments in linking rows: assignments, rows, amounts."""
        rows, resources = blocks.linking, len(blocks.resource_sites)
        keys = rows.assignment_workloads * resources + rows.assignment_resources
        order = np.argsort(keys, kind="stable")
        at, entries = matches(keys[order], self.workloads * resources + self.resources)
        return (
            at,
            rows.assignment_rows[order][entries],
            rows.assignment_coefficients[order][entries],
        )

    def uses_of_modes(self, blocks: BlockProblem) -> tuple[Ints, Ints, Floats]:
        """Return the entries of modes in linking rows: columns, rows, amounts."""
        rows = blocks.linking
        order = np.argsort(rows.choices, kind="stable")
        columns, chosen = matches(rows.choices[order], self.modes)
        return columns, rows.choice_rows[order][chosen], rows.choice_coefficients[order][chosen]

    def profits(self, blocks: BlockProblem, prices: Prices) -> Floats:
        """Return the value of each column less its prices (its reduced profit), [columns]."""
        paid = np.bincount(self.owners, prices.workloads[self.workloads], len(self))
        columns, rows, amounts = self.uses(blocks)
        charged = np.bincount(columns, amounts * prices.linking[rows], len(self))
        profits: Floats = self.values(blocks) - paid - charged
        return profits


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """A decision over blocks: columns, and how many sites take each."""

    columns: Columns
    multiplicities: Ints

    def value(self, blocks: BlockProblem) -> float:
        """Return the value of the decision, in objective units."""
        return float(self.columns.values(blocks) @ self.multiplicities)

    def merged(self) -> "ColumnSelection":
        """Return the same decision with each column once."""
        times: dict[tuple[int, bytes, bytes], int] = {}
        for key, more in zip(_keys(self.columns), self.multiplicities.tolist(), strict=True):
            times[key] = times.get(key, 0) + more
        return ColumnSelection(_decoded(times), np.array(list(times.values()), np.int64))


class ColumnPool:
    """Distinct columns in the order in which they were added, and how often each was generated."""

    def __init__(self, blocks: BlockProblem) -> None:
        self._blocks = blocks
        self._columns: dict[tuple[int, bytes, bytes], int] = {}
        self.met: dict[tuple[int, bytes, bytes], int] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, modes: Ints, workloads: Ints, resources: Ints) -> None:
        """Add and count the columns of modes, at most one of a site, with these assignments."""
        columns = columns_from_assignments(self._blocks, modes, workloads, resources)
        for key in _keys(columns):
            if key[1]:
                self._columns.setdefault(key, len(self._columns))
                self.met[key] = self.met.get(key, 0) + 1

    def extend(self, columns: Columns) -> None:
        """Add columns without counting them."""
        for key in _keys(columns):
            self._columns.setdefault(key, len(self._columns))

    def columns(self) -> Columns:
        """Return all columns, in the order in which they were added."""
        return _decoded(self._columns)

    def counted(self) -> tuple[Columns, Ints]:
        """Return the columns that were generated, and how often."""
        return _decoded(self.met), np.fromiter(self.met.values(), np.int64, len(self.met))


def columns_from_assignments(
    blocks: BlockProblem, modes: Ints, workloads: Ints, resources: Ints
) -> Columns:
    """Return the columns of these modes, at most one of a site, with these assignments.

    Where a workload has more assignments on a site than it may, those of least value are dropped.
    """
    sites = blocks.resource_sites[resources]
    order = np.lexsort((-blocks.values[workloads, resources], workloads, sites))
    sites, workloads, resources = sites[order], workloads[order], resources[order]
    new = np.ones(len(workloads), np.bool_)
    new[1:] = (workloads[1:] != workloads[:-1]) | (sites[1:] != sites[:-1])
    first = np.maximum.accumulate(np.where(new, np.arange(len(workloads)), 0))
    kept = np.arange(len(workloads)) - first < blocks.most_per_site[workloads]
    sites, workloads, resources = sites[kept], workloads[kept], resources[kept]
    order = np.lexsort((resources, workloads, sites))
    sites, workloads, resources = sites[order], workloads[order], resources[order]
    by_site = np.argsort(blocks.mode_sites[modes], kind="stable")
    own = blocks.mode_sites[modes][by_site]
    starts = np.concatenate([np.searchsorted(sites, own), [len(sites)]])
    return Columns(modes[by_site], starts, workloads, resources)


def concatenated_columns(pieces: Iterable[Columns]) -> Columns:
    """Return the columns of all pieces, one piece after another."""
    pieces = list(pieces)
    none = np.zeros(0, np.int64)
    lengths = np.concatenate([none, *(np.diff(piece.starts) for piece in pieces)])
    return Columns(
        np.concatenate([none, *(piece.modes for piece in pieces)]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([none, *(piece.workloads for piece in pieces)]),
        np.concatenate([none, *(piece.resources for piece in pieces)]),
    )


def to_whole_problem(columns: Columns, part: Subproblem) -> Columns:
    """Return columns of a subproblem in the numbers of the whole problem."""
    return Columns(
        part.modes[columns.modes],
        columns.starts,
        part.workloads[columns.workloads],
        part.resources[columns.resources],
    )


def _keys(columns: Columns) -> Iterator[tuple[int, bytes, bytes]]:
    starts, workloads, resources = columns.starts.tolist(), columns.workloads, columns.resources
    for mode, first, end in zip(columns.modes.tolist(), starts[:-1], starts[1:], strict=True):
        yield mode, workloads[first:end].tobytes(), resources[first:end].tobytes()


def _decoded(found: Iterable[tuple[int, bytes, bytes]]) -> Columns:
    keys = list(found)
    lengths = [len(workloads) // 8 for _, workloads, _ in keys]
    return Columns(
        np.array([mode for mode, _, _ in keys], np.int64),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        np.frombuffer(b"".join(workloads for _, workloads, _ in keys), np.int64),
        np.frombuffer(b"".join(resources for _, _, resources in keys), np.int64),
    )


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
