"""The Lagrangian dual where all knapsack items are too many to be kept in memory."""

import numpy as np
import pytest

from benchmarks.optimizer.instances import Kind, instance, problem
from optimizer.solve import tuning
from optimizer.solve.blocks.block_problem import Prices
from optimizer.solve.blocks.knapsack import all_items
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.pricing.lagrangian_dual import solve_lagrangian_dual
from optimizer.solve.pricing.lagrangian_relaxation import (
    PricingResult,
    items_if_few,
    lower_bound_by_sifting,
    price_blocks,
)
from optimizer.solve.time_limit import SolveContext
from tests.optimizer.solve.test_decomposition import with_cpu

CONTEXT = SolveContext("highs", 0.0, 0, lambda: 60.0)


@pytest.mark.parametrize("kind", ["dist", "rand"])
def test_a_descent_over_sifted_items_reaches_a_valid_bound_that_is_nearly_as_low(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is that of all items at the prices found, within 0.1% of the descent over all."""
    reduction = reduce_to_blocks(problem(instance(15, 120, kind)), np.ones(120))
    assert reduction is not None
    blocks = reduction.blocks
    every = solve_lagrangian_dual(blocks, CONTEXT)
    assert every.items is not None
    monkeypatch.setattr(tuning, "ALL_ITEMS_ASSIGNMENTS", 0)
    sifted = solve_lagrangian_dual(blocks, CONTEXT)
    assert sifted.items is None
    assert sifted.bound == pytest.approx(price_blocks(blocks, every.items, sifted.prices).bound)
    assert sifted.bound <= 1.001 * every.bound
    assert sifted.incumbent.value(blocks) <= sifted.bound


def test_every_bound_that_a_sifted_descent_reports_is_that_of_all_items() -> None:
    reduction = reduce_to_blocks(problem(instance(10, 80, "dist")), np.ones(80))
    assert reduction is not None
    blocks = reduction.blocks
    items = items_if_few(blocks)
    free = Prices(np.zeros(len(blocks.sizes)), np.zeros(len(blocks.linking.limits)))
    reported: list[float] = []
    exact: list[float] = []

    def seen(pricing: PricingResult, prices: Prices) -> None:
        if np.isfinite(pricing.bound):
            reported.append(pricing.bound)
            exact.append(price_blocks(blocks, items, prices).bound)

    lowest, best = lower_bound_by_sifting(blocks, free, on_pricing=seen, stop=lambda: False)
    assert reported == pytest.approx(exact)
    assert lowest == min(reported)
    assert lowest == pytest.approx(price_blocks(blocks, items, best).bound)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("linked", [False, True])
def test_the_most_profitable_items_are_worth_as_much_as_all(linked: bool, seed: int) -> None:
    given = problem(instance(6, 90, "dist", seed))
    reduction = reduce_to_blocks(with_cpu(given) if linked else given, np.ones(90))
    assert reduction is not None
    blocks = reduction.blocks
    assert bool(len(blocks.linking.limits)) is linked
    random = np.random.default_rng(seed)
    prices = Prices(
        random.uniform(0, 60, len(blocks.sizes)), random.uniform(0, 9, len(blocks.linking.limits))
    )
    every, some = (
        price_blocks(blocks, all_items(blocks), prices),
        price_blocks(blocks, None, prices),
    )
    assert some.bound == pytest.approx(every.bound)
    assert some.site_profits == pytest.approx(every.site_profits)
