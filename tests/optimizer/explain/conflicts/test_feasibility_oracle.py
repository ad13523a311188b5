"""Remembered results about conflicts agree with the solver, and save most solves."""

import random
from itertools import islice

from optimizer.domain.solution import Solution
from optimizer.explain.conflicts.feasibility_oracle import FeasibilityOracle
from optimizer.explain.conflicts.relaxable_limits import relaxable_limits
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE, possible
from tests.optimizer.explain.test_unplaced_conflicts import explained, infeasible_cases


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
