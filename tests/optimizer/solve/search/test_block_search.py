"""Columns with a small loss, and the bound of the master over them."""

from functools import cache

import numpy as np
import pytest

from optimizer.solve.blocks.block_problem import BlockProblem, Prices
from optimizer.solve.blocks.columns import Columns
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.pricing.lagrangian_dual import solve_lagrangian_dual
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.search.block_search import close_gap
from optimizer.solve.search.column_enumeration import best_columns_within
from optimizer.solve.time_limit import SolveContext
from tests.optimizer.brute_force import best
from tests.optimizer.random_problems import random_problem

EFFORT = SolveContext("highs", 0.0, 0, lambda: 60.0)
ALL = 100_000


@cache
def blocks_of(seed: int) -> tuple[BlockProblem, float] | None:
    """Return the blocks of a random problem's first priority, and what its optimum is worth."""
    given = random_problem(seed)
    weights = np.array([float(workload.priority == given.tiers[0]) for workload in given.workloads])
    found = reduce_to_blocks(given, weights, float(len(given.tiers) == 1))
    return None if found is None else (found.blocks, best(given).values[0])


def named(columns: Columns) -> set[tuple[int, tuple[tuple[int, int], ...]]]:
    assignments = list(zip(columns.workloads.tolist(), columns.resources.tolist(), strict=True))
    starts = columns.starts.tolist()
    return {
        (mode, tuple(sorted(assignments[starts[at] : starts[at + 1]])))
        for at, mode in enumerate(columns.modes.tolist())
    }


@pytest.mark.parametrize(
    "seed",
    [
        *range(4_000, 4_004),
        *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4_004, 4_010)),
    ],
)
@pytest.mark.parametrize("limit", [1, 5, 40])
def test_all_columns_that_lose_no_more_than_said_are_among_those_kept(
    seed: int, limit: int
) -> None:
    case = blocks_of(seed)
    if case is None:
        return
    blocks, _ = case
    prices = Prices(np.full(len(blocks.sizes), 7.0), np.zeros(len(blocks.linking.limits)))
    pricing = price_blocks(blocks, solve_lagrangian_dual(blocks, EFFORT).items, prices)

    def never() -> bool:
        return False

    near = best_columns_within(blocks, prices, pricing, slack=50.0, limit=limit, stop=never)
    assert len(near.columns) <= limit
    lost = pricing.site_profits[blocks.mode_sites[near.columns.modes]]
    assert (lost - near.columns.profits(blocks, prices) <= 50.0 + 1e-5).all()
    if near.complete_loss >= 0:
        every = best_columns_within(
            blocks, prices, pricing, slack=near.complete_loss, limit=ALL, stop=never
        )
        assert named(every.columns) <= named(near.columns)


@pytest.mark.parametrize("gap", [0.0, 0.05])
@pytest.mark.parametrize(
    "seed",
    [
        *range(4_000, 4_006),
        *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4_006, 4_016)),
    ],
)
def test_no_bound_of_some_columns_is_too_low(seed: int, gap: float) -> None:
    case = blocks_of(seed)
    if case is None:
        return
    blocks, most = case
    context = SolveContext("highs", gap, 0, lambda: 60.0)
    dual = solve_lagrangian_dual(blocks, context)
    pricing = price_blocks(blocks, dual.items, dual.prices)
    incumbent, bound = close_gap(
        blocks, dual, pricing, dual.incumbent, dual.bound, context, (2, 8, 32, ALL)
    )
    assert incumbent.value(blocks) <= most + 1e-6
    assert bound >= most - 1e-5
    if not gap:
        assert incumbent.value(blocks) == pytest.approx(most, abs=1e-5)
        assert bound == pytest.approx(most, abs=1e-5)
