"""Lagrangian relaxation: given prices, the sites fall apart, and an upper bound follows.

The replica counts of workloads and the linking rows are relaxed. With prices u >= 0 for workloads
and v >= 0 for linking rows,

    bound(u, v) = u . counts + v . limits + sum over sites s of copies_s * profit_s(u, v)

where profit_s is the largest profit of a mode of s: its value, plus an optimal knapsack for each
resource that it supplies, whose items are worth value - u - v * coefficient. No decision is worth
more than the bound, whatever the prices: M. L. Fisher, "The Lagrangian relaxation method for
solving integer programming problems", Management Science 27 (1981).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Floats, Ints, first_maxima
from optimizer.model.subgradient import StepRule, minimise
from optimizer.solve import tuning
from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.knapsack import (
    KnapsackBand,
    KnapsackTable,
    all_items,
    knapsack_contents,
    sifted_items,
    solve_knapsacks,
)


@dataclass(frozen=True, slots=True)
class PricingResult:
    """What every site does at given prices, and the bound that follows.

    `site_profits` [sites]: of one copy. `modes`: the mode that each site takes. `workloads`,
    `resources`: the assignments on one copy of each site. `mode_profits` [modes] and `knapsacks`:
    for columns other than the best.
    """

    bound: float
    site_profits: Floats
    modes: Ints
    workloads: Ints
    resources: Ints
    mode_profits: Floats
    knapsacks: KnapsackTable


def price_blocks(
    blocks: BlockProblem, items: list[KnapsackBand] | None, prices: Prices
) -> PricingResult:
    """Solve the blocks at given prices; `items`: all knapsack items, if they are kept in memory."""
    if items is None:
        items = sifted_items(blocks, prices)
    filling = solve_knapsacks(
        items,
        prices.workloads,
        prices.linking,
        resources=len(blocks.resource_sites),
        capacity=blocks.largest_supply,
    )
    mode_profits = _mode_profits(blocks, filling.best, prices)
    site_profits, modes = _best_modes(blocks, mode_profits)
    workloads, resources = assignments_of_modes(blocks, filling, modes)
    return PricingResult(
        _bound(blocks, prices, site_profits),
        site_profits,
        modes,
        workloads,
        resources,
        mode_profits,
        filling,
    )


def assignment_profits(blocks: BlockProblem, prices: Prices) -> Floats:
    """Return the value of every assignment less its prices, [workloads, resources]."""
    profits: Floats = blocks.values - prices.workloads[:, None]
    rows = blocks.linking
    charged = rows.assignment_coefficients * prices.linking[rows.assignment_rows]
    np.subtract.at(profits, (rows.assignment_workloads, rows.assignment_resources), charged)
    return profits


def assignments_of_modes(
    blocks: BlockProblem, filling: KnapsackTable, modes: Ints
) -> tuple[Ints, Ints]:
    """Return workloads and resources of the optimal assignments of modes, at most one of a site."""
    chosen = np.zeros(len(blocks.mode_sites), np.bool_)
    chosen[modes] = True
    parts = np.flatnonzero(chosen[blocks.supply_modes])
    resources = blocks.supply_resources[parts]
    positions, workloads = knapsack_contents(filling, resources, blocks.supply_amounts[parts])
    return workloads, resources[positions]


def items_if_few(blocks: BlockProblem) -> list[KnapsackBand] | None:
    """Return all knapsack items; None where they are too many to be kept in memory."""
    return all_items(blocks) if blocks.values.size <= tuning.ALL_ITEMS_ASSIGNMENTS else None


def initial_prices(
    blocks: BlockProblem, bound: Callable[[Prices], float], stop: Callable[[], bool]
) -> tuple[float, Prices]:
    """Return a bound and its prices: the best of those that one price of all capacity implies.

    At price p of the scarcest unit of a site, a workload's price is what its best resource leaves
    of its value: u_w = max over resources r of value_wr - size_w * p * share_r. `bound` prices the
    blocks.
    """
    supply = np.zeros(len(blocks.resource_sites))
    np.maximum.at(supply, blocks.supply_resources, blocks.supply_amounts)
    top = np.zeros(len(blocks.copies))
    np.maximum.at(top, blocks.resource_sites, supply)
    share = top[blocks.resource_sites] / np.maximum(supply, 1)
    none = np.zeros(len(blocks.linking.limits))

    def prices(level: float) -> Prices:
        left = np.zeros(len(blocks.sizes))
        for resource in range(len(share)):
            np.maximum(
                left,
                blocks.values[:, resource] - blocks.sizes * (level * share[resource]),
                out=left,
            )
        return Prices(left, none)

    low, high = 0.0, float(blocks.values.max(initial=0.0))
    bounds: dict[float, float] = {}
    for _ in range(2):
        levels = np.linspace(low, high, tuning.FIRST_PRICE_LEVELS).tolist()
        for level in levels:
            if level not in bounds and not (bounds and stop()):
                bounds[level] = bound(prices(level))
        at = int(np.argmin([bounds.get(level, np.inf) for level in levels]))
        low, high = levels[max(0, at - 1)], levels[min(tuning.FIRST_PRICE_LEVELS - 1, at + 1)]
    best = min(bounds, key=lambda level: (bounds[level], level))
    return bounds[best], prices(best)


def _negligible_bound(blocks: BlockProblem) -> float:
    """Return the bound below which steps are absolute, not shares: 1% of the largest value."""
    return 0.01 * float(blocks.values.max(initial=0.0))


def lower_bound_by_subgradients(
    blocks: BlockProblem,
    items: list[KnapsackBand] | None,
    start: Prices,
    *,
    target_drop: float,
    patience: int = tuning.STEP_PATIENCE,
    on_pricing: Callable[[PricingResult, Prices], None],
    stop: Callable[[], bool],
) -> tuple[float, Prices]:
    """Return the lowest bound that subgradient steps reach from `start`, and its prices.

    The subgradient is the slack of the relaxed rows. The steps aim at a bound that is lower than
    the lowest by `target_drop`, as a share, which shrinks after `patience` steps without progress.
    Ends when it is small, or when `stop` returns True. `on_pricing` is called with every pricing
    result and its prices.
    """
    least = _negligible_bound(blocks)

    def price(prices: Prices) -> PricingResult:
        pricing = price_blocks(blocks, items, prices)
        on_pricing(pricing, prices)
        return pricing

    def distance(value: float, lowest: float, size: float) -> float:
        return value - lowest + target_drop * size * max(abs(lowest), least)

    rule = StepRule(
        fresh=1.0,
        kept=tuning.MOMENTUM,
        distance=distance,
        patience=patience,
        shrink=tuning.STEP_SHRINK,
        least_size=tuning.LEAST_STEP_SIZE,
        progress=lambda lowest: tuning.STEP_PROGRESS * max(abs(lowest), least),
    )
    return _lower_bound(blocks, start, price, rule, stop)


def lower_bound_by_sifting(
    blocks: BlockProblem,
    start: Prices,
    *,
    on_pricing: Callable[[PricingResult, Prices], None],
    stop: Callable[[], bool],
) -> tuple[float, Prices]:
    """Return the lowest bound that subgradient steps over sifted items reach, and its prices.

    The items are sifted again after every SIFTED_STEPS steps. The pricing that follows is that of
    all items, so its bound is valid. The others only guess it: they are reported with an infinite
    bound, and the step size shrinks whether they are lower or not.
    """
    least = _negligible_bound(blocks)
    lowest, best, steps = np.inf, start, 0
    items: list[KnapsackBand] = []

    def price(prices: Prices) -> PricingResult:
        nonlocal lowest, best, steps, items
        is_exact, steps = steps % tuning.SIFTED_STEPS == 0, steps + 1
        if is_exact:
            items = sifted_items(blocks, prices, tuning.SIFTING_MARGIN)
        pricing = price_blocks(blocks, items, prices)
        if is_exact and pricing.bound < lowest:
            lowest, best = pricing.bound, prices
        on_pricing(pricing if is_exact else replace(pricing, bound=np.inf), prices)
        return pricing

    rule = StepRule(
        fresh=1.0,
        kept=tuning.MOMENTUM,
        distance=lambda value, _lowest, size: (
            tuning.SIFTED_TARGET_DROP * size * max(abs(value), least)
        ),
        patience=tuning.SIFTED_STEPS,
        shrink=tuning.SIFTED_STEP_SHRINK,
        least_size=tuning.LEAST_STEP_SIZE,
        progress=lambda _lowest: np.inf,
    )
    _lower_bound(blocks, start, price, rule, stop)
    return lowest, best


def _lower_bound(
    blocks: BlockProblem,
    start: Prices,
    price: Callable[[Prices], PricingResult],
    rule: StepRule,
    stop: Callable[[], bool],
) -> tuple[float, Prices]:
    """Return the lowest bound of the pricings that steps by a rule meet, and its prices."""
    count = len(start.workloads)
    available = np.concatenate([blocks.counts, blocks.linking.limits])

    def evaluate(point: Floats) -> tuple[float, Floats]:
        pricing = price(Prices(point[:count], point[count:]))
        return pricing.bound, available - _usage(blocks, pricing)

    lowest, best = minimise(evaluate, np.concatenate([start.workloads, start.linking]), rule, stop)
    return lowest, Prices(best[:count], best[count:])


def _usage(blocks: BlockProblem, pricing: PricingResult) -> Floats:
    """Return the assignments of each workload, then the use of each linking row."""
    times = blocks.copies[blocks.resource_sites[pricing.resources]]
    used: Floats = np.bincount(pricing.workloads, times, len(blocks.sizes)).astype(np.float64)
    if not len(blocks.linking.limits):
        return used
    taken = np.zeros(blocks.values.shape)
    np.add.at(taken, (pricing.workloads, pricing.resources), times)
    chosen = np.zeros(len(blocks.mode_sites))
    chosen[pricing.modes] = blocks.copies[blocks.mode_sites[pricing.modes]]
    return np.concatenate([used, blocks.linking.used(taken, chosen)])


def _bound(blocks: BlockProblem, prices: Prices, site_profits: Floats) -> float:
    rows = blocks.linking.limits
    return float(
        prices.workloads @ blocks.counts + prices.linking @ rows + site_profits @ blocks.copies
    )


def _mode_profits(blocks: BlockProblem, best: Floats, prices: Prices) -> Floats:
    parts = best[blocks.supply_resources, blocks.supply_amounts]
    site_profits: Floats = blocks.mode_values + np.bincount(
        blocks.supply_modes, parts, len(blocks.mode_sites)
    )
    rows = blocks.linking
    if len(rows.choice_rows):
        charged = rows.choice_coefficients * prices.linking[rows.choice_rows]
        site_profits -= np.bincount(rows.choices, charged, len(site_profits))
    return site_profits


def _best_modes(blocks: BlockProblem, mode_profits: Floats) -> tuple[Floats, Ints]:
    """Return the largest profit of every site, and the first mode that has it."""
    modes = first_maxima(mode_profits, blocks.first_modes[:-1])
    return mode_profits[modes], modes
