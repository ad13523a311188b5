"""The items of the knapsacks: all workloads, or in a large problem the most profitable ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.block_problem import BlockProblem, LinkingRows, Prices, matches
from optimizer.solve.tuning import BAND_SUPPLY_SHARE, LEAST_BAND_RESOURCES


@dataclass(frozen=True, slots=True)
class KnapsackItems:
    """Items of one size: `workloads` and their `values`, both [resources of a band, items].

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


@dataclass(frozen=True, slots=True)
class KnapsackBand:
    """Resources of similar supply, the largest of their supplies, and their items by size."""

    resources: Ints
    capacity: int
    items: list[KnapsackItems]


def all_items(blocks: BlockProblem) -> list[KnapsackBand]:
    """Return all items, band by band."""
    return [_band(blocks, *band) for band in _bands(blocks, len(blocks.resource_sites))]


def most_profitable_items(
    blocks: BlockProblem, prices: Prices, margin: int, most: int
) -> list[KnapsackBand]:
    """Return, of each resource and size, `margin` times as many of the best items as fit.

    `most`: resources whose items are all in memory at a time.
    """
    return [_sifted(_band(blocks, *band), prices, margin) for band in _bands(blocks, most)]


def _bands(blocks: BlockProblem, most: int) -> Iterator[tuple[Ints, int]]:
    """Yield the resources of each band, at most so many, with their largest supply.

    A supply below BAND_SUPPLY_SHARE of the largest ends a band of LEAST_BAND_RESOURCES or more.
    """
    supply = np.zeros(len(blocks.resource_sites), np.int64)
    np.maximum.at(supply, blocks.supply_resources, blocks.supply_amounts)
    order = np.argsort(-supply, kind="stable")
    falling, first = supply[order], 0
    while first < len(order):
        similar = int(np.count_nonzero(falling >= BAND_SUPPLY_SHARE * falling[first]))
        end = min(max(similar, first + LEAST_BAND_RESOURCES), first + most)
        yield np.sort(order[first:end]), int(falling[first])
        first = end


def _band(blocks: BlockProblem, resources: Ints, capacity: int) -> KnapsackBand:
    """Return all items of some resources by size; a class as often as a site may take it."""
    items = []
    for size in np.unique(blocks.sizes[blocks.sizes <= capacity]):
        first, end = np.searchsorted(blocks.sizes, [size, size + 1])
        times = np.minimum(blocks.most_per_site, blocks.counts)[first:end]
        if size:
            times = np.minimum(times, capacity // size)
        workloads = np.repeat(np.arange(first, end), times)
        values = np.ascontiguousarray(blocks.values[first:end].T[resources])
        if len(workloads) != end - first:
            values = values[:, workloads - first]
        shared = np.broadcast_to(workloads, (len(resources), len(workloads)))
        items.append(_with_linking_entries(int(size), shared, values, blocks.linking, resources))
    return KnapsackBand(resources, capacity, items)


def _sifted(band: KnapsackBand, prices: Prices, margin: int) -> KnapsackBand:
    """Return the band with `margin` times as many of the best items of each size as fit."""
    room = margin * band.capacity
    items = [
        _most_profitable_of_size(group, prices, max(1, room // group.size)) if group.size else group
        for group in band.items
    ]
    return KnapsackBand(band.resources, band.capacity, items)


def _most_profitable_of_size(group: KnapsackItems, prices: Prices, keep: int) -> KnapsackItems:
    if group.workloads.shape[1] <= keep:
        return group
    profits = group.profits(prices.workloads, prices.linking)
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
    size: int, workloads: Ints, values: Floats, rows: LinkingRows, resources: Ints
) -> KnapsackItems:
    """Return items with their entries in the linking rows; `resources` ascend."""
    if not len(rows.assignment_rows):
        none = np.zeros(0, np.int64)
        return KnapsackItems(size, workloads, values, none, none, np.zeros(0))
    width = workloads.shape[1]
    order = np.argsort(workloads[0], kind="stable")
    entries = np.flatnonzero(np.isin(rows.assignment_resources, resources))
    hit, items = matches(workloads[0][order], rows.assignment_workloads[entries])
    entries = entries[hit]
    row = np.searchsorted(resources, rows.assignment_resources[entries])
    at = row * width + order[items]
    return KnapsackItems(
        size,
        workloads,
        values,
        at,
        rows.assignment_rows[entries],
        rows.assignment_coefficients[entries],
    )
