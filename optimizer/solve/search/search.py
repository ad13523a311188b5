"""The search over blocks: prices, a dive for a decision, improvement, proof where it is cheap."""

from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.blocks import Blocks
from optimizer.solve.heuristics.neighbourhood import Held, improved
from optimizer.solve.pricing.diving import dive
from optimizer.solve.pricing.lagrangian import (
    Effort,
    Priced,
    few,
    repeated,
    rounded,
    searched_bound,
    searched_prices,
)
from optimizer.solve.pricing.prices import respond
from optimizer.solve.search.restricted_master import closing

__all__ = ["Effort", "Found", "Priced", "search", "searched_bound", "searched_prices"]

_WHOLE = 1e-6
_TRIES = 12
_LIMITS = (300, 900, 2_700)  # columns in one master after the other
_REPEATED = (150, 300, 600)  # where many columns are equally good
_ALL = 20_000
_CORE = 2_000  # where the compact model, which is small, proves sooner than more columns
_SMALL = 150  # equal ones counted, sites and tasks up to which it is


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
    priced = searched_prices(blocks, effort, start, collect=False)
    held, bound = priced.first, min(rounded(priced.bound, blocks.whole), effort.most)

    def enough(value: float) -> bool:
        return bound - value <= max(effort.gap * abs(value), _WHOLE)

    if enough(held.value(blocks)) or effort.left() <= 0:
        return Found(held, max(bound, held.value(blocks)), priced)
    answers = respond(blocks, priced.groups, priced.prices)
    if few(blocks):
        limits = _REPEATED if repeated(blocks) else _LIMITS
        held, bound = closing(blocks, priced, answers, held, bound, effort, limits)
        if enough(held.value(blocks)) or effort.left() <= 0:
            return Found(held, max(bound, held.value(blocks)), priced)
    found = Held(*dive(blocks, priced.prices, stop=lambda: effort.left() <= 0))
    if found.value(blocks) > held.value(blocks):
        held = found
        effort.found(held, bound)
    if enough(held.value(blocks)) or effort.left() <= 0:
        return Found(held, max(bound, held.value(blocks)), priced)
    held = improved(
        blocks,
        priced.prices,
        answers.worth,
        held,
        solver=effort.solver,
        random=np.random.default_rng(effort.seed),
        enough=enough,
        found=lambda better: effort.found(better, bound),
        left=effort.left,
        tries=_TRIES,
    )
    if not enough(held.value(blocks)) and effort.left() > 0:
        core = blocks.copies.sum() + blocks.counts.sum() <= _SMALL
        last = _CORE if core and repeated(blocks) else _ALL
        held, bound = closing(blocks, priced, answers, held, bound, effort, (last,), True)
    return Found(held, max(bound, held.value(blocks)), priced)
