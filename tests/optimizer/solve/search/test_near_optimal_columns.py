"""The best decision without an assignment, chosen among columns, against solving anew.

A workload that equals the assigned one may be the one that lacks it.
"""

import numpy as np
import pytest

from benchmarks.optimizer.instances import Kind, instance, problem
from optimizer.domain.solution import Assignment, Solution
from optimizer.model.problem import Problem, objective
from optimizer.model.rules import violations
from optimizer.solve.search.near_optimal_columns import near_optimal_columns
from optimizer.solve.strategy import solve_problem


def solved(given: Problem) -> Solution:
    return solve_problem(given, solver="highs", time_limit_seconds=60)


def best_without(given: Problem, assignment: Assignment) -> float:
    at = given.indexes(assignment)
    assert at is not None
    usable = ~np.isnan(given.values)
    usable[at] = False
    rest = given.restricted(usable, np.ones(len(given.policies), np.bool_))
    return solved(rest).objective_value


@pytest.mark.parametrize("kind", ["prof", "dist", "rand"])
def test_the_best_decision_without_an_assignment_is_that_of_solving_anew(kind: Kind) -> None:
    given = problem(instance(3, 5, kind))
    solution = solved(given)
    most = solution.objective_value
    found = near_optimal_columns(given, most, solver="highs", seconds_left=lambda: 60.0)
    assert found is not None
    for assignment in solution.decision.assignments:
        wanted = best_without(given, assignment)
        near = found.without(assignment, most - wanted + 2.0)
        assert near.status == "Optimal"
        assert violations(given, near.decision) == ()
        assert near.objective_value == objective(given, near.decision) == wanted
        if wanted < most - 2.0:
            assert found.without(assignment, (most - wanted) / 2).status == "Infeasible"
