"""Which tasks a slot considers: all of them, or in a large problem the most promising ones."""

from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Floats, Ints, LinkingRows


@dataclass(frozen=True, slots=True)
class KnapsackItems:
    """Tasks of one size that slots consider: `tasks` and their `values`, [slot, candidate].

    `at`, `rows`, `coefficients`: which further rows count a candidate, by its flat position.
    """

    size: int
    tasks: Ints
    values: Floats
    at: Ints
    rows: Ints
    coefficients: Floats

    def profits(self, prices: Floats, row_prices: Floats) -> Floats:
        """Return what each candidate is worth beyond its prices."""
        profits: Floats = self.values - prices[self.tasks]
        if len(self.at):
            charged = self.coefficients * row_prices[self.rows]
            profits -= np.bincount(self.at, charged, profits.size).reshape(profits.shape)
        return profits


def all_items(blocks: BlockProblem, slots: slice = slice(None)) -> list[KnapsackItems]:
    """Return all candidates of some slots, by size; a class of tasks as often as it may be used."""
    groups = []
    count = len(range(*slots.indices(len(blocks.slot_sites))))
    for size in np.unique(blocks.sizes):
        first, end = np.searchsorted(blocks.sizes, [size, size + 1])
        times = np.minimum(blocks.most, blocks.counts)[first:end]
        if size:
            times = np.minimum(times, blocks.largest // size)
        tasks = np.repeat(np.arange(first, end), times)
        values = np.ascontiguousarray(blocks.values[first:end, slots].T)
        if len(tasks) != end - first:
            values = values[:, tasks - first]
        shared = np.broadcast_to(tasks, (count, len(tasks)))
        groups.append(
            _with_linking_entries(int(size), shared, values, blocks.rows, slots.start or 0)
        )
    return groups


def most_profitable(
    groups: list[KnapsackItems], prices: Floats, row_prices: Floats, capacity: int
) -> list[KnapsackItems]:
    """Return, of each slot and size, those worth most at given prices, as many as would fit."""
    return [
        _most_profitable_of_size(group, prices, row_prices, max(1, capacity // group.size))
        if group.size
        else group
        for group in groups
    ]


def concatenated_items(pieces: list[list[KnapsackItems]]) -> list[KnapsackItems]:
    """Return the candidates of consecutive ranges of slots as one."""
    groups = []
    for same in zip(*pieces, strict=True):
        width = same[0].tasks.shape[1]
        starts = np.cumsum([0, *(len(piece.tasks) * width for piece in same)])[:-1]
        groups.append(
            KnapsackItems(
                same[0].size,
                np.concatenate([piece.tasks for piece in same]),
                np.concatenate([piece.values for piece in same]),
                np.concatenate(
                    [piece.at + start for piece, start in zip(same, starts, strict=True)]
                ),
                np.concatenate([piece.rows for piece in same]),
                np.concatenate([piece.coefficients for piece in same]),
            )
        )
    return groups


def _most_profitable_of_size(
    group: KnapsackItems, prices: Floats, row_prices: Floats, keep: int
) -> KnapsackItems:
    if group.tasks.shape[1] <= keep:
        return group
    profits = group.profits(prices, row_prices)
    picked = np.argpartition(-profits, keep - 1, axis=1)[:, :keep]
    picked.sort(axis=1)
    tasks = np.take_along_axis(group.tasks, picked, axis=1)
    values = np.take_along_axis(group.values, picked, axis=1)
    flat = (picked + np.arange(len(picked))[:, None] * group.tasks.shape[1]).ravel()
    position = np.searchsorted(flat, group.at)
    inside = (position < len(flat)) & (flat[np.minimum(position, len(flat) - 1)] == group.at)
    return KnapsackItems(
        group.size, tasks, values, position[inside], group.rows[inside], group.coefficients[inside]
    )


def _with_linking_entries(
    size: int, tasks: Ints, values: Floats, rows: LinkingRows, first_slot: int
) -> KnapsackItems:
    """Find the entries of the further rows among the candidates."""
    if not len(rows.place_rows):
        none = np.zeros(0, np.int64)
        return KnapsackItems(size, tasks, values, none, none, np.zeros(0))
    width = tasks.shape[1]
    order = np.argsort(tasks[0], kind="stable")
    ordered = tasks[0][order]
    inside = (rows.place_slots >= first_slot) & (rows.place_slots < first_slot + len(tasks))
    entries = np.flatnonzero(inside)
    left = np.searchsorted(ordered, rows.place_tasks[entries], side="left")
    right = np.searchsorted(ordered, rows.place_tasks[entries], side="right")
    times = right - left
    entries = np.repeat(entries, times)
    offset = np.arange(len(entries)) - np.repeat(np.cumsum(times) - times, times)
    columns = order[np.repeat(left, times) + offset]
    at = (rows.place_slots[entries] - first_slot) * width + columns
    return KnapsackItems(
        size, tasks, values, at, rows.place_rows[entries], rows.place_coefficients[entries]
    )
