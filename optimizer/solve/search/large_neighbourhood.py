"""Large neighbourhood search: destroy some sites of the incumbent, repair them by a small master.

P. Shaw, "Using constraint programming and local search methods to solve vehicle routing problems",
CP 1998. Sites with the largest regret against their prices are destroyed more probably.
"""

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve.blocks.block_problem import (
    BlockProblem,
    Prices,
    Subproblem,
    residual_subproblem,
)
from optimizer.solve.blocks.columns import (
    ColumnPool,
    Columns,
    ColumnSelection,
    concatenated_columns,
    to_whole_problem,
)
from optimizer.solve.pricing.feasible_columns import feasible_columns
from optimizer.solve.pricing.lagrangian_dual import OnIncumbent
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    items_if_few,
    lower_bound_by_subgradients,
    price_blocks,
)
from optimizer.solve.pricing.restricted_master import is_feasible, solve_master
from optimizer.solve.search.column_enumeration import best_columns_within
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import (
    LEAST_NEIGHBOURHOOD_SITES,
    NEIGHBOURHOOD_COLUMNS,
    NEIGHBOURHOOD_FAILURES,
    NEIGHBOURHOOD_GROWTH,
    NEIGHBOURHOOD_IMPROVEMENT,
    NEIGHBOURHOOD_NODES,
    NEIGHBOURHOOD_PRICING_STEPS,
    NEIGHBOURHOOD_RANDOMNESS,
    NEIGHBOURHOOD_SITES,
    NEIGHBOURHOOD_TARGET_DROP,
    NEIGHBOURHOOD_WARM_UP_STEPS,
)


def improve_by_large_neighbourhoods(
    blocks: BlockProblem,
    prices: Prices,
    site_profits: Floats,
    incumbent: ColumnSelection,
    bound: float,
    context: SolveContext,
    on_incumbent: OnIncumbent,
) -> ColumnSelection:
    """Return a decision that is at least as good as the incumbent.

    Ends when its value is close enough to the bound, the time is up, or NEIGHBOURHOOD_FAILURES
    neighbourhoods in a row do not improve it.
    """
    size, failed, random = float(NEIGHBOURHOOD_SITES), 0, np.random.default_rng(context.seed)
    sites = len(blocks.copies)
    while not (
        context.is_close(incumbent.value(blocks), bound)
        or context.is_over()
        or failed >= NEIGHBOURHOOD_FAILURES
    ):
        freed = _destroyed_sites(
            blocks, prices, site_profits, incumbent, min(int(size), sites), random
        )
        other, proven = _repair(blocks, prices, incumbent, freed, context)
        if other.value(blocks) > incumbent.value(blocks) + NEIGHBOURHOOD_IMPROVEMENT * abs(
            incumbent.value(blocks)
        ):
            incumbent, failed = other, 0
            on_incumbent(incumbent, bound)
        else:
            failed += 1
            if proven and freed.all():
                return incumbent
            size = (
                min(size * NEIGHBOURHOOD_GROWTH, sites)
                if proven
                else max(LEAST_NEIGHBOURHOOD_SITES, size / NEIGHBOURHOOD_GROWTH)
            )
    return incumbent


def _destroyed_sites(
    blocks: BlockProblem,
    prices: Prices,
    site_profits: Floats,
    incumbent: ColumnSelection,
    size: int,
    random: np.random.Generator,
) -> Ints:
    """Return 1 for the chosen sites, else 0, [sites].

    The probability of site s grows with its regret: copies_s * profit_s less the profit of its
    columns.
    """
    sites = blocks.mode_sites[incumbent.columns.modes]
    profits = incumbent.columns.profits(blocks, prices) * incumbent.multiplicities
    regret = site_profits * blocks.copies - np.bincount(sites, profits, len(blocks.copies))
    weight = np.maximum(regret, 0.0) + NEIGHBOURHOOD_RANDOMNESS * max(
        float(np.abs(regret).mean()), 1e-6
    )
    chosen = random.choice(len(weight), size, replace=False, p=weight / weight.sum())
    freed = np.zeros(len(weight), np.int64)
    freed[chosen] = 1
    return freed


def _repair(
    blocks: BlockProblem,
    prices: Prices,
    incumbent: ColumnSelection,
    freed: Ints,
    context: SolveContext,
) -> tuple[ColumnSelection, bool]:
    """Solve the destroyed sites with what the others leave; tell whether the optimum is proven."""
    inside = freed[blocks.mode_sites[incumbent.columns.modes]] > 0
    outside = incumbent.columns.pick(np.flatnonzero(~inside)), incumbent.multiplicities[~inside]
    rest = residual_problem(blocks, *outside, freed * blocks.copies)
    if not len(rest.workloads):
        return incumbent, True
    pool = ColumnPool(rest.blocks)
    start = np.flatnonzero(inside)
    own = to_subproblem(incumbent.columns.pick(start), rest)
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
    slack = max(0.0, bound - float(own.values(rest.blocks) @ incumbent.multiplicities[inside]))
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
    times[: len(start)] = incumbent.multiplicities[inside]
    taken = solve_master(
        rest.blocks,
        columns,
        solver=context.solver,
        seconds=context.seconds_left(),
        start=times,
        nodes=NEIGHBOURHOOD_NODES,
    )
    if taken is None or not is_feasible(rest.blocks, columns, taken.multiplicities):
        return incumbent, False
    hit = np.flatnonzero(taken.multiplicities)
    inner = to_whole_problem(columns.pick(hit), rest)
    found = ColumnSelection(
        concatenated_columns([outside[0], inner]),
        np.concatenate([outside[1], taken.multiplicities[hit]]),
    )
    return found, taken.proven


def residual_problem(
    blocks: BlockProblem, columns: Columns, times: Ints, copies: Ints
) -> Subproblem:
    """Return what columns leave of workloads and rows, on the given copies of sites."""
    used = np.bincount(columns.workloads, times[columns.owners], len(blocks.sizes)).astype(np.int64)
    of, rows, amounts = columns.uses(blocks)
    spent = np.bincount(rows, amounts * times[of], len(blocks.linking.limits))
    return residual_subproblem(blocks, copies, blocks.counts - used, blocks.linking.limits - spent)


def to_subproblem(columns: Columns, rest: Subproblem) -> Columns:
    """Return columns in the numbers of a subproblem that has all that they use."""
    return Columns(
        np.searchsorted(rest.modes, columns.modes),
        columns.starts,
        np.searchsorted(rest.workloads, columns.workloads),
        np.searchsorted(rest.resources, columns.resources),
    )
