"""The search over blocks: prices, a dive for a decision, improvement, proof where it is cheap."""

from dataclasses import dataclass

import numpy as np

from optimizer.solve.blocks.block_problem import BlockProblem
from optimizer.solve.blocks.columns import ColumnSelection
from optimizer.solve.pricing.diving import dive
from optimizer.solve.pricing.lagrangian_dual import (
    LagrangianDual,
    SearchContext,
    has_few_classes,
    has_repeated_classes,
    rounded_bound,
    solve_lagrangian_dual,
)
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.search.gap_closing import close_gap
from optimizer.solve.search.large_neighbourhood import improve_by_large_neighbourhoods

_WHOLE = 1e-6
_TRIES = 12
_LIMITS = (300, 900, 2_700)  # columns in one master after the other
_REPEATED = (150, 300, 600)  # where many columns are equally good
_ALL = 20_000
_CORE = 2_000  # where the compact model, which is small, proves sooner than more columns
_SMALL = 150  # equal ones counted, sites and tasks up to which it is


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best decision, and the lowest bound."""

    incumbent: ColumnSelection
    bound: float
    dual: LagrangianDual


def search_blocks(
    blocks: BlockProblem, effort: SearchContext, start: ColumnSelection | None = None
) -> SearchResult:
    """Return a decision for blocks that is good enough, or the best that time allows.

    `start`: a decision that is improved on, where it keeps every row.
    """
    priced = solve_lagrangian_dual(blocks, effort, start, collect=False)
    held, bound = priced.incumbent, min(rounded_bound(priced.bound, blocks.whole), effort.most)

    def enough(value: float) -> bool:
        return bound - value <= max(effort.gap * abs(value), _WHOLE)

    if enough(held.value(blocks)) or effort.left() <= 0:
        return SearchResult(held, max(bound, held.value(blocks)), priced)
    answers = price_blocks(blocks, priced.items, priced.prices)
    if has_few_classes(blocks):
        limits = _REPEATED if has_repeated_classes(blocks) else _LIMITS
        held, bound = close_gap(blocks, priced, answers, held, bound, effort, limits)
        if enough(held.value(blocks)) or effort.left() <= 0:
            return SearchResult(held, max(bound, held.value(blocks)), priced)
    found = ColumnSelection(*dive(blocks, priced.prices, stop=lambda: effort.left() <= 0))
    if found.value(blocks) > held.value(blocks):
        held = found
        effort.found(held, bound)
    if enough(held.value(blocks)) or effort.left() <= 0:
        return SearchResult(held, max(bound, held.value(blocks)), priced)
    held = improve_by_large_neighbourhoods(
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
        last = _CORE if core and has_repeated_classes(blocks) else _ALL
        held, bound = close_gap(blocks, priced, answers, held, bound, effort, (last,), True)
    return SearchResult(held, max(bound, held.value(blocks)), priced)
