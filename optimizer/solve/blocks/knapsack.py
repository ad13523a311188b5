"""Bounded knapsacks of many resources at once, by dynamic programming over capacity units.

Items of one size differ in profit alone, so a resource takes the best of each size. With g_s(n) the
profit of the n best items of size s, sizes are added one by one:

    best_s(c) = max over n of best_{s-1}(c - n s) + g_s(n)

A band of resources with similar supplies is filled at once, because the work grows with the largest
of them. Its tables have the resources last: numpy adds long rows several times as fast as short
ones.

H. Kellerer, U. Pferschy, D. Pisinger, "Knapsack Problems", Springer (2004), section 7.
"""

from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.knapsack_items import KnapsackBand
from optimizer.solve.tuning import PARTITION_WIDTH


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
        workloads, profits = _most_profitable(group.workloads, profits, room)
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


def _most_profitable(workloads: Ints, profits: Floats, room: int) -> tuple[Ints, Floats]:
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
