"""The Lagrangian dual where all knapsack items are too many to be kept in memory."""

import numpy as np
import pytest

from benchmarks.optimizer.instances import instance, problem
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.pricing import lagrangian_relaxation
from optimizer.solve.pricing.lagrangian_dual import solve_lagrangian_dual
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.time_limit import SolveContext

CONTEXT = SolveContext("highs", 0.0, 0, lambda: 60.0)


def test_descents_over_sifted_items_reach_a_valid_bound_that_is_nearly_as_low(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound is that of all items at the prices found, within 0.2% of the descent over all."""
    reduction = reduce_to_blocks(problem(instance(15, 120, "dist")), np.ones(120))
    assert reduction is not None
    blocks = reduction.blocks
    every = solve_lagrangian_dual(blocks, CONTEXT)
    assert every.items is not None
    monkeypatch.setattr(lagrangian_relaxation, "ALL_ITEMS_ASSIGNMENTS", 0)
    sifted = solve_lagrangian_dual(blocks, CONTEXT)
    assert sifted.items is None
    assert sifted.bound == pytest.approx(price_blocks(blocks, every.items, sifted.prices).bound)
    assert sifted.bound <= 1.002 * every.bound
    assert sifted.incumbent.value(blocks) <= sifted.bound
