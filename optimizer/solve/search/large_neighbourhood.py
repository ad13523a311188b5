"""Large neighbourhood search: destroy some sites of the incumbent, repair them by a small master.

P. Shaw, "Using constraint programming and local search methods to solve vehicle routing problems",
CP 1998. Sites with the largest regret against their prices are destroyed more probably; around a
change, sites are destroyed that are related because they lose little by each other's workloads.
"""

from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.solve import tuning
from optimizer.solve.blocks.block_problem import BlockProblem, Prices, Subproblem, subproblem_of
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
from optimizer.solve.search.column_enumeration import best_columns_within, losses_by_site
from optimizer.solve.time_limit import SolveContext

_RELATED_SITES = 20
"""Sites of the neighbourhood around a change."""

_GROWTH = 1.4
"""Factor by which a neighbourhood grows when it is proven, and shrinks when it is not."""


class _Destroyed(NamedTuple):
    """How often each column of the incumbent is given up, [columns], and the sites, [sites]."""

    multiplicities: Ints
    copies: Ints


class _Copies(NamedTuple):
    """The copies of sites, ascending by site: of each its site, its column or -1, its regret.

    The regret is the profit of the site less the profit of its column.
    """

    sites: Ints
    columns: Ints
    regrets: Floats

    def destroyed(self, chosen: Ints, incumbent: ColumnSelection, sites: int) -> _Destroyed:
        """Return what is given up with some of the copies; `sites`: how many there are."""
        taken = self.columns[chosen]
        return _Destroyed(
            np.bincount(taken[taken >= 0], minlength=len(incumbent.columns)).astype(np.int64),
            np.bincount(self.sites[chosen], minlength=sites).astype(np.int64),
        )


def improve_by_large_neighbourhoods(
    blocks: BlockProblem,
    prices: Prices,
    pricing: PricingResult,
    incumbent: ColumnSelection,
    bound: float,
    context: SolveContext,
    on_incumbent: OnIncumbent,
    *,
    effort: int = 0,
) -> ColumnSelection:
    """Return a decision that is at least as good as the incumbent.

    Ends when its value is close enough to the bound, the time is up, or 12
    neighbourhoods in a row do not improve it, `effort` times as many where it is given. `effort`
    also draws other neighbourhoods.
    """
    random = np.random.default_rng([context.seed, effort] if effort else context.seed)
    size, failed, patience = float(tuning.NEIGHBOURHOOD_SITES), 0, 12 * max(1, effort)
    sites, incumbent = int(blocks.copies.sum()), incumbent.merged()
    while failed < patience:
        if context.is_close(incumbent.value(blocks), bound) or context.is_over():
            break
        copies = _copies(blocks, prices, pricing.site_profits, incumbent)
        chosen = _drawn(copies, min(int(size), sites), random)
        destroyed = copies.destroyed(chosen, incumbent, len(blocks.copies))
        other, proven = _repair(blocks, prices, incumbent, destroyed, context)
        if other.value(blocks) > incumbent.value(blocks) + 1e-9 * abs(incumbent.value(blocks)):
            incumbent, failed = other.merged(), 0
            on_incumbent(incumbent, bound)
        else:
            failed += 1
            if proven and int(size) >= sites:
                return incumbent
            size = min(size * _GROWTH, sites) if proven else max(2.0, size / _GROWTH)
    return incumbent


def improve_around_change(
    blocks: BlockProblem,
    prices: Prices,
    pricing: PricingResult,
    incumbent: ColumnSelection,
    context: SolveContext,
) -> ColumnSelection:
    """Return a decision that is at least as good, after one neighbourhood of related sites.

    It is around the site of the largest regret: where little changed, the change is there.
    """
    incumbent, losses = incumbent.merged(), losses_by_site(blocks, prices, pricing)
    copies = _copies(blocks, prices, pricing.site_profits, incumbent)
    chosen = _related(incumbent.columns, copies, losses)
    destroyed = copies.destroyed(chosen, incumbent, len(blocks.copies))
    return _repair(blocks, prices, incumbent, destroyed, context)[0]


def _copies(
    blocks: BlockProblem, prices: Prices, site_profits: Floats, incumbent: ColumnSelection
) -> _Copies:
    """Return the copies of sites with their columns; no column has the profit 0."""
    sites = blocks.mode_sites[incumbent.columns.modes]
    idle = blocks.copies - np.bincount(sites, incumbent.multiplicities, len(blocks.copies))
    columns = np.repeat(np.arange(len(sites)), incumbent.multiplicities)
    empty = np.repeat(np.arange(len(blocks.copies)), idle.astype(np.int64))
    of_sites = np.concatenate([sites[columns], empty])
    columns = np.concatenate([columns, np.full(len(empty), -1)])
    order = np.argsort(of_sites, kind="stable")
    profits = np.append(incumbent.columns.profits(blocks, prices), 0.0)[columns]
    regrets = site_profits[of_sites] - profits
    return _Copies(of_sites[order], columns[order], regrets[order])


def _drawn(copies: _Copies, size: int, random: np.random.Generator) -> Ints:
    """Draw `size` copies; the probability of each grows with its regret."""
    regrets = copies.regrets
    weight = np.maximum(regrets, 0.0) + tuning.NEIGHBOURHOOD_RANDOMNESS * max(
        float(np.abs(regrets).mean()), 1e-6
    )
    return random.choice(len(weight), size, replace=False, p=weight / weight.sum())


def _related(columns: Columns, copies: _Copies, losses: Floats) -> Ints:
    """Return the copy of the largest regret, and those related to it or to one another.

    One by one comes the copy t that loses least by a workload of those before, together with what
    one of those loses by a workload of t; who has none gives for nothing. `losses`: of
    sites that have to take a workload, [workloads, sites].
    """
    lengths = np.append(np.diff(columns.starts), 0)[copies.columns]
    owners = np.repeat(np.arange(len(lengths)), lengths)
    first = columns.starts[copies.columns] - np.cumsum(lengths) + lengths
    workloads = columns.workloads[np.arange(len(owners)) + first[owners]]
    taking, giving = np.full(len(lengths), np.inf), np.where(lengths > 0, np.inf, 0.0)
    chosen = [int(np.argmax(copies.regrets))]
    while len(chosen) < min(_RELATED_SITES, len(lengths)):
        own = losses[workloads[owners == chosen[-1]]][:, copies.sites]
        taking = np.minimum(taking, own.min(axis=0) if len(own) else 0.0)
        np.minimum.at(giving, owners, losses[workloads, copies.sites[chosen[-1]]])
        lost = taking + giving
        lost[chosen] = np.inf
        if np.isinf(lost).all():
            break
        chosen.append(int(np.argmin(lost)))
    return np.array(chosen, np.int64)


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
        if steps > tuning.NEIGHBOURHOOD_WARM_UP_STEPS:
            pool.add(pricing.modes, pricing.workloads, pricing.resources)

    known = Prices(prices.workloads[rest.workloads], prices.linking)
    items = items_if_few(rest.blocks)
    bound, learnt = lower_bound_by_subgradients(
        rest.blocks,
        items,
        known,
        target_drop=tuning.NEIGHBOURHOOD_TARGET_DROP,
        on_pricing=seen,
        stop=lambda: steps >= tuning.NEIGHBOURHOOD_PRICING_STEPS or context.is_over(),
    )
    pricing = price_blocks(rest.blocks, items, learnt)
    slack = max(0.0, bound - float(own.values(rest.blocks) @ inside.multiplicities))
    if items is not None:
        enumerated = best_columns_within(
            rest.blocks,
            learnt,
            pricing,
            slack=slack,
            limit=tuning.NEIGHBOURHOOD_COLUMNS,
            stop=context.is_over,
        )
        pool.extend(enumerated.columns)
    pool.extend(feasible_columns(rest.blocks, pool.columns(), rest.blocks.linking.limits)[0])
    columns = pool.columns()
    times = np.zeros(len(columns), np.int64)
    times[: len(own)] = inside.multiplicities
    taken = solve_master(rest.blocks, columns, context, start=times, nodes=50)
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
