"""Prices of the tasks and of further rows, and the bound that follows (Lagrangian relaxation).

The rows that hold the sites together are relaxed: breaking one costs its price. What remains falls
apart by site. Whatever the prices, as long as none is negative, no decision is worth more than the
bound: M. L. Fisher, "The Lagrangian relaxation method for solving integer programming problems",
Management Science 27 (1981).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Floats, Ints, Prices
from optimizer.solve.blocks.knapsack import KnapsackTable, knapsack_contents, solve_knapsacks
from optimizer.solve.blocks.knapsack_items import (
    KnapsackItems,
    all_items,
    concatenated_items,
    most_profitable,
)

_MOMENTUM = 0.7
_PATIENCE = 8
_SHRINK = 0.7
_REACH = 0.01  # the first steps aim at a bound this much lower
_LEAST_STEP = 5e-3
_PROGRESS = 1e-5
_NOTHING = 0.01  # of the best place: a bound below is lowered in whole steps, not in shares of it
_GRID = 9
_CHUNK = 4_000_000
_DENSE = 600_000  # places; beyond, slots consider the most promising ones only


@dataclass(frozen=True, slots=True)
class PricingResult:
    """What every site does at given prices, and the bound that follows.

    `worth`: the profit of one copy of each site. `modes`: the mode it takes. `places_sites`,
    `tasks`, `slots`: the places taken on one copy. `mode_worth`, `filling`: to look further.
    """

    bound: float
    worth: Floats
    modes: Ints
    tasks: Ints
    slots: Ints
    mode_profits: Floats
    knapsacks: KnapsackTable


def price_blocks(
    blocks: BlockProblem, groups: list[KnapsackItems] | None, prices: Prices
) -> PricingResult:
    """Return the best answer of every site; `groups`: all candidates, where they are at hand."""
    if groups is None:
        groups = _profitable_items(blocks, prices)
    filling = solve_knapsacks(
        groups, prices.tasks, prices.rows, slots=len(blocks.slot_sites), capacity=blocks.largest
    )
    mode_worth = _mode_profits(blocks, filling.best, prices)
    worth, modes = _best_modes(blocks, mode_worth)
    tasks, slots = places_of_modes(blocks, filling, modes)
    return PricingResult(
        _bound(blocks, prices, worth), worth, modes, tasks, slots, mode_worth, filling
    )


def places_of_modes(blocks: BlockProblem, filling: KnapsackTable, modes: Ints) -> tuple[Ints, Ints]:
    """Return tasks and slots of the places that fill the given modes, one of a site at most."""
    chosen = np.zeros(len(blocks.mode_sites), np.bool_)
    chosen[modes] = True
    parts = np.flatnonzero(chosen[blocks.supply_modes])
    slots = blocks.supply_slots[parts]
    positions, tasks = knapsack_contents(filling, slots, blocks.supply_amounts[parts])
    return tasks, slots[positions]


def items_if_few(blocks: BlockProblem) -> list[KnapsackItems] | None:
    """Return all candidates; None where they are too many to be held in this form."""
    return all_items(blocks) if blocks.values.size <= _DENSE else None


def _profitable_items(blocks: BlockProblem, prices: Prices) -> list[KnapsackItems]:
    """Return the candidates that matter at these prices, looking at some slots at a time."""
    count = len(blocks.slot_sites)
    width = max(1, _CHUNK // max(1, len(blocks.sizes)))
    pieces = []
    for first in range(0, count, width):
        groups = all_items(blocks, slice(first, min(first + width, count)))
        pieces.append(most_profitable(groups, prices.tasks, prices.rows, blocks.largest))
    return concatenated_items(pieces)


def initial_prices(
    blocks: BlockProblem, bound: Callable[[Prices], float], stop: Callable[[], bool]
) -> tuple[float, Prices]:
    """Return prices to start from: the best of those that one price of a site's supply implies.

    If a device of a slot costs so much, a task is worth what its best slot leaves of its value.
    """
    supply = np.zeros(len(blocks.slot_sites))
    np.maximum.at(supply, blocks.supply_slots, blocks.supply_amounts)
    top = np.zeros(len(blocks.copies))
    np.maximum.at(top, blocks.slot_sites, supply)
    share = top[blocks.slot_sites] / np.maximum(supply, 1)
    none = np.zeros(len(blocks.rows.limits))

    def prices(level: float) -> Prices:
        left = np.zeros(len(blocks.sizes))
        for slot in range(len(share)):
            np.maximum(
                left, blocks.values[:, slot] - blocks.sizes * (level * share[slot]), out=left
            )
        return Prices(left, none)

    low, high = 0.0, float(blocks.values.max(initial=0.0))
    bounds: dict[float, float] = {}
    for _ in range(2):
        levels = np.linspace(low, high, _GRID).tolist()
        for level in levels:
            if level not in bounds and not (bounds and stop()):
                bounds[level] = bound(prices(level))
        at = int(np.argmin([bounds.get(level, np.inf) for level in levels]))
        low, high = levels[max(0, at - 1)], levels[min(_GRID - 1, at + 1)]
    best = min(bounds, key=lambda level: (bounds[level], level))
    return bounds[best], prices(best)


def lower_bound_by_subgradients(
    blocks: BlockProblem,
    groups: list[KnapsackItems] | None,
    start: Prices,
    *,
    reach: float = _REACH,
    patience: int = _PATIENCE,
    seen: Callable[[PricingResult, Prices], None],
    stop: Callable[[], bool],
) -> tuple[float, Prices]:
    """Lower the bound by subgradient steps; return the lowest with its prices.

    Ends where steps become small, or `stop` says so; `seen` is told the answers of the sites at
    each step, and the prices.
    """
    now = np.concatenate([start.tasks, start.rows])
    supply = np.concatenate([blocks.counts, blocks.rows.limits])
    count = len(start.tasks)
    lowest, kept, size, waited = np.inf, now, 1.0, 0
    direction = np.zeros(len(now))
    least = _NOTHING * float(blocks.values.max(initial=0.0))
    while True:
        prices = Prices(now[:count], now[count:])
        answers = price_blocks(blocks, groups, prices)
        waited = 0 if answers.bound < lowest - _PROGRESS * max(abs(lowest), least) else waited + 1
        if answers.bound < lowest:
            lowest, kept = answers.bound, now
        seen(answers, prices)
        if waited >= patience:
            size, waited = size * _SHRINK, 0
        slack = supply - _usage(blocks, answers)
        slack[(now <= 0) & (slack > 0)] = 0
        direction = slack + _MOMENTUM * direction
        length = float(direction @ direction)
        if length == 0 or size < _LEAST_STEP or stop():
            return lowest, Prices(kept[:count], kept[count:])
        distance = answers.bound - lowest + reach * size * max(abs(lowest), least)
        now = np.maximum(0.0, now - distance / length * direction)


def _usage(blocks: BlockProblem, answers: PricingResult) -> Floats:
    """Return how much of every task's places and of every further row the sites use."""
    times = blocks.copies[blocks.slot_sites[answers.slots]]
    used: Floats = np.bincount(answers.tasks, times, len(blocks.sizes)).astype(np.float64)
    rows = blocks.rows
    if not len(rows.limits):
        return used
    taken = np.zeros(blocks.values.shape)
    np.add.at(taken, (answers.tasks, answers.slots), times)
    chosen = np.zeros(len(blocks.mode_sites))
    chosen[answers.modes] = blocks.copies[blocks.mode_sites[answers.modes]]
    by_place = rows.place_coefficients * taken[rows.place_tasks, rows.place_slots]
    by_mode = rows.mode_coefficients * chosen[rows.mode_modes]
    size = len(rows.limits)
    further = np.bincount(rows.place_rows, by_place, size) + np.bincount(
        rows.mode_rows, by_mode, size
    )
    return np.concatenate([used, further])


def _bound(blocks: BlockProblem, prices: Prices, worth: Floats) -> float:
    rows = blocks.rows.limits
    return float(prices.tasks @ blocks.counts + prices.rows @ rows + worth @ blocks.copies)


def _mode_profits(blocks: BlockProblem, best: Floats, prices: Prices) -> Floats:
    parts = best[blocks.supply_slots, blocks.supply_amounts]
    worth: Floats = blocks.mode_values + np.bincount(
        blocks.supply_modes, parts, len(blocks.mode_sites)
    )
    rows = blocks.rows
    if len(rows.mode_rows):
        charged = rows.mode_coefficients * prices.rows[rows.mode_rows]
        worth -= np.bincount(rows.mode_modes, charged, len(worth))
    return worth


def _best_modes(blocks: BlockProblem, mode_worth: Floats) -> tuple[Floats, Ints]:
    """Return the profit of every site and its first best mode."""
    starts = np.searchsorted(blocks.mode_sites, np.arange(len(blocks.copies)))
    worth = np.maximum.reduceat(mode_worth, starts)
    hits = np.flatnonzero(mode_worth == worth[blocks.mode_sites])
    _, first = np.unique(blocks.mode_sites[hits], return_index=True)
    return worth, hits[first]
