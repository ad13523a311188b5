import pickle
from dataclasses import replace

import numpy as np
import pytest

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.formulate import formulate
from optimizer.model.objective import objective, upper_bound
from optimizer.model.parameters import ClusterResource, Limit, ProblemWorkload
from optimizer.model.problem import Problem
from tests.optimizer.build import fleet


def test_only_what_could_be_used_becomes_a_variable() -> None:
    problem = formulate(
        fleet(
            {"c": [("small", 1), ("large", 2), ("unscored", 9)]},
            {"w": 2, "huge": 99},
            {("c", "w", "small"): 5, ("c", "w", "large"): 6, ("c", "huge", "large"): 7},
        )
    )
    assert problem.variables == (PolicyEnforcement("c", "large"), Assignment("w", "c", "large"))
    assert [workload.name for workload in problem.workloads] == ["w"]


def test_the_value_of_a_decision_is_the_sum_of_its_scores() -> None:
    problem = formulate(
        fleet({"c": [("d", 2)]}, {"v": 1, "w": 1}, {("c", "v", "d"): 3, ("c", "w", "d"): -1})
    )
    both = Decision(
        (PolicyEnforcement("c", "d"),), (Assignment("v", "c", "d"), Assignment("w", "c", "d"))
    )
    assert objective(problem, both) == 2
    assert upper_bound(problem) == 3


@pytest.mark.parametrize("weight", [1.0, 0.1, 1e6])
def test_a_problem_arrives_elsewhere_as_it_is_and_took_little_room(weight: float) -> None:
    values = np.array([[1.0, np.nan, -100.0], [np.nan, 0.0, 7.0]]) * weight
    resources = tuple(ClusterResource(0, "gpu", device) for device in "abc")
    workloads = tuple(ProblemWorkload(name, name, "gpu", 1.0) for name in "vw")
    limit = Limit("one", 9.0, np.ones(3, np.bool_), np.zeros(2), np.zeros(0), values * 0 + 3)
    limits = (limit, replace(limit, name="two"))
    given = Problem(("c",), resources, (), workloads, values, np.zeros(3), limits=limits)
    assert given.__getstate__()["values"].itemsize == {1.0: 2, 0.1: 8, 1e6: 4}[weight]
    arrived = pickle.loads(pickle.dumps(given))  # noqa: S301 - our own
    assert arrived.values.dtype == np.float64
    assert np.array_equal(arrived.values, values, equal_nan=True)
    assert arrived.resources == resources
    first, second = arrived.limits
    assert np.array_equal(first.assignments, limit.assignments, equal_nan=True)
    assert first.assignments is second.assignments
