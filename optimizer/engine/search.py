"""The search over blocks: prices, a dive for a decision, improvement, proof where it is cheap."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np

from optimizer.engine.blocks import Blocks, Floats
from optimizer.engine.candidates import Candidates
from optimizer.engine.columns import Columns, Pool
from optimizer.engine.dive import dive
from optimizer.engine.enumeration import nearest
from optimizer.engine.master import feasible, master
from optimizer.engine.neighbourhood import Held, improved
from optimizer.engine.prices import (
    Answers,
    Prices,
    considered,
    descend,
    first_prices,
    proven_bound,
    respond,
)
from optimizer.settings import SolverName

_ROUNDS = 4  # of pricing, where slots consider a selection only
_WARM = 30
_WHOLE = 1e-6
_SMALL = 150  # sites and tasks up to which the master of the columns met is solved at once
_CLOSE = 1_000
_ALL = 20_000
_NODES = 60
_TRIES = 12


@dataclass(frozen=True, slots=True)
class Effort:
    """How to search: `gap` is what is good enough, `left` tells the seconds left."""

    solver: SolverName
    gap: float
    seed: int
    left: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Priced:
    """The lowest bound with its prices, and the columns met on the way."""

    bound: float
    prices: Prices
    groups: list[Candidates]
    pool: Pool


@dataclass(frozen=True, slots=True)
class Found:
    """The best decision, and the lowest bound."""

    held: Held
    bound: float
    priced: Priced


def search(blocks: Blocks, effort: Effort, start: Held | None = None) -> Found:
    """Return a decision for blocks that is good enough, or the best that time allows."""
    whole = blocks.whole
    priced = _priced(blocks, effort)
    bound = _rounded(priced.bound, whole)

    def enough(value: float) -> bool:
        return bound - value <= max(effort.gap * abs(value), _WHOLE)

    held = Held(*dive(blocks, priced.prices, stop=lambda: effort.left() <= 0))
    if start is not None and start.value(blocks) >= held.value(blocks):
        held = start
    if enough(held.value(blocks)) or effort.left() <= 0:
        return Found(held, bound, priced)
    answers = respond(blocks, priced.groups, priced.prices)
    if len(blocks.sizes) + len(blocks.copies) <= _SMALL:
        held, done = _chosen(blocks, priced, answers, held, bound - _step(whole), effort, _CLOSE)
        if done:
            return Found(held, held.value(blocks), priced)
    held = improved(
        blocks,
        priced.prices,
        answers.worth,
        held,
        solver=effort.solver,
        random=np.random.default_rng(effort.seed),
        enough=enough,
        left=effort.left,
        tries=_TRIES,
    )
    if not enough(held.value(blocks)) and effort.left() > 0:
        held, done = _chosen(blocks, priced, answers, held, bound - _step(whole), effort, _ALL)
        bound = held.value(blocks) if done else bound
    return Found(held, max(bound, held.value(blocks)), priced)


def searched_bound(blocks: Blocks, effort: Effort) -> float:
    """Return a value that no decision exceeds."""
    return _rounded(_priced(blocks, effort).bound, blocks.whole)


def _priced(blocks: Blocks, effort: Effort) -> Priced:
    """Find prices; over a selection of the candidates again and again where all are too many."""
    pool, steps = Pool(blocks), 0

    def seen(answers: Answers) -> None:
        nonlocal steps
        steps += 1
        if steps > _WARM:
            pool.add(answers)

    def stop() -> bool:
        return effort.left() <= 0

    zero = Prices(np.zeros(len(blocks.sizes)), np.zeros(len(blocks.rows.limits)))
    groups = considered(blocks, zero)
    prices = first_prices(blocks, lambda found: proven_bound(blocks, groups, found))
    lowest, best = proven_bound(blocks, groups, prices), prices
    for _ in range(_ROUNDS):
        groups = considered(blocks, best)
        expected, found = descend(blocks, groups, best, seen=seen, stop=stop)
        bound = proven_bound(blocks, groups, found)
        if bound < lowest:
            lowest, best = bound, found
        if bound <= expected + 1e-4 * abs(expected) or stop():
            break
    return Priced(lowest, best, groups, pool)


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
    near, every = nearest(blocks, priced.groups, priced.prices, answers, slack=slack, limit=limit)
    pool = Pool(blocks)
    pool.extend(held.columns)
    known = len(pool)
    pool.extend(near)
    if not every:
        pool.extend(_best(blocks, priced, limit))
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
    )
    if taken is None or not feasible(blocks, columns, taken.times):
        return held, False
    hit = np.flatnonzero(taken.times)
    found = Held(columns.pick(hit), taken.times[hit])
    better = found if found.value(blocks) > held.value(blocks) else held
    return better, every and taken.proven


def _best(blocks: Blocks, priced: Priced, limit: int) -> Columns:
    columns = priced.pool.columns()
    profits = columns.profits(blocks, priced.prices)
    worth = respond(blocks, priced.groups, priced.prices).worth
    lost: Floats = worth[blocks.mode_sites[columns.modes]] - profits
    return columns.pick(np.argsort(lost, kind="stable")[:limit])


def _rounded(bound: float, whole: bool) -> float:
    return float(floor(bound + _WHOLE)) if whole else bound


def _step(whole: bool) -> float:
    """Return how much better the next better decision is at least."""
    return 1.0 - _WHOLE if whole else 0.0
