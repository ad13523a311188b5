"""Prices by name, so that they outlive the numbers of one problem."""

from collections.abc import Mapping

import numpy as np

from optimizer.domain.solution import TierPrices
from optimizer.model.problem import Problem
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.reduction import Reduction
from optimizer.solve.pricing.lagrangian_relaxation import (
    assignment_profits,
    items_if_few,
    price_blocks,
)

_PROHIBITIVE = 1e12
"""A price at which no site takes a workload."""


def named(reduction: Reduction, problem: Problem, tier: int, prices: Prices) -> TierPrices:
    """Return the prices of a reduction's classes and rows as those of workloads and rules."""
    workloads = {
        problem.workloads[workload].name: price
        for members, price in zip(reduction.workloads, prices.workloads.tolist(), strict=True)
        for workload in members.tolist()
    }
    rows = zip(reduction.blocks.linking.says, prices.linking.tolist(), strict=True)
    return TierPrices(problem.tiers[tier], workloads, dict(rows))


def numbered(reduction: Reduction, problem: Problem, known: TierPrices) -> Prices:
    """Return known prices for the classes and rows of a reduction.

    A class has the mean of its members. A row without a price has 0, a class without one what its
    members are worth at the other prices (`_with_marginal_prices`).
    """
    workloads = np.array(
        [_mean(problem, own.tolist(), known.workloads) for own in reduction.workloads]
    )
    rows = np.array([known.rows.get(row, 0.0) for row in reduction.blocks.linking.says])
    if not np.isnan(workloads).any():
        return Prices(workloads, rows)
    return _with_marginal_prices(reduction.blocks, Prices(workloads, rows))


def _mean(problem: Problem, members: list[int], known: Mapping[str, float]) -> float:
    prices = (known.get(problem.workloads[workload].name) for workload in members)
    found = [price for price in prices if price is not None]
    return sum(found) / len(found) if found else np.nan


def _with_marginal_prices(blocks: BlockProblem, prices: Prices) -> Prices:
    """Return the prices, and for NaN what an assignment of the class adds to its best site.

    One assignment of w on resource r, in a mode that supplies c of it, adds to a site

        value_wr - (best_r(c) - best_r(c - size_w)) - what the mode loses against the best one

    where best_r is the knapsack table without w. With n assignments, the n-th best site counts.
    """
    unknown = np.flatnonzero(np.isnan(prices.workloads))
    found = np.nan_to_num(prices.workloads)
    without = Prices(np.nan_to_num(prices.workloads, nan=_PROHIBITIVE), prices.linking)
    pricing = price_blocks(blocks, items_if_few(blocks), without)
    lost = (pricing.site_profits[blocks.mode_sites] - pricing.mode_profits)[blocks.supply_modes]
    best = pricing.knapsacks.best[blocks.supply_resources]
    profits = assignment_profits(blocks, Prices(found, prices.linking))
    rows = np.arange(len(best))
    full = best[rows, blocks.supply_amounts]
    sites = blocks.resource_sites[blocks.supply_resources]
    for workload in unknown.tolist():
        size = int(blocks.sizes[workload])
        rest = best[rows, np.maximum(blocks.supply_amounts - size, 0)]
        added = profits[workload, blocks.supply_resources] - (full - rest) - lost
        added[blocks.supply_amounts < size] = -np.inf
        most = np.full(len(blocks.copies), -np.inf)
        np.maximum.at(most, sites, added)
        counted = np.sort(np.repeat(most, blocks.copies))[::-1]
        at = min(int(blocks.counts[workload]), len(counted)) - 1
        found[workload] = max(0.0, float(counted[at]))
    return Prices(found, prices.linking)
