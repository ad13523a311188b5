"""The neighbourhood around a change: related sites, however many others there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.optimizer.instances import instance, problem
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.solve.blocks.block_problem import Prices
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.pricing.lagrangian_dual import solve_lagrangian_dual
from optimizer.solve.pricing.lagrangian_relaxation import items_if_few, price_blocks
from optimizer.solve.pricing.restricted_master import is_feasible
from optimizer.solve.search.large_neighbourhood import improve_around_change
from optimizer.solve.time_limit import SolveContext
from tests.optimizer.brute_force import best
from tests.optimizer.random_problems import random_problem

EFFORT = SolveContext("highs", 0.0, 0, lambda: 60.0)
SITES = 60


@pytest.mark.parametrize("idle", [False, True])
def test_what_a_changed_score_moves_is_found_among_many_sites(idle: bool) -> None:
    """Workload i runs on site i for 50; 3 is worth 100 on 17, whose workload is worth 45 on 41.

    The workload of 41 is worth 44 where 3 ran, unless 41 is `idle`.
    """
    values = np.full((SITES, SITES), 10.0)
    np.fill_diagonal(values, 50.0)
    values[3, 17], values[17, 41], values[41, 3] = 100.0, 45.0, 44.0
    names = [str(number) for number in range(SITES)]
    ran = [name for name in names if not (idle and name == "41")]
    given = Problem(
        tuple(names),
        tuple(ClusterResource(number, "gpu", "d") for number in range(SITES)),
        tuple(ProblemPolicy(number, "", "p", ((number, 1.0),)) for number in range(SITES)),
        tuple(ProblemWorkload(name, name, "gpu", 1.0) for name in ran),
        values[[int(name) for name in ran]],
        np.zeros(SITES),
    )
    reduction = reduce_to_blocks(given, np.ones(len(given.workloads)))
    assert reduction is not None
    decision = Decision(
        tuple(PolicyEnforcement(name, "p") for name in ran),
        tuple(Assignment(name, name, "d") for name in ran),
    )
    blocks, start = reduction.blocks, reduction.columns(given, decision)
    prices = Prices(np.full(len(blocks.sizes), 40.0), np.zeros(0))
    pricing = price_blocks(blocks, items_if_few(blocks), prices)
    found = improve_around_change(blocks, prices, pricing, start, EFFORT)
    assert is_feasible(blocks, found.columns, found.multiplicities)
    assert found.value(blocks) - start.value(blocks) == (45.0 if idle else 39.0)


@given(st.integers(0, 10**6), st.sampled_from(["prof", "small"]))
def test_a_neighbourhood_is_feasible_and_no_worse_whatever_repeats_or_is_idle(
    seed: int, kind: str
) -> None:
    if kind == "prof":
        solved = problem(instance(5, 9, "prof", seed))
    else:
        solved = random_problem(seed, most_variables=12)
    reduction = reduce_to_blocks(solved, np.ones(len(solved.workloads)))
    if reduction is None:
        return
    blocks = reduction.blocks
    dual = solve_lagrangian_dual(blocks, EFFORT)
    pricing = price_blocks(blocks, dual.items, dual.prices)
    for start in (dual.incumbent, dual.incumbent.columns.taken(dual.incumbent.multiplicities * 0)):
        if not is_feasible(blocks, start.columns, start.multiplicities):
            continue
        found = improve_around_change(blocks, dual.prices, pricing, start, EFFORT)
        assert is_feasible(blocks, found.columns, found.multiplicities)
        assert found.value(blocks) >= start.value(blocks) - 1e-6
        if kind == "small" and len(solved.tiers) == 1:
            assert found.value(blocks) <= best(solved).values[0] + 1e-6
