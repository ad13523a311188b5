"""Every column that a better decision could use.

With a bound U at some prices and a decision worth V, a column of a decision worth more than V loses
at most U - V against its site's best answer. Where such columns are few, the master over all of
them is exact: R. Baldacci, N. Christofides, A. Mingozzi, "An exact algorithm for the vehicle
routing problem based on the set partitioning formulation", Mathematical Programming 115 (2008).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimizer.engine.blocks import Blocks, Floats, Ints
from optimizer.engine.candidates import Candidates
from optimizer.engine.columns import Columns, joined_columns
from optimizer.engine.prices import Answers, Prices

_TOLERANCE = 1e-6
_HALVINGS = 8


@dataclass(frozen=True, slots=True)
class _Step:
    """How states came about: the state before, and the place added, -1 for none."""

    parents: Ints
    task: int
    slot: int
    added: Ints


def near_best(
    blocks: Blocks,
    groups: list[Candidates],
    prices: Prices,
    answers: Answers,
    *,
    slack: float,
    limit: int,
    stop: Callable[[], bool],
) -> Columns | None:
    """Return every column that loses at most `slack`; None where they are more than `limit`.

    None too where `stop` says so.
    """
    profits = [group.profits(prices.tasks, prices.rows) for group in groups]
    starts = np.searchsorted(blocks.part_modes, np.arange(len(blocks.mode_sites) + 1))
    lost = answers.worth[blocks.mode_sites] - answers.mode_worth
    pieces: list[Columns] = []
    for mode in np.flatnonzero(lost <= slack + _TOLERANCE).tolist():
        parts = np.arange(starts[mode], starts[mode + 1])
        need = float(answers.worth[blocks.mode_sites[mode]]) - slack - _TOLERANCE
        found = _mode(blocks, groups, profits, answers, mode, parts, need, limit)
        limit -= 0 if found is None else len(found)
        if found is None or limit < 0 or stop():
            return None
        pieces.append(found)
    return joined_columns(pieces)


def nearest(
    blocks: Blocks,
    groups: list[Candidates],
    prices: Prices,
    answers: Answers,
    *,
    slack: float,
    limit: int,
    stop: Callable[[], bool],
    halvings: int = _HALVINGS,
) -> tuple[Columns, bool]:
    """Return `limit` columns at most that lose little; tell whether all that lose `slack`."""
    found = near_best(blocks, groups, prices, answers, slack=slack, limit=limit, stop=stop)
    if found is not None:
        return found, True
    for _ in range(halvings):
        slack /= 2
        found = near_best(blocks, groups, prices, answers, slack=slack, limit=limit, stop=stop)
        if found is not None:
            return found, False
    return joined_columns([]), False


def _mode(
    blocks: Blocks,
    groups: list[Candidates],
    profits: list[Floats],
    answers: Answers,
    mode: int,
    parts: Ints,
    need: float,
    limit: int,
) -> Columns | None:
    slots, supplies = blocks.part_slots[parts], blocks.part_supplies[parts]
    best = answers.filling.best[slots, supplies]
    reached = np.array([answers.mode_worth[mode] - best.sum()])
    rest = float(best.sum())
    steps: list[_Step] = []
    for slot, supply, own in zip(slots.tolist(), supplies.tolist(), best.tolist(), strict=True):
        rest -= own
        items = _items(groups, profits, slot, supply)
        left = np.full(len(reached), supply)
        after = _suffixes(items, supply)
        for index, (task, size, profit) in enumerate(items):
            ahead = after[index + 1] + rest
            skip = np.flatnonzero(reached + ahead[left] >= need)
            fits = np.flatnonzero(left >= size)
            take = fits[reached[fits] + profit + ahead[left[fits] - size] >= need]
            parents = np.concatenate([skip, take])
            if len(parents) > limit:
                return None
            added = np.concatenate([np.zeros(len(skip), np.int64), np.ones(len(take), np.int64)])
            steps.append(_Step(parents, task, slot, added))
            reached = np.concatenate([reached[skip], reached[take] + profit])
            left = np.concatenate([left[skip], left[take] - size])
    return _traced(blocks, mode, steps, len(reached))


def _items(
    groups: list[Candidates],
    profits: list[Floats],
    slot: int,
    supply: int,
) -> list[tuple[int, int, float]]:
    """Return the tasks that a column of a slot may hold: task, size, profit; best first."""
    found = [
        (task, group.size, profit)
        for group, all_profits in zip(groups, profits, strict=True)
        if group.size <= supply
        for task, profit in zip(group.tasks[slot].tolist(), all_profits[slot].tolist(), strict=True)
        if profit > -np.inf
    ]
    return sorted(found, key=lambda item: (-item[2] / max(item[1], 1), item[0]))


def _suffixes(items: list[tuple[int, int, float]], supply: int) -> list[Floats]:
    """Return, for every position, what the items from there on add at most, by capacity."""
    best = np.zeros(supply + 1)
    found = [best]
    for _, size, profit in reversed(items):
        best = best.copy()
        best[size:] = np.maximum(best[size:], found[-1][: supply + 1 - size] + profit)
        found.append(best)
    return found[::-1]


def _traced(blocks: Blocks, mode: int, steps: list[_Step], count: int) -> Columns:
    """Follow every last state back to what it holds."""
    state = np.arange(count)
    owners, tasks, slots = [], [], []
    for step in reversed(steps):
        hit = np.flatnonzero(step.added[state])
        owners.append(hit)
        tasks.append(np.full(len(hit), step.task))
        slots.append(np.full(len(hit), step.slot))
        state = step.parents[state]
    none = np.zeros(0, np.int64)
    owner = np.concatenate([none, *owners])
    task, slot = np.concatenate([none, *tasks]), np.concatenate([none, *slots])
    order = np.lexsort((slot, task, owner))
    owner, task, slot = owner[order], task[order], slot[order]
    starts = np.searchsorted(owner, np.arange(count + 1))
    found = Columns(np.full(count, mode), starts, task, slot)
    return _distinct(blocks, found)


def _distinct(blocks: Blocks, columns: Columns) -> Columns:
    """Drop the columns that hold a task too often, and what equal tasks repeat."""
    kept, seen = [], set()
    starts = columns.starts.tolist()
    for index in range(len(columns)):
        tasks = columns.tasks[starts[index] : starts[index + 1]]
        slots = columns.slots[starts[index] : starts[index + 1]]
        key = tasks.tobytes(), slots.tobytes()
        if key in seen or (
            len(tasks) and (np.bincount(tasks) > blocks.most[: tasks.max() + 1]).any()
        ):
            continue
        seen.add(key)
        kept.append(index)
    return columns.pick(np.array(kept, np.int64))
