"""The first decision is quick, and legal under all rules."""

from dataclasses import replace
from functools import partial
from itertools import chain, repeat

import numpy as np
import pytest

from benchmarks.optimizer.instances import Kind, instance, problem
from optimizer.domain.solution import Decision
from optimizer.model.objective import objective, tier_values
from optimizer.model.parameters import ClusterResource, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.greedy import fill_remaining, greedy
from optimizer.solve.strategy import solve_problem
from tests.optimizer.brute_force import legal
from tests.optimizer.random_problems import random_problem


@pytest.mark.parametrize("seed", range(40))
def test_every_rule_is_kept(seed: int) -> None:
    given = random_problem(seed, most_variables=40)
    for looks in (0, 2, 1_000):
        asked = chain(repeat(False, looks), repeat(True))
        decision = greedy(given, partial(next, asked))
        assert violations(given, decision) == ()
        assert legal(given, decision)


@pytest.mark.parametrize(
    ("kind", "share"),
    [("prof", 0.85), pytest.param("dist", 0.85, marks=pytest.mark.exhaustive), ("rand", 0.9)],
)
def test_it_is_worth_most_of_what_there_is(kind: Kind, share: float) -> None:
    given = problem(instance(100, 200, kind))
    solution = solve_problem(given, solver="highs", time_limit_seconds=60, gap=0.03)
    decision = greedy(given, lambda: False)
    assert objective(given, decision) >= share * (solution.bound or 0.0)


def test_a_higher_priority_comes_first() -> None:
    given = problem(instance(20, 120, "dist"))  # more than fits
    even = [
        replace(workload, priority=number % 2) for number, workload in enumerate(given.workloads)
    ]
    odd = [replace(workload, priority=1 - workload.priority) for workload in even]
    one, other = (replace(given, workloads=tuple(workloads)) for workloads in (even, odd))
    high, low = tier_values(one, greedy(one, lambda: False))
    low_first, high_last = tier_values(other, greedy(other, lambda: False))
    assert high > high_last
    assert low < low_first


def test_a_workload_finds_the_one_that_it_wants_near_though_that_comes_later() -> None:
    given = Problem(
        ("c",),
        (ClusterResource(0, "gpu", "d"),),
        (),
        (
            ProblemWorkload("first", "", "gpu", 1.0, workload_affinity=(("later",),)),
            ProblemWorkload("later", "", "gpu", 1.0),
        ),
        np.array([[9.0], [2.0]]),
        np.array([2.0]),
    )
    assert objective(given, greedy(given, lambda: False)) == 11.0


def test_it_is_never_worth_less_than_nothing() -> None:
    given = problem(instance(5, 10, "dist"))
    dear = tuple(policy._replace(value=-1_000.0) for policy in given.policies)
    assert objective(given, greedy(given, lambda: False)) > 0
    assert greedy(replace(given, policies=dear), lambda: False) == Decision()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_filled_keeps_all_that_there_was_and_every_rule(seed: int) -> None:
    given = random_problem(seed, most_variables=40)
    decision = greedy(given, partial(next, chain(repeat(False, 2), repeat(True))))
    found = fill_remaining(given, decision, lambda: False)
    assert set(decision.assignments) <= set(found.assignments)
    assert violations(given, found) == ()
    assert tier_values(given, found) >= tier_values(given, decision)


def test_what_is_worth_nothing_is_placed_where_there_is_room() -> None:
    given = problem(instance(20, 50, "dist"))
    given = replace(given, values=np.where(np.isnan(given.values), np.nan, 0.0))
    solution = solve_problem(given, solver="highs", time_limit_seconds=60)
    assert solution.status == "Optimal"
    assert len(solution.decision.assignments) > len(given.clusters)
    assert fill_remaining(given, solution.decision, lambda: False) == solution.decision
