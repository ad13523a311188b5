"""The subproblems of the dual of resources and limits."""

import numpy as np

from optimizer.candidates.lagrangian_bound import DemandSubproblem
from optimizer.model.problem import ClusterResource, Problem, ProblemWorkload


def test_the_most_that_is_taken_of_a_resource_may_be_less_than_1() -> None:
    given = Problem(
        ("c",),
        tuple(ClusterResource(0, "gpu", device) for device in "abd"),
        (),
        tuple(ProblemWorkload(f"w{amount}", "w", "gpu", amount) for amount in (0.25, 0.5, 3.0)),
        np.array([[1.0, 1.0, np.nan], [1.0, np.nan, np.nan], [np.nan, 1.0, np.nan]]),
        np.ones(3),
    )
    found = DemandSubproblem(given, given.assignments.value)
    assert found.largest().tolist() == [0.5, 3.0, 1.0]
