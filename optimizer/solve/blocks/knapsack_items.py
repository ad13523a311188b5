"""The items of the knapsacks: all workloads, or in a large problem the most profitable ones."""

from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.block_problem import BlockProblem, LinkingRows, matches


@dataclass(frozen=True, slots=True)
class KnapsackItems:
    """Items of one size: `workloads` and their `values`, both [resources, items].

    `at`, `linking`, `coefficients`: the entries of linking rows, by flat position of the item.
    """

    size: int
    workloads: Ints
    values: Floats
    at: Ints
    linking: Ints
    coefficients: Floats

    def profits(self, prices: Floats, row_prices: Floats) -> Floats:
        """Return the value of each item less its prices, [resources, items]."""
        profits: Floats = self.values - prices[self.workloads]
        if len(self.at):
            charged = self.coefficients * row_prices[self.linking]
            profits -= np.bincount(self.at, charged, profits.size).reshape(profits.shape)
        return profits


def all_items(blocks: BlockProblem, resources: slice = slice(None)) -> list[KnapsackItems]:
    """Return all items of some resources by size; a class as often as a site may take it."""
    items = []
    count = len(range(*resources.indices(len(blocks.resource_sites))))
    for size in np.unique(blocks.sizes):
        first, end = np.searchsorted(blocks.sizes, [size, size + 1])
        times = np.minimum(blocks.most_per_site, blocks.counts)[first:end]
        if size:
            times = np.minimum(times, blocks.largest_supply // size)
        workloads = np.repeat(np.arange(first, end), times)
        values = np.ascontiguousarray(blocks.values[first:end, resources].T)
        if len(workloads) != end - first:
            values = values[:, workloads - first]
        shared = np.broadcast_to(workloads, (count, len(workloads)))
        items.append(
            _with_linking_entries(int(size), shared, values, blocks.linking, resources.start or 0)
        )
    return items


def most_profitable(
    items: list[KnapsackItems], prices: Floats, row_prices: Floats, capacity: int
) -> list[KnapsackItems]:
    """Return, of each resource and size, as many of the most profitable items as fit."""
    return [
        _most_profitable_of_size(group, prices, row_prices, max(1, capacity // group.size))
        if group.size
        else group
        for group in items
    ]


def concatenated_items(pieces: list[list[KnapsackItems]]) -> list[KnapsackItems]:
    """Return the items of consecutive slices of resources as those of all."""
    items = []
    for same in zip(*pieces, strict=True):
        width = same[0].workloads.shape[1]
        starts = np.cumsum([0, *(len(piece.workloads) * width for piece in same)])[:-1]
        items.append(
            KnapsackItems(
                same[0].size,
                np.concatenate([piece.workloads for piece in same]),
                np.concatenate([piece.values for piece in same]),
                np.concatenate(
                    [piece.at + start for piece, start in zip(same, starts, strict=True)]
                ),
                np.concatenate([piece.linking for piece in same]),
                np.concatenate([piece.coefficients for piece in same]),
            )
        )
    return items


def _most_profitable_of_size(
    group: KnapsackItems, prices: Floats, row_prices: Floats, keep: int
) -> KnapsackItems:
    if group.workloads.shape[1] <= keep:
        return group
    profits = group.profits(prices, row_prices)
    picked = np.argpartition(-profits, keep - 1, axis=1)[:, :keep]
    picked.sort(axis=1)
    workloads = np.take_along_axis(group.workloads, picked, axis=1)
    values = np.take_along_axis(group.values, picked, axis=1)
    flat = (picked + np.arange(len(picked))[:, None] * group.workloads.shape[1]).ravel()
    position = np.searchsorted(flat, group.at)
    inside = (position < len(flat)) & (flat[np.minimum(position, len(flat) - 1)] == group.at)
    return KnapsackItems(
        group.size,
        workloads,
        values,
        position[inside],
        group.linking[inside],
        group.coefficients[inside],
    )


def _with_linking_entries(
    size: int, workloads: Ints, values: Floats, rows: LinkingRows, first_resource: int
) -> KnapsackItems:
    """Return items with their entries in the linking rows."""
    if not len(rows.assignment_rows):
        none = np.zeros(0, np.int64)
        return KnapsackItems(size, workloads, values, none, none, np.zeros(0))
    width = workloads.shape[1]
    order = np.argsort(workloads[0], kind="stable")
    inside = (rows.assignment_resources >= first_resource) & (
        rows.assignment_resources < first_resource + len(workloads)
    )
    entries = np.flatnonzero(inside)
    hit, items = matches(workloads[0][order], rows.assignment_workloads[entries])
    entries = entries[hit]
    at = (rows.assignment_resources[entries] - first_resource) * width + order[items]
    return KnapsackItems(
        size,
        workloads,
        values,
        at,
        rows.assignment_rows[entries],
        rows.assignment_coefficients[entries],
    )
