"""Knapsacks of many slots at once: dynamic programming over small whole capacities.

Tasks of one size differ in profit alone, so a slot holds the best few of each size, and what it
gains by them is known before it is said how many: one step for each size.
"""

from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.block_problem import Floats, Ints
from optimizer.solve.blocks.knapsack_items import KnapsackItems

_CHUNK = 200_000  # sums that are compared at once
_WIDE = 64  # tasks of a size from which on the best are picked before they are sorted


@dataclass(frozen=True, slots=True)
class _SizeStage:
    """Tasks of one size: `gains[slot, n]` by the first n of `tasks[slot]`; `best` without them."""

    size: int
    tasks: Ints
    gains: Floats
    best: Floats


@dataclass(frozen=True, slots=True)
class KnapsackTable:
    """`best[slot, capacity]`: the largest profit. The steps tell what makes it."""

    best: Floats
    steps: tuple[_SizeStage, ...]


def solve_knapsacks(
    groups: list[KnapsackItems], prices: Floats, row_prices: Floats, *, slots: int, capacity: int
) -> KnapsackTable:
    """Return the best filling of every slot at every capacity up to `capacity`.

    A task is taken only where it is worth more than its prices.
    """
    best = np.zeros((slots, capacity + 1))
    steps: list[_SizeStage] = []
    for group in groups:
        if group.size > capacity:
            continue
        profits = group.profits(prices, row_prices)
        room = capacity // group.size if group.size else profits.shape[1]
        tasks, profits = _most_profitable(group.tasks, profits, room)
        most = int(np.count_nonzero(profits.max(axis=0, initial=0.0) > 0))
        if not most:
            continue
        gains = np.zeros((slots, most + 1))
        np.maximum(profits[:, :most], 0.0).cumsum(axis=1, out=gains[:, 1:])
        steps.append(_SizeStage(group.size, tasks, gains, best))
        best = (
            _next_stage(best, gains, group.size)
            if len(steps) > 1
            else _first_stage(gains, group.size, best)
        )
    return KnapsackTable(best, tuple(steps))


def knapsack_contents(filling: KnapsackTable, slots: Ints, capacities: Ints) -> tuple[Ints, Ints]:
    """Return which tasks fill the given slots best: positions in `slots`, and tasks."""
    left = capacities.copy()
    positions: list[Ints] = [np.zeros(0, np.int64)]
    found: list[Ints] = [np.zeros(0, np.int64)]
    for step in reversed(filling.steps):
        counts = np.arange(step.gains.shape[1])
        rest = left[:, None] - step.size * counts
        worth = step.best[slots[:, None], np.maximum(rest, 0)] + step.gains[slots]
        worth[rest < 0] = -np.inf
        taken = worth.argmax(axis=1)
        left -= step.size * taken
        position, rank = (counts[None, :-1] < taken[:, None]).nonzero()
        positions.append(position)
        found.append(step.tasks[slots[position], rank])
    return np.concatenate(positions), np.concatenate(found)


def _first_stage(gains: Floats, size: int, best: Floats) -> Floats:
    """Return what slots are worth at most with tasks of a size alone."""
    most, width = gains.shape[1] - 1, best.shape[1]
    counts = np.minimum(np.arange(width) // size, most) if size else np.full(width, most)
    return gains[:, counts]


def _next_stage(best: Floats, gains: Floats, size: int) -> Floats:
    """Return what slots are worth at most with tasks of a size, whatever their number."""
    slots, width = best.shape
    most = gains.shape[1] - 1
    if not size:
        return best + gains[:, -1:]
    more = np.empty_like(best)
    rows = max(1, _CHUNK // ((most + 1) * width))
    for first in range(0, slots, rows):
        part = slice(first, first + rows)
        padded = np.full((len(best[part]), most * size + width), -np.inf)
        padded[:, most * size :] = best[part]
        across, along = padded.strides
        # shifted[n, slot, capacity] is what is left beside n tasks
        shifted: Floats = np.ndarray(
            (most + 1, len(padded), width),
            buffer=padded,
            offset=most * size * along,
            strides=(-size * along, across, along),
        )
        (shifted + gains[part].T[:, :, None]).max(axis=0, out=more[part])
    return more


def _most_profitable(tasks: Ints, profits: Floats, room: int) -> tuple[Ints, Floats]:
    """Return the `room` most profitable candidates of each slot, most profitable first."""
    count, width = profits.shape
    if width > max(room, _WIDE):
        picked = np.argpartition(-profits, max(room - 1, 0), axis=1)[:, :room]
        profits = np.take_along_axis(profits, picked, axis=1)
        tasks = np.take_along_axis(tasks, picked, axis=1)
        width = room
    order = np.argsort(-profits, axis=1, kind="stable")[:, :room]
    order += np.arange(count)[:, None] * width
    return tasks.ravel()[order], profits.ravel()[order]
