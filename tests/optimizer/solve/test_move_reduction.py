"""Moves that gain nothing are undone, by workloads and by clusters that are equal."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.optimizer.instances import instance, problem
from optimizer.domain.solution import Decision
from optimizer.model.objective import tier_values
from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.move_reduction import exchange_equal_clusters, reduce_moves, unchanged_count
from optimizer.solve.strategy import solve_problem
from tests.optimizer.brute_force import legal
from tests.optimizer.random_problems import random_problem


def running(given: Problem, decision: Decision, shift: int = 0) -> Problem:
    """The same problem where a decision runs now, every workload so many clusters further on."""
    count = len(given.clusters)
    at: dict[str, list[int]] = {}
    for assignment in decision.assignments:
        at.setdefault(assignment.workload, []).append(given.cluster_index[assignment.cluster])
    workloads = (
        replace(workload, current=tuple((own + shift) % count for own in at.get(workload.name, ())))
        for workload in given.workloads
    )
    enforced = [
        given.enforcement(number) in decision.policies for number in range(len(given.policies))
    ]
    policies = zip(given.policies, enforced, strict=True)
    return replace(
        given,
        workloads=tuple(workloads),
        policies=tuple(o._replace(current=now) for o, now in policies),
    )


@pytest.mark.parametrize("seed", range(30))
def test_no_value_is_lost_and_no_rule_broken(seed: int) -> None:
    given = random_problem(seed, most_variables=40)
    decision = solve_problem(given, solver="highs", time_limit_seconds=60).decision
    given = running(given, decision, shift=1)
    stayed = reduce_moves(given, decision, lambda: False)
    assert violations(given, stayed) == ()
    assert legal(given, stayed)
    assert tier_values(given, stayed) == pytest.approx(tier_values(given, decision))
    assert unchanged_count(given, stayed) >= unchanged_count(given, decision)


def test_equal_workloads_and_clusters_are_not_moved_about() -> None:
    """The same fleet the other way round has the same optimum, found in another order."""
    given = problem(instance(30, 60, "prof"))
    decision = solve_problem(given, solver="highs", time_limit_seconds=60, gap=0.01).decision
    again = running(given, decision)
    reverse = replace(given, workloads=given.workloads[::-1], values=given.values[::-1].copy())
    other = solve_problem(reverse, solver="highs", time_limit_seconds=60, gap=0.01).decision
    stayed = reduce_moves(again, other, lambda: False)
    assert tier_values(again, stayed) == pytest.approx(tier_values(again, other))
    assert violations(again, stayed) == ()
    assert unchanged_count(again, stayed) > unchanged_count(again, other)


GIVEN = Problem(
    ("c", "e"),
    (ClusterResource(0, "gpu", "d"), ClusterResource(1, "gpu", "d")),
    tuple(ProblemPolicy(at, "", "p", ((at, 2.0),), current=True) for at in (0, 1)),
    (
        ProblemWorkload("v", "v", "gpu", 1.0, current=(1,)),
        ProblemWorkload("w", "w", "gpu", 2.0, current=(0,)),
        ProblemWorkload("x", "x", "gpu", 1.0),
    ),
    np.array([[5.0, 5.0], [7.0, 7.0], [1.0, 1.0]]),
    np.zeros(2),
)
"""v and w run where the decision has the other one."""
DECISION = GIVEN.named((0, 1), ((0, 0), (1, 1), (2, 0)))


def exchanged(given: Problem) -> Decision:
    return exchange_equal_clusters(given, DECISION, lambda: False)


def test_equal_clusters_are_exchanged_where_more_stays() -> None:
    found = exchanged(GIVEN)
    assert found == GIVEN.named((0, 1), ((0, 1), (1, 0), (2, 1)))
    assert (unchanged_count(GIVEN, DECISION), unchanged_count(GIVEN, found)) == (2, 4)


@pytest.mark.parametrize(("linked", "other"), [(0, "w"), (1, "x"), (2, "v")])
def test_clusters_with_a_workload_of_a_linking_row_stay(linked: int, other: str) -> None:
    workloads = list(GIVEN.workloads)
    workloads[linked] = replace(workloads[linked], workload_anti_affinity=(other,))
    assert exchanged(replace(GIVEN, workloads=tuple(workloads))) == DECISION


@pytest.mark.parametrize("cell", [(0, 1), (1, 0), (2, 1)])
def test_clusters_stay_where_a_value_would_change(cell: tuple[int, int]) -> None:
    values = GIVEN.values.copy()
    values[cell] += 1.0
    assert exchanged(replace(GIVEN, values=values)) == DECISION
