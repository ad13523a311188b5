"""The search over blocks: prices, a dive for a decision, improvement, proof where it is cheap."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np

from optimizer.engine.blocks import Blocks
from optimizer.engine.candidates import Candidates
from optimizer.engine.columns import Pool, joined_columns
from optimizer.engine.dive import dive
from optimizer.engine.enumeration import nearest
from optimizer.engine.generation import close, generated
from optimizer.engine.master import feasible, master
from optimizer.engine.neighbourhood import Held, improved
from optimizer.engine.prices import (
    Answers,
    Prices,
    considered,
    descend,
    first_prices,
    respond,
)
from optimizer.settings import SolverName

_REACHES = (0.01, 0.003)
_WORTH_IT = 2e-4
_WARM = 30
_WHOLE = 1e-6
_SMALL = 150  # sites and tasks up to which the master of the columns met is solved at once
_CLOSE = 300
_NEAR = 0.001
_HALVINGS = 8
_ALL = 20_000
_NODES = 60
_HASTY = (30, 100)  # steps after which a decision is made meanwhile
_LONG = 200_000  # places, from which on pricing takes so long that this is worth it
_TRIES = 12
_FEW = 1  # tries before the master of close columns, which costs more but rarely fails


@dataclass(frozen=True, slots=True)
class Effort:
    """How to search: `gap` is what is good enough, `left` tells the seconds left.

    `found` is told every decision that is better than those before, with the bound by then.
    `most`: no decision is worth more, as is known from elsewhere.
    """

    solver: SolverName
    gap: float
    seed: int
    left: Callable[[], float]
    found: Callable[[Held, float], None] = lambda _held, _bound: None
    most: float = np.inf


@dataclass(frozen=True, slots=True)
class Priced:
    """The lowest bound with its prices, a first decision, and the columns met on the way."""

    bound: float
    prices: Prices
    groups: list[Candidates] | None
    first: Held
    pool: Pool


@dataclass(frozen=True, slots=True)
class Found:
    """The best decision, and the lowest bound."""

    held: Held
    bound: float
    priced: Priced


def search(blocks: Blocks, effort: Effort, start: Held | None = None) -> Found:
    """Return a decision for blocks that is good enough, or the best that time allows.

    `start`: a decision that is improved on, where it keeps every row.
    """
    whole = blocks.whole
    priced = searched_prices(blocks, effort, start)
    bound = min(_rounded(priced.bound, whole), effort.most)

    def enough(value: float) -> bool:
        return bound - value <= max(effort.gap * abs(value), _WHOLE)

    held = priced.first
    if enough(held.value(blocks)) or effort.left() <= 0:
        return Found(held, max(bound, held.value(blocks)), priced)
    answers = respond(blocks, priced.groups, priced.prices)
    found = Held(*dive(blocks, priced.prices, stop=lambda: effort.left() <= 0))
    if found.value(blocks) > held.value(blocks):
        held = found
        effort.found(held, bound)
    if enough(held.value(blocks)) or effort.left() <= 0:
        return Found(held, max(bound, held.value(blocks)), priced)
    random = np.random.default_rng(effort.seed)

    def better(held: Held, tries: int) -> Held:
        return improved(
            blocks,
            priced.prices,
            answers.worth,
            held,
            solver=effort.solver,
            random=random,
            enough=enough,
            found=lambda better: effort.found(better, bound),
            left=effort.left,
            tries=tries,
        )

    if len(blocks.sizes) + len(blocks.copies) <= _SMALL:
        held = held if _classed(blocks) else better(held, _FEW)
        if not enough(held.value(blocks)) and effort.left() > 0:
            target = bound - _step(whole)
            held, done = _chosen(blocks, priced, answers, held, target, effort, _CLOSE)
            if done:
                return Found(held, held.value(blocks), priced)
    held = better(held, _TRIES)
    if not enough(held.value(blocks)) and effort.left() > 0:
        held, done = _chosen(blocks, priced, answers, held, bound - _step(whole), effort, _ALL)
        bound = held.value(blocks) if done else bound
    return Found(held, max(bound, held.value(blocks)), priced)


def _classed(blocks: Blocks) -> bool:
    """Tell whether tasks or sites are many of a kind: steps stall there, and masters are small."""
    return bool(blocks.copies.max() > 1 or blocks.most.max() > 1)


def searched_bound(blocks: Blocks, effort: Effort) -> float:
    """Return a value that no decision exceeds."""
    return _rounded(searched_prices(blocks, effort).bound, blocks.whole)


class _Hurry:
    """Decides meanwhile: the best of hasty dives, at numbers of steps and not at times."""

    def __init__(self, blocks: Blocks, effort: Effort) -> None:
        self._blocks, self._effort = blocks, effort
        self.held, self._value = Held(joined_columns([]), np.zeros(0, np.int64)), -np.inf

    def decide(self, prices: Prices, bound: float) -> None:
        """Dive from prices."""
        stop = self._effort.left
        self.offer(Held(*dive(self._blocks, prices, stop=lambda: stop() <= 0, hasty=True)), bound)

    def begin(self, start: Held | None, bound: float) -> None:
        """Take a decision from elsewhere, where it keeps every row."""
        if start is not None and feasible(self._blocks, start.columns, start.times):
            self.offer(start, bound)

    def offer(self, found: Held, bound: float) -> None:
        """Take a decision, and tell it, where it is better than those before."""
        if found.value(self._blocks) > self._value:
            self.held, self._value = found, found.value(self._blocks)
            self._effort.found(found, bound)

    def enough(self, bound: float) -> bool:
        """Tell whether the best is good enough against a bound."""
        decided = self._value > -np.inf
        return decided and bound - self._value <= self._effort.gap * abs(self._value)


def searched_prices(blocks: Blocks, effort: Effort, start: Held | None = None) -> Priced:
    """Find prices by steps, ever smaller ones, then by the master where that is small."""
    pool, steps, hurry, reached = Pool(blocks), 0, _Hurry(blocks, effort), np.inf
    groups = considered(blocks)
    classed = _classed(blocks)

    def stop() -> bool:
        return effort.left() <= 0 or hurry.enough(reached)

    def seen(answers: Answers, prices: Prices) -> None:
        nonlocal steps, reached
        steps, reached = steps + 1, min(reached, answers.bound)
        if groups is not None and steps > _WARM:
            pool.add(answers)
        if steps in _HASTY and blocks.values.size > _LONG:
            hurry.decide(prices, reached)

    lowest, best = first_prices(blocks, lambda found: respond(blocks, groups, found).bound, stop)
    hurry.begin(start, lowest)
    hurry.decide(best, lowest)
    for reach in () if stop() else _REACHES:
        bound, found = descend(blocks, groups, best, reach=reach, seen=seen, stop=stop)
        gained = lowest - bound
        if bound < lowest:
            lowest, best = bound, found
        if not classed or gained <= _WORTH_IT * abs(lowest) or stop():
            break
    if (
        classed
        and groups is not None
        and not stop()
        and len(blocks.sizes) + len(blocks.copies) <= _SMALL
    ):
        bound, found, columns = generated(
            blocks, groups, best, pool, solver=effort.solver, left=effort.left
        )
        pool = Pool(blocks)
        pool.extend(columns)
        if bound < lowest:
            lowest, best = bound, found
    return Priced(lowest, best, groups, hurry.held, pool)


def _chosen(
    blocks: Blocks,
    priced: Priced,
    answers: Answers,
    held: Held,
    target: float,
    effort: Effort,
    limit: int,
) -> tuple[Held, bool]:
    """Choose among columns close to the best answers; tell whether nothing better exists.

    `target`: no better decision loses more against the bound than this is above the one held.
    """
    slack = max(0.0, target - held.value(blocks))
    if priced.groups is None:
        return held, False
    first = slack if limit == _ALL else min(slack, _NEAR * priced.bound)
    near, every = nearest(
        blocks,
        priced.groups,
        priced.prices,
        answers,
        slack=first,
        limit=limit,
        stop=lambda: effort.left() <= 0,
        halvings=0 if limit == _ALL else _HALVINGS,
    )
    every = every and first == slack
    if not every and limit == _ALL:
        return held, False
    pool = Pool(blocks)
    pool.extend(held.columns)
    known = len(pool)
    pool.extend(near)
    if not every:
        met = priced.pool.columns()
        pool.extend(close(blocks, met, priced.prices, answers, limit))
    columns = pool.columns()
    start = np.zeros(len(columns), np.int64)
    if known == len(held.columns):
        start[:known] = held.times
    taken = master(
        blocks,
        columns,
        solver=effort.solver,
        seconds=effort.left(),
        start=start,
        nodes=None if every else _NODES,
        target=priced.bound / (1.0 + effort.gap),
    )
    if taken is None or not feasible(blocks, columns, taken.times):
        return held, False
    hit = np.flatnonzero(taken.times)
    found = Held(columns.pick(hit), taken.times[hit])
    better = found if found.value(blocks) > held.value(blocks) else held
    return better, every and taken.proven


def _rounded(bound: float, whole: bool) -> float:
    return float(floor(bound + _WHOLE)) if whole else bound


def _step(whole: bool) -> float:
    """Return how much better the next better decision is at least."""
    return 1.0 - _WHOLE if whole else 0.0
