"""Bounded knapsacks of many resources at once, by dynamic programming over capacity units.

Items of one size differ in profit alone, so a resource takes the best of each size. With g_s(n) the
profit of the n best items of size s, sizes are added one by one:

    best_s(c) = max over n of best_{s-1}(c - n s) + g_s(n)

H. Kellerer, U. Pferschy, D. Pisinger, "Knapsack Problems", Springer (2004), section 7.
"""

from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.knapsack_items import KnapsackItems
from optimizer.solve.tuning import COMPARED_SUMS, PARTITION_WIDTH


@dataclass(frozen=True, slots=True)
class _SizeStage:
    """Items of one size, and the table before them.

    `workloads` [resources, items], most profitable first; `gains` [resources, n]: the profit of the
    n best; `best` [resources, capacities]: the table without them.
    """

    size: int
    workloads: Ints
    gains: Floats
    best: Floats


@dataclass(frozen=True, slots=True)
class KnapsackTable:
    """`best` [resources, capacities]: the largest profit; `steps`: to trace its items."""

    best: Floats
    steps: tuple[_SizeStage, ...]


def solve_knapsacks(
    items: list[KnapsackItems], prices: Floats, row_prices: Floats, *, resources: int, capacity: int
) -> KnapsackTable:
    """Return the largest profit of every resource at every capacity up to `capacity`.

    Only items of positive profit, after their prices, are taken.
    """
    best = np.zeros((resources, capacity + 1))
    steps: list[_SizeStage] = []
    for group in items:
        if group.size > capacity:
            continue
        profits = group.profits(prices, row_prices)
        room = capacity // group.size if group.size else profits.shape[1]
        workloads, profits = _most_profitable(group.workloads, profits, room)
        most = int(np.count_nonzero(profits.max(axis=0, initial=0.0) > 0))
        if not most:
            continue
        gains = np.zeros((resources, most + 1))
        np.maximum(profits[:, :most], 0.0).cumsum(axis=1, out=gains[:, 1:])
        steps.append(_SizeStage(group.size, workloads, gains, best))
        best = (
            _next_stage(best, gains, group.size)
            if len(steps) > 1
            else _first_stage(gains, group.size, best)
        )
    return KnapsackTable(best, tuple(steps))


def knapsack_contents(
    filling: KnapsackTable, resources: Ints, capacities: Ints
) -> tuple[Ints, Ints]:
    """Return the items of optimal knapsacks: positions in `resources`, and workloads."""
    left = capacities.copy()
    positions: list[Ints] = [np.zeros(0, np.int64)]
    found: list[Ints] = [np.zeros(0, np.int64)]
    for step in reversed(filling.steps):
        counts = np.arange(step.gains.shape[1])
        rest = left[:, None] - step.size * counts
        worth = step.best[resources[:, None], np.maximum(rest, 0)] + step.gains[resources]
        worth[rest < 0] = -np.inf
        taken = worth.argmax(axis=1)
        left -= step.size * taken
        position, rank = (counts[None, :-1] < taken[:, None]).nonzero()
        positions.append(position)
        found.append(step.workloads[resources[position], rank])
    return np.concatenate(positions), np.concatenate(found)


def _first_stage(gains: Floats, size: int, best: Floats) -> Floats:
    """Return the largest profit of items of one size alone."""
    most, width = gains.shape[1] - 1, best.shape[1]
    counts = np.minimum(np.arange(width) // size, most) if size else np.full(width, most)
    return gains[:, counts]


def _next_stage(best: Floats, gains: Floats, size: int) -> Floats:
    """Return the largest profit once items of one more size may be taken."""
    resources, width = best.shape
    most = gains.shape[1] - 1
    if not size:
        return best + gains[:, -1:]
    more = np.empty_like(best)
    rows = max(1, COMPARED_SUMS // ((most + 1) * width))
    for first in range(0, resources, rows):
        part = slice(first, first + rows)
        padded = np.full((len(best[part]), most * size + width), -np.inf)
        padded[:, most * size :] = best[part]
        across, along = padded.strides
        # By number of items n, resource and capacity: the table at the capacity that n items leave.
        shifted: Floats = np.ndarray(
            (most + 1, len(padded), width),
            buffer=padded,
            offset=most * size * along,
            strides=(-size * along, across, along),
        )
        (shifted + gains[part].T[:, :, None]).max(axis=0, out=more[part])
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
