"""Knapsacks of many slots at once: dynamic programming over small whole capacities.

Tasks of one size differ in profit alone, so a slot needs only the best few of each size.
"""

from dataclasses import dataclass

import numpy as np

from optimizer.engine.blocks import Flags, Floats, Ints
from optimizer.engine.candidates import Candidates


@dataclass(frozen=True, slots=True)
class Filling:
    """`best[slot, capacity]`: the largest profit. The rest tells, step by step, what makes it."""

    best: Floats
    sizes: tuple[int, ...]
    tasks: tuple[Ints, ...]
    taken: tuple[Flags, ...]


def fill(
    groups: list[Candidates], prices: Floats, row_prices: Floats, *, slots: int, capacity: int
) -> Filling:
    """Return the best filling of every slot at every capacity up to `capacity`.

    A task is taken only where it is worth more than its prices.
    """
    best = np.zeros((slots, capacity + 1))
    sizes: list[int] = []
    tasks: list[Ints] = []
    taken: list[Flags] = []
    for group in (item for item in groups if item.size <= capacity):
        profits = group.profits(prices, row_prices)
        room = capacity // group.size if group.size else profits.shape[1]
        found, profits = _largest(group.tasks, profits, room)
        for index in range(profits.shape[1]):
            profit = profits[:, index : index + 1]
            if not (profit > 0).any():
                break
            with_it = best[:, : capacity + 1 - group.size] + profit
            taken.append(with_it > best[:, group.size :])
            np.maximum(best[:, group.size :], with_it, out=best[:, group.size :])
            sizes.append(group.size)
            tasks.append(found[:, index])
    return Filling(best, tuple(sizes), tuple(tasks), tuple(taken))


def contents(filling: Filling, slots: Ints, capacities: Ints) -> tuple[Ints, Ints]:
    """Return which tasks fill the given slots best: positions in `slots`, and tasks."""
    left = capacities.copy()
    positions: list[Ints] = [np.zeros(0, np.int64)]
    found: list[Ints] = [np.zeros(0, np.int64)]
    steps = list(zip(filling.sizes, filling.tasks, filling.taken, strict=True))
    for size, tasks, taken in reversed(steps):
        rest = left - size
        hit = np.flatnonzero((rest >= 0) & taken[slots, np.maximum(rest, 0)])
        positions.append(hit)
        found.append(tasks[slots[hit]])
        left[hit] = rest[hit]
    return np.concatenate(positions), np.concatenate(found)


def _largest(tasks: Ints, profits: Floats, room: int) -> tuple[Ints, Floats]:
    """Return the `room` most profitable candidates of each slot, most profitable first."""
    if profits.shape[1] > room:
        picked = np.argpartition(-profits, max(room - 1, 0), axis=1)[:, :room]
        profits = np.take_along_axis(profits, picked, axis=1)
        tasks = np.take_along_axis(tasks, picked, axis=1)
    order = np.argsort(-profits, axis=1, kind="stable")
    return np.take_along_axis(tasks, order, axis=1), np.take_along_axis(profits, order, axis=1)
