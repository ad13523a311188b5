"""Every column that a better decision could use.

With a bound U at some prices and a decision worth V, a column of a decision worth more than V loses
at most U - V against its site's best answer. Where such columns are few, the master over all of
them is exact: R. Baldacci, N. Christofides, A. Mingozzi, "An exact algorithm for the vehicle
routing problem based on the set partitioning formulation", Mathematical Programming 115 (2008).

Columns grow task by task, those of all modes at once. What the tasks to come add to a slot is known
from dynamic programming, so a state is kept only where it ends in a column that is wanted.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem, Floats, Ints, Prices
from optimizer.solve.blocks.columns import Columns, concatenated_columns
from optimizer.solve.pricing.lagrangian_relaxation import PricingResult

_TOLERANCE = 1e-6
_CHUNK = 1_500_000  # entries of the tables of one round


class EnumeratedColumns(NamedTuple):
    """Columns that lose little: with all that lose `reach`, which may be negative."""

    columns: Columns
    complete_loss: float


class _Labels(NamedTuple):
    """Unfinished columns: their modes, and what they lose at least."""

    modes: Ints
    lost: Floats


class _Extension(NamedTuple):
    """How states came about: the one before, and how often its slot got a task."""

    parents: Ints
    amounts: Ints
    task: int
    slot_of_modes: Ints


class _CompletionBounds(NamedTuple):
    """Tasks in turn, what slots gain by each, and what they gain by those from each on.

    `profits[turn][slot]`, `ahead[turn][slot, capacity]`.
    """

    tasks: list[int]
    profits: list[Floats]
    ahead: list[Floats]


def all_columns_within(
    blocks: BlockProblem,
    prices: Prices,
    answers: PricingResult,
    *,
    slack: float,
    limit: int,
    stop: Callable[[], bool],
) -> Columns | None:
    """Return every column that loses at most `slack`; None where they are more than `limit`.

    None too where `stop` says so.
    """
    near = best_columns_within(blocks, prices, answers, slack=slack, limit=limit, stop=stop)
    return near.columns if near.complete_loss >= slack else None


def best_columns_within(
    blocks: BlockProblem,
    prices: Prices,
    answers: PricingResult,
    *,
    slack: float,
    limit: int,
    stop: Callable[[], bool],
) -> EnumeratedColumns:
    """Return the columns that lose at most `slack`, the best `limit` where they are more.

    None where `stop` says so.
    """
    lost = answers.worth[blocks.mode_sites] - answers.mode_profits
    wanted = np.flatnonzero(lost <= slack + _TOLERANCE)
    profits = place_profits(blocks, prices)
    width = max(1, _CHUNK // max(1, len(profits) * (blocks.largest + 1)))
    reach, pieces, losses = slack, list[Columns](), list[Floats]()
    for first in range(0, len(wanted), width):
        modes = wanted[first : first + width]
        growth = _Labelling(blocks, profits, limit, reach, stop)
        states = growth.ended(_Labels(modes, lost[modes]))
        if stop():
            return EnumeratedColumns(concatenated_columns([]), -1.0)
        reach = growth.complete_loss
        pieces.append(growth.traced(states.modes))
        losses.append(states.lost)
    columns = concatenated_columns(pieces)
    kept, reach = _least_losses(np.concatenate([np.zeros(0), *losses]), reach, limit)
    return EnumeratedColumns(_without_repeats(blocks, columns.pick(kept)), reach)


def place_profits(blocks: BlockProblem, prices: Prices) -> Floats:
    """Return what every place is worth beyond its prices: [task, slot]."""
    profits: Floats = blocks.values - prices.tasks[:, None]
    rows = blocks.rows
    charged = rows.place_coefficients * prices.rows[rows.place_rows]
    np.subtract.at(profits, (rows.place_tasks, rows.place_slots), charged)
    return profits


class _Labelling:
    """The states of some modes; `reach` falls where states are dropped."""

    def __init__(
        self,
        blocks: BlockProblem,
        profits: Floats,
        limit: int,
        reach: float,
        stop: Callable[[], bool],
    ) -> None:
        self._blocks, self._profits, self._limit, self._stop = blocks, profits, limit, stop
        self._steps: list[_Extension] = []
        self.complete_loss = reach

    def ended(self, states: _Labels) -> _Labels:
        """Let states grow on one slot of each mode after the other."""
        blocks = self._blocks
        starts = np.searchsorted(blocks.supply_modes, np.arange(len(blocks.mode_sites) + 1))
        parts = np.diff(starts)
        for rank in range(int(parts[states.modes].max(initial=0))):
            own = np.unique(states.modes[parts[states.modes] > rank])
            slots = np.full(len(parts), -1, np.int64)
            supplies = np.zeros(len(parts), np.int64)
            slots[own] = blocks.supply_slots[starts[own] + rank]
            supplies[own] = blocks.supply_amounts[starts[own] + rank]
            states = self._filled(states, slots, supplies)
        return states

    def _filled(self, states: _Labels, slots: Ints, supplies: Ints) -> _Labels:
        """Let states grow on one slot of their mode, -1 for none."""
        modes, lost = states
        used, rows = np.unique(slots[modes], return_inverse=True)
        left = supplies[modes]
        width = int(left.max(initial=0)) + 1
        tables = _completion_bounds(self._blocks, self._profits, used, width, self.complete_loss)
        for turn, task in enumerate(tables.tasks):
            if self._stop():
                break
            size, most = int(self._blocks.sizes[task]), _most(self._blocks, task, width - 1)
            cells = rows * width + left
            rest = tables.ahead[turn + 1].ravel()
            base, profit = lost + tables.ahead[turn].ravel()[cells], tables.profits[turn][rows]
            parents, losses = [np.arange(len(cells))], [base - rest[cells]]
            for amount in range(1, most + 1):
                fits = np.flatnonzero(left >= amount * size)
                parents.append(fits)
                ahead = rest[cells[fits] - amount * size]
                losses.append(base[fits] - amount * profit[fits] - ahead)
            every = np.concatenate(losses)
            kept, self.complete_loss = _least_losses(every, self.complete_loss, self._limit)
            amounts = np.repeat(np.arange(most + 1), [len(some) for some in parents])[kept]
            parent = np.concatenate(parents)[kept]
            modes, rows, lost = modes[parent], rows[parent], every[kept]
            left = left[parent] - amounts * size
            self._steps.append(_Extension(parent, amounts, task, slots))
        return _Labels(modes, lost)

    def traced(self, modes: Ints) -> Columns:
        """Follow every last state back to what it holds."""
        state = np.arange(len(modes))
        none = np.zeros(0, np.int64)
        owners, tasks, slots = [none], [none], [none]
        for step in reversed(self._steps):
            amounts = step.amounts[state]
            hit = np.flatnonzero(amounts)
            owners.append(np.repeat(hit, amounts[hit]))
            tasks.append(np.full(len(owners[-1]), step.task))
            slots.append(step.slot_of_modes[modes[owners[-1]]])
            state = step.parents[state]
        owner, task, slot = np.concatenate(owners), np.concatenate(tasks), np.concatenate(slots)
        order = np.lexsort((slot, task, owner))
        starts = np.searchsorted(owner[order], np.arange(len(modes) + 1))
        return Columns(modes, starts, task[order], slot[order])


def _most(blocks: BlockProblem, task: int, capacity: int) -> int:
    """Return how often a slot may hold a task."""
    size, most = int(blocks.sizes[task]), int(min(blocks.most[task], blocks.counts[task]))
    return min(most, capacity // size) if size else most


def _completion_bounds(
    blocks: BlockProblem, profits: Floats, used: Ints, width: int, reach: float
) -> _CompletionBounds:
    """Say what slots gain; a task that costs more than what may be lost has no turn."""
    own = np.where(used >= 0, profits[:, used], -np.inf)
    tasks = np.flatnonzero((own >= -reach - _TOLERANCE).any(axis=1) & (blocks.sizes < width))
    ahead = [np.zeros((len(used), width))]
    for task in tasks[::-1].tolist():
        best, size = ahead[-1], int(blocks.sizes[task])
        for _ in range(_most(blocks, task, width - 1)):
            more = best.copy()
            np.maximum(
                best[:, size:], best[:, : width - size] + own[task][:, None], out=more[:, size:]
            )
            best = more
        ahead.append(best)
    return _CompletionBounds(tasks.tolist(), list(own[tasks]), ahead[::-1])


def _least_losses(losses: Floats, reach: float, limit: int) -> tuple[Ints, float]:
    """Return which lose at most `reach`, the first `limit` of them, and what all kept lose."""
    kept = np.flatnonzero(losses <= reach + _TOLERANCE)
    if len(kept) <= limit:
        return kept, reach
    order = np.argsort(losses[kept], kind="stable")
    reach = min(reach, float(losses[kept[order[limit]]]) - 2 * _TOLERANCE)
    return np.sort(kept[order[:limit]]), reach


def _without_repeats(blocks: BlockProblem, columns: Columns) -> Columns:
    """Drop the columns that hold a task on several slots together too often."""
    keys, amounts = np.unique(
        columns.owners * len(blocks.sizes) + columns.tasks, return_counts=True
    )
    over = amounts > blocks.most[keys % max(1, len(blocks.sizes))]
    kept = np.ones(len(columns), np.bool_)
    kept[keys[over] // max(1, len(blocks.sizes))] = False
    return columns.pick(np.flatnonzero(kept))
