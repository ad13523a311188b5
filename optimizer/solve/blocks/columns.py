"""Columns: what one site could do, a mode and the places that it fills."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Floats, Ints, Prices, Subproblem


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns one after another; the places of column i are `starts[i]` to `starts[i + 1]`."""

    modes: Ints
    starts: Ints
    tasks: Ints
    slots: Ints

    def __len__(self) -> int:
        return len(self.modes)

    @property
    def owners(self) -> Ints:
        """The column of each place."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def pick(self, chosen: Ints) -> "Columns":
        """Return some of the columns, in the order named."""
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], lengths)
        return Columns(self.modes[chosen], starts, self.tasks[at], self.slots[at])

    def values(self, blocks: BlockProblem) -> Floats:
        """Return what each column adds to the objective."""
        places = blocks.values[self.tasks, self.slots]
        total: Floats = blocks.mode_values[self.modes] + np.bincount(self.owners, places, len(self))
        return total

    def uses(self, blocks: BlockProblem) -> tuple[Ints, Ints, Floats]:
        """Return which columns count how much in which further rows: columns, rows, amounts."""
        at, of_places, amounts = self.uses_of_places(blocks)
        columns, of_modes, more = self.uses_of_modes(blocks)
        return (
            np.concatenate([self.owners[at], columns]),
            np.concatenate([of_places, of_modes]),
            np.concatenate([amounts, more]),
        )

    def uses_of_places(self, blocks: BlockProblem) -> tuple[Ints, Ints, Floats]:
        """Return which places count how much in which further rows."""
        rows, slots = blocks.rows, len(blocks.slot_sites)
        keys = rows.place_tasks * slots + rows.place_slots
        order = np.argsort(keys, kind="stable")
        at, entries = _matches(keys[order], self.tasks * slots + self.slots)
        return at, rows.place_rows[order][entries], rows.place_coefficients[order][entries]

    def uses_of_modes(self, blocks: BlockProblem) -> tuple[Ints, Ints, Floats]:
        """Return which columns' modes count how much in which further rows."""
        rows = blocks.rows
        order = np.argsort(rows.mode_modes, kind="stable")
        columns, chosen = _matches(rows.mode_modes[order], self.modes)
        return columns, rows.mode_rows[order][chosen], rows.mode_coefficients[order][chosen]

    def profits(self, blocks: BlockProblem, prices: Prices) -> Floats:
        """Return what each column is worth beyond its prices."""
        paid = np.bincount(self.owners, prices.tasks[self.tasks], len(self))
        columns, rows, amounts = self.uses(blocks)
        charged = np.bincount(columns, amounts * prices.rows[rows], len(self))
        profits: Floats = self.values(blocks) - paid - charged
        return profits


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """A decision: columns and how often each is taken."""

    columns: Columns
    multiplicities: Ints

    def value(self, blocks: BlockProblem) -> float:
        """Return what it is worth."""
        return float(self.columns.values(blocks) @ self.multiplicities)


class ColumnPool:
    """Columns met so far, each once, and how often since the last count began."""

    def __init__(self, blocks: BlockProblem) -> None:
        self._blocks = blocks
        self._columns: dict[tuple[int, bytes, bytes], int] = {}
        self.met: dict[tuple[int, bytes, bytes], int] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, modes: Ints, tasks: Ints, slots: Ints) -> None:
        """Take up columns of these modes, one of a site at most, with these places."""
        blocks = self._blocks
        columns = columns_from_places(blocks, modes, tasks, slots)
        tasks, slots, starts = columns.tasks, columns.slots, columns.starts.tolist()
        modes_list = columns.modes.tolist()
        for index, mode in enumerate(modes_list):
            first, end = starts[index], starts[index + 1]
            if first == end:
                continue
            key = mode, tasks[first:end].tobytes(), slots[first:end].tobytes()
            self._columns.setdefault(key, len(self._columns))
            self.met[key] = self.met.get(key, 0) + 1

    def extend(self, columns: Columns) -> None:
        """Take up columns as they are."""
        starts = columns.starts.tolist()
        for index, mode in enumerate(columns.modes.tolist()):
            first, end = starts[index], starts[index + 1]
            key = mode, columns.tasks[first:end].tobytes(), columns.slots[first:end].tobytes()
            self._columns.setdefault(key, len(self._columns))

    def columns(self) -> Columns:
        """Return the columns in the order met."""
        return _decoded(self._columns)

    def counted(self) -> tuple[Columns, Ints]:
        """Return the columns met since the count began, and how often."""
        return _decoded(self.met), np.fromiter(self.met.values(), np.int64, len(self.met))


def columns_from_places(blocks: BlockProblem, modes: Ints, tasks: Ints, slots: Ints) -> Columns:
    """Return the columns of these modes, one of a site at most, with these places on them.

    Of a task that fills more places of a site than it may, the places worth least go.
    """
    sites = blocks.slot_sites[slots]
    order = np.lexsort((-blocks.values[tasks, slots], tasks, sites))
    sites, tasks, slots = sites[order], tasks[order], slots[order]
    new = np.ones(len(tasks), np.bool_)
    new[1:] = (tasks[1:] != tasks[:-1]) | (sites[1:] != sites[:-1])
    first = np.maximum.accumulate(np.where(new, np.arange(len(tasks)), 0))
    kept = np.arange(len(tasks)) - first < blocks.most[tasks]
    sites, tasks, slots = sites[kept], tasks[kept], slots[kept]
    order = np.lexsort((slots, tasks, sites))
    sites, tasks, slots = sites[order], tasks[order], slots[order]
    by_site = np.argsort(blocks.mode_sites[modes], kind="stable")
    own = blocks.mode_sites[modes][by_site]
    starts = np.concatenate([np.searchsorted(sites, own), [len(sites)]])
    return Columns(modes[by_site], starts, tasks, slots)


def concatenated_columns(pieces: Iterable[Columns]) -> Columns:
    """Return columns one after another."""
    pieces = list(pieces)
    none = np.zeros(0, np.int64)
    lengths = np.concatenate([none, *(np.diff(piece.starts) for piece in pieces)])
    return Columns(
        np.concatenate([none, *(piece.modes for piece in pieces)]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([none, *(piece.tasks for piece in pieces)]),
        np.concatenate([none, *(piece.slots for piece in pieces)]),
    )


def to_whole_problem(columns: Columns, part: Subproblem) -> Columns:
    """Return columns of a part as columns of the whole."""
    return Columns(
        part.modes[columns.modes],
        columns.starts,
        part.tasks[columns.tasks],
        part.slots[columns.slots],
    )


def _decoded(found: Iterable[tuple[int, bytes, bytes]]) -> Columns:
    keys = list(found)
    lengths = [len(tasks) // 8 for _, tasks, _ in keys]
    return Columns(
        np.array([mode for mode, _, _ in keys], np.int64),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        np.frombuffer(b"".join(tasks for _, tasks, _ in keys), np.int64),
        np.frombuffer(b"".join(slots for _, _, slots in keys), np.int64),
    )


def _matches(ordered: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return positions in `wanted` and in `ordered` of all pairs of equal keys."""
    left = np.searchsorted(ordered, wanted, side="left")
    times = np.searchsorted(ordered, wanted, side="right") - left
    at = np.repeat(np.arange(len(wanted)), times)
    offset = np.arange(len(at)) - np.repeat(np.cumsum(times) - times, times)
    return at, np.repeat(left, times) + offset
