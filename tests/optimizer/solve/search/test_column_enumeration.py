"""Which assignments and modes a decision that loses little may use."""

import numpy as np
import pytest

from benchmarks.optimizer.instances import instance, problem
from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.solve.blocks.block_problem import Prices
from optimizer.solve.blocks.knapsack import all_items
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.search.column_enumeration import best_columns_within, unfixed_variables


@pytest.mark.parametrize(
    ("slack", "assigned", "enforced"),
    [
        (0.0, [True, False], 1),
        (2.9, [True, False], 1),
        (3.0, [True, True], 1),
        (8.0, [True] * 2, 2),
    ],
)
def test_an_assignment_that_fits_exactly_stays_until_it_loses_too_much(
    slack: float, assigned: list[bool], enforced: int
) -> None:
    """The policy supplies 2: of both workloads, that ask for all of it, one is worth 3 more."""
    given = Problem(
        ("c",),
        (ClusterResource(0, "gpu", "d"),),
        (ProblemPolicy(0, "", "p", ((0, 2.0),)),),
        (ProblemWorkload("v", "v", "gpu", 2.0), ProblemWorkload("w", "w", "gpu", 2.0)),
        np.array([[8.0], [5.0]]),
        np.zeros(1),
    )
    reduction = reduce_to_blocks(given, np.ones(2))
    assert reduction is not None
    blocks = reduction.blocks
    free = Prices(np.zeros(2), np.zeros(0))
    pricing = price_blocks(blocks, all_items(blocks), free)
    found, modes = unfixed_variables(blocks, free, pricing, slack)
    assert found[np.argsort(-blocks.values[:, 0])][:, 0].tolist() == assigned
    assert np.count_nonzero(modes) == enforced


@pytest.mark.parametrize("slack", [0.0, 5.0, 30.0])
@pytest.mark.parametrize("kind_seed", range(4))
def test_columns_that_lose_no_more_use_what_is_not_fixed(kind_seed: int, slack: float) -> None:
    given = problem(instance(4, 9, "dist", kind_seed))
    reduction = reduce_to_blocks(given, np.ones(9))
    assert reduction is not None
    blocks = reduction.blocks
    drawn = np.random.default_rng(kind_seed).uniform(0, 60, len(blocks.sizes))
    prices = Prices(drawn, np.zeros(len(blocks.linking.limits)))
    pricing = price_blocks(blocks, all_items(blocks), prices)
    found, modes = unfixed_variables(blocks, prices, pricing, slack)
    columns, _ = best_columns_within(
        blocks, prices, pricing, slack=slack, limit=100_000, stop=lambda: False
    )
    assert set(columns.modes.tolist()) == set(np.flatnonzero(modes).tolist())
    assert found[columns.workloads, columns.resources].all()
