"""Large neighbourhood search: destroy some sites of the incumbent, repair them by a small master.

P. Shaw, "Using constraint programming and local search methods to solve vehicle routing problems",
CP 1998. Sites with the largest regret against their prices are destroyed more probably.
"""

from itertools import count
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.block_problem import (
    BlockProblem,
    Prices,
    Subproblem,
    subproblem_of,
)
from optimizer.solve.blocks.columns import (
    ColumnPool,
    Columns,
    ColumnSelection,
    concatenated_columns,
    feasible_columns,
    to_whole_problem,
)
from optimizer.solve.pricing.lagrangian_dual import OnIncumbent
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    items_if_few,
    lower_bound_by_subgradients,
    price_blocks,
)
from optimizer.solve.pricing.restricted_master import solve_master
from optimizer.solve.search.column_enumeration import best_columns_within
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import (
    NEIGHBOURHOOD_COLUMNS,
    NEIGHBOURHOOD_PRICING_STEPS,
    NEIGHBOURHOOD_RANDOMNESS,
    NEIGHBOURHOOD_SITES,
    NEIGHBOURHOOD_TARGET_DROP,
    NEIGHBOURHOOD_WARM_UP_STEPS,
)

_GROWTH = 1.4
"""Factor by which a neighbourhood grows when it is proven, and shrinks when it is not."""


class _Destroyed(NamedTuple):
    """How often each column of the incumbent is given up, [columns], and the sites, [sites]."""

    multiplicities: Ints
    copies: Ints


def improve_by_large_neighbourhoods(
    blocks: BlockProblem,
    prices: Prices,
    site_profits: Floats,
    incumbent: ColumnSelection,
    bound: float,
    context: SolveContext,
    on_incumbent: OnIncumbent,
    *,
    effort: int = 0,
    most: int | None = None,
) -> ColumnSelection:
    """Return a decision that is at least as good as the incumbent.

    Ends when its value is close enough to the bound, the time is up, or 12
    neighbourhoods in a row do not improve it, `effort` times as many where it is given. `effort`
    also draws other neighbourhoods. `most`: neighbourhoods at most, which do not grow.
    """
    random = np.random.default_rng([context.seed, effort] if effort else context.seed)
    size, failed, patience = float(NEIGHBOURHOOD_SITES), 0, 12 * max(1, effort)
    sites, incumbent = int(blocks.copies.sum()), incumbent.merged()
    for tried in count():
        if context.is_close(incumbent.value(blocks), bound) or context.is_over():
            break
        if failed >= patience or tried == most:
            break
        destroyed = _destroyed(
            blocks, prices, site_profits, incumbent, min(int(size), sites), random
        )
        other, proven = _repair(blocks, prices, incumbent, destroyed, context)
        if other.value(blocks) > incumbent.value(blocks) + 1e-9 * abs(incumbent.value(blocks)):
            incumbent, failed = other.merged(), 0
            on_incumbent(incumbent, bound)
        else:
            failed += 1
            if proven and int(size) >= sites:
                return incumbent
            if most is None or not proven:
                size = min(size * _GROWTH, sites) if proven else max(2.0, size / _GROWTH)
    return incumbent


def _destroyed(
    blocks: BlockProblem,
    prices: Prices,
    site_profits: Floats,
    incumbent: ColumnSelection,
    size: int,
    random: np.random.Generator,
) -> _Destroyed:
    """Choose `size` sites, copies of equal ones each for itself.

    The probability of a site grows with its regret: its profit less the profit of its column.
    """
    sites = blocks.mode_sites[incumbent.columns.modes]
    idle = blocks.copies - np.bincount(sites, incumbent.multiplicities, len(blocks.copies))
    columns = np.repeat(np.arange(len(sites)), incumbent.multiplicities)
    empty = np.repeat(np.arange(len(blocks.copies)), idle.astype(np.int64))
    of_sites = np.concatenate([sites[columns], empty])
    order = np.argsort(of_sites, kind="stable")
    profits = incumbent.columns.profits(blocks, prices)[columns]
    regret = site_profits[of_sites] - np.concatenate([profits, np.zeros(len(empty))])
    regret = regret[order]
    weight = np.maximum(regret, 0.0) + NEIGHBOURHOOD_RANDOMNESS * max(
        float(np.abs(regret).mean()), 1e-6
    )
    chosen = order[random.choice(len(weight), size, replace=False, p=weight / weight.sum())]
    taken = columns[chosen[chosen < len(columns)]]
    return _Destroyed(
        np.bincount(taken, minlength=len(sites)).astype(np.int64),
        np.bincount(of_sites[chosen], minlength=len(blocks.copies)).astype(np.int64),
    )


def _repair(
    blocks: BlockProblem,
    prices: Prices,
    incumbent: ColumnSelection,
    destroyed: _Destroyed,
    context: SolveContext,
) -> tuple[ColumnSelection, bool]:
    """Solve the destroyed sites with what the others leave; tell whether the optimum is proven."""
    kept = incumbent.multiplicities - destroyed.multiplicities
    outside = incumbent.columns.taken(kept)
    rest = residual_problem(blocks, outside.columns, outside.multiplicities, destroyed.copies)
    if not len(rest.workloads):
        return incumbent, True
    pool = ColumnPool(rest.blocks)
    inside = incumbent.columns.taken(destroyed.multiplicities)
    own = to_subproblem(inside.columns, rest)
    pool.extend(own)
    steps = 0

    def seen(pricing: PricingResult, _prices: Prices) -> None:
        nonlocal steps
        steps += 1
        if steps > NEIGHBOURHOOD_WARM_UP_STEPS:
            pool.add(pricing.modes, pricing.workloads, pricing.resources)

    known = Prices(prices.workloads[rest.workloads], prices.linking)
    items = items_if_few(rest.blocks)
    bound, learnt = lower_bound_by_subgradients(
        rest.blocks,
        items,
        known,
        target_drop=NEIGHBOURHOOD_TARGET_DROP,
        on_pricing=seen,
        stop=lambda: steps >= NEIGHBOURHOOD_PRICING_STEPS or context.is_over(),
    )
    pricing = price_blocks(rest.blocks, items, learnt)
    slack = max(0.0, bound - float(own.values(rest.blocks) @ inside.multiplicities))
    if items is not None:
        enumerated = best_columns_within(
            rest.blocks,
            learnt,
            pricing,
            slack=slack,
            limit=NEIGHBOURHOOD_COLUMNS,
            stop=context.is_over,
        )
        pool.extend(enumerated.columns)
    pool.extend(feasible_columns(rest.blocks, pool.columns(), rest.blocks.linking.limits)[0])
    columns = pool.columns()
    times = np.zeros(len(columns), np.int64)
    times[: len(own)] = inside.multiplicities
    taken = solve_master(
        rest.blocks,
        columns,
        context,
        start=times,
        nodes=50,
    )
    if taken is None:
        return incumbent, False
    hit = np.flatnonzero(taken.multiplicities)
    inner = to_whole_problem(columns.pick(hit), rest)
    found = ColumnSelection(
        concatenated_columns([outside.columns, inner]),
        np.concatenate([outside.multiplicities, taken.multiplicities[hit]]),
    )
    return found, taken.proven


def residual_problem(
    blocks: BlockProblem, columns: Columns, times: Ints, copies: Ints
) -> Subproblem:
    """Return what columns leave of workloads and rows, on the given copies of sites."""
    used = np.bincount(columns.workloads, times[columns.owners], len(blocks.sizes)).astype(np.int64)
    of, rows, amounts = columns.uses(blocks)
    spent = np.bincount(rows, amounts * times[of], len(blocks.linking.limits))
    counts = blocks.counts - used
    return subproblem_of(blocks, counts > 0, copies, counts, blocks.linking.limits - spent)


def to_subproblem(columns: Columns, rest: Subproblem) -> Columns:
    """Return columns in the numbers of a subproblem that has all that they use."""
    return Columns(
        np.searchsorted(rest.modes, columns.modes),
        columns.starts,
        np.searchsorted(rest.workloads, columns.workloads),
        np.searchsorted(rest.resources, columns.resources),
    )
