"""Of equally good decisions, the one that keeps more of the current state is chosen."""

from dataclasses import replace

import pytest

from benchmarks.optimizer.instances import instance, problem
from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem, tier_values
from optimizer.model.rules import violations
from optimizer.solve.move_reduction import reduce_moves, unchanged_count
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
