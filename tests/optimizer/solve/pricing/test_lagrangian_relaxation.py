"""Pricing the blocks of a problem."""

import numpy as np
import pytest

from benchmarks.optimizer.instances import instance, problem
from optimizer.solve.blocks.block_problem import Prices
from optimizer.solve.blocks.knapsack import all_items
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from tests.optimizer.solve.test_decomposition import with_cpu


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
