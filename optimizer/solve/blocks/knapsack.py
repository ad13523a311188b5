"""Bounded knapsacks of many resources at once, by dynamic programming over capacity units.

The items are all workloads, or in a large problem the most profitable ones. Items of one size
differ in profit alone, so a resource takes the best of each size. With g_s(n) the profit of the n
best items of size s, sizes are added one by one:

    best_s(c) = max over n of best_{s-1}(c - n s) + g_s(n)

A band of resources with similar supplies is filled at once, because the work grows with the largest
of them. Its tables have the resources last: numpy adds long rows several times as fast as short
ones.

H. Kellerer, U. Pferschy, D. Pisinger, "Knapsack Problems", Springer (2004), section 7.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.block_problem import BlockProblem, LinkingRows, Prices, matches
from optimizer.solve.tuning import BAND_SUPPLY_SHARE, LEAST_BAND_RESOURCES, PARTITION_WIDTH

_PRICED_CELLS = 4_000_000
"""Cells (workload, resource) of the resources whose items are all in memory at once, 32 MB."""


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


def sifted_items(blocks: BlockProblem, prices: Prices, margin: int = 1) -> list[KnapsackBand]:
    """Return, of each resource and size, `margin` times as many of the best items as fit.

    A bound that is priced with them holds at these prices alone; elsewhere it is a guess.
    """
    most = max(1, _PRICED_CELLS // max(1, len(blocks.sizes)))
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


@dataclass(frozen=True, slots=True)
class _SizeStage:
    """Items of one size, and the table before them.

    `workloads` [resources, items], most profitable first; `gains` [n, resources]: the profit of the
    n best; `best` [capacities, resources]: the table without them.
    """

    size: int
    workloads: Ints
    gains: Floats
    best: Floats


@dataclass(frozen=True, slots=True)
class KnapsackTable:
    """`best` [resources, capacities]: the largest profit; `bands`: to trace its items.

    A row of `best` has no meaning beyond the largest supply of its band. `bands`: the resources of
    a band, and its stages.
    """

    best: Floats
    bands: tuple[tuple[Ints, tuple[_SizeStage, ...]], ...]


def solve_knapsacks(
    bands: list[KnapsackBand], prices: Floats, row_prices: Floats, *, resources: int, capacity: int
) -> KnapsackTable:
    """Return the largest profit of every resource at every capacity up to its largest supply.

    Only items of positive profit, after their prices, are taken. `resources`: how many there are.
    `capacity`: the largest supply of all.
    """
    table = np.zeros((resources, capacity + 1))
    traces = []
    for band in bands:
        best, stages = _solve_band(band, prices, row_prices)
        table[band.resources, : band.capacity + 1] = best.T
        traces.append((band.resources, stages))
    return KnapsackTable(table, tuple(traces))


def knapsack_contents(
    filling: KnapsackTable, resources: Ints, capacities: Ints
) -> tuple[Ints, Ints]:
    """Return the items of optimal knapsacks: positions in `resources`, and workloads."""
    positions: list[Ints] = [np.zeros(0, np.int64)]
    found: list[Ints] = [np.zeros(0, np.int64)]
    for members, stages in filling.bands:
        row_of = np.full(len(filling.best), -1, np.int64)
        row_of[members] = np.arange(len(members))
        inside = np.flatnonzero(row_of[resources] >= 0)
        rows, left = row_of[resources[inside]], capacities[inside]
        for stage in reversed(stages):
            taken = _taken(stage, rows, left)
            left = left - stage.size * taken
            position, rank = (np.arange(taken.max(initial=0)) < taken[:, None]).nonzero()
            positions.append(inside[position])
            found.append(stage.workloads[rows[position], rank])
    return np.concatenate(positions), np.concatenate(found)


def _solve_band(
    band: KnapsackBand, prices: Floats, row_prices: Floats
) -> tuple[Floats, tuple[_SizeStage, ...]]:
    """Return the largest profits, [capacities, resources of the band], and the stages to them."""
    best = np.zeros((band.capacity + 1, len(band.resources)))
    stages: list[_SizeStage] = []
    for group in band.items:
        profits = group.profits(prices, row_prices)
        room = band.capacity // group.size if group.size else profits.shape[1]
        workloads, profits = _most_profitable_first(group.workloads, profits, room)
        most = int(np.count_nonzero(profits.max(axis=0, initial=0.0) > 0))
        if not most:
            continue
        gains = np.zeros((most + 1, len(profits)))
        np.maximum(profits.T[:most], 0.0).cumsum(axis=0, out=gains[1:])
        stages.append(_SizeStage(group.size, workloads, gains, best))
        best = (
            _next_stage(best, gains, group.size)
            if len(stages) > 1
            else _first_stage(gains, group.size, len(best))
        )
    return best, tuple(stages)


def _taken(stage: _SizeStage, rows: Ints, left: Ints) -> Ints:
    """Return how many items of a stage fill each row best with the capacity that is left."""
    rest = left - stage.size * np.arange(len(stage.gains))[:, None]
    worth = stage.best[np.maximum(rest, 0), rows] + stage.gains[:, rows]
    worth[rest < 0] = -np.inf
    taken: Ints = worth.argmax(axis=0)
    return taken


def _first_stage(gains: Floats, size: int, width: int) -> Floats:
    """Return the largest profit of items of one size alone."""
    most = len(gains) - 1
    counts = np.minimum(np.arange(width) // size, most) if size else np.full(width, most)
    reached: Floats = gains[counts]
    return reached


def _next_stage(best: Floats, gains: Floats, size: int) -> Floats:
    """Return the largest profit once items of one more size may be taken."""
    width = len(best)
    if not size:
        with_all: Floats = best + gains[-1]
        return with_all
    more, sums = best.copy(), np.empty_like(best)
    for count in range(1, min(len(gains), (width - 1) // size + 1)):
        rest = width - count * size
        np.add(best[:rest], gains[count], out=sums[:rest])
        np.maximum(more[count * size :], sums[:rest], out=more[count * size :])
    return more


def _most_profitable_first(workloads: Ints, profits: Floats, room: int) -> tuple[Ints, Floats]:
    """Return the `room` most profitable items of each resource, most profitable first."""
    count, width = profits.shape
    if width > max(room, PARTITION_WIDTH):
        picked = np.argpartition(-profits, max(room - 1, 0), axis=1)[:, :room]
        profits = np.take_along_axis(profits, picked, axis=1)
        workloads = np.take_along_axis(workloads, picked, axis=1)
        width = room
    order = np.argsort(-profits, axis=1, kind="stable")[:, :room]
    order += np.arange(count)[:, None] * width
    return workloads.ravel()[order], profits.ravel()[order]
