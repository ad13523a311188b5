"""Remembered results about conflicts agree with the solver, and save most solves."""

import random
from itertools import islice

import pytest

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.explain.conflicts.feasibility_oracle import FeasibilityOracle
from optimizer.explain.conflicts.limit_kinds import RequiredReplicas, SuppliedCapacity
from optimizer.explain.conflicts.relaxable_limits import relaxable_limits
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE, possible, spent
from tests.optimizer.explain.test_unplaced_conflicts import explained, infeasible_cases


@pytest.mark.exhaustive
def test_what_is_remembered_is_what_solving_says() -> None:
    rng = random.Random(7)  # noqa: S311 - to repeat, not to guard
    for given, wanted in islice(infeasible_cases(500), 8):
        named = relaxable_limits(given, wanted)
        oracle = FeasibilityOracle(given, wanted, named, RESOLVE)
        oracle.learn_from(RESOLVE(formulate(given)).decision)
        for _ in range(12):
            without = [item for item in named if rng.random() < 0.4]
            assert oracle.feasible(without) is possible(given, wanted, without, RESOLVE)


def test_many_that_are_alike_are_asked_about_once() -> None:
    names = [f"w{number}" for number in range(40)]
    clusters = [f"c{number}" for number in range(19)]
    scores = {(c, name, "3g"): 10.0 for c in clusters for name in names}
    given = fleet({c: [("3g", 2)] for c in clusters}, dict.fromkeys(names, 1), scores)
    problem = formulate(given)
    solution = RESOLVE(problem)
    asked = []

    def solve(changed: Problem) -> Solution:
        asked.append(changed)
        return RESOLVE(changed)

    missing = set(names) - {place.workload for place in solution.decision.assignments}
    found = explained(given, min(missing), solve)
    assert found.irreducible
    assert len(found.limits) == 19 + 38
    assert len(asked) < 40


def test_what_is_infeasible_is_asked_once() -> None:
    scores = {(at, name, "3g"): 10.0 for at in "cd" for name in "abc"}
    given = fleet({at: [("3g", 3)] for at in "cd"}, dict.fromkeys("abc", 2), scores)
    wanted = RequiredReplicas("c", dict.fromkeys("abc", 1))
    times = iter([True])
    oracle = FeasibilityOracle(
        given, wanted, relaxable_limits(given, wanted), RESOLVE, lambda: next(times, False)
    )
    assert [oracle.feasible(()), oracle.feasible(())] == [False, False]


def test_what_one_more_assignment_lacks_is_known_where_all_others_just_fit() -> None:
    scores = {(at, name, "3g"): 10.0 for at in "cd" for name in "abc"}
    given = fleet({"c": [("3g", 2)], "d": [("3g", 3)]}, {"a": 2, "b": 3, "c": 2}, scores)
    wanted = RequiredReplicas("c", dict.fromkeys("abc", 1))
    named = relaxable_limits(given, wanted)
    oracle = FeasibilityOracle(given, wanted, named, spent, lambda: False)
    oracle.learn_from(
        Decision(
            (PolicyEnforcement("c", "3g"), PolicyEnforcement("d", "3g")),
            (Assignment("a", "c", "3g"), Assignment("b", "d", "3g")),
        )
    )
    capacities = [item for item in named if isinstance(item, SuppliedCapacity)]
    assert [oracle.lacking[id(item)] for item in capacities] == [2, 2]
    assert [oracle.feasible([item]) for item in capacities] == [True, True]
