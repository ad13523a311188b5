"""Two equal clusters exchange all that they have, so that more stays as it is now."""

from dataclasses import replace

import numpy as np
import pytest

from optimizer.domain.solution import Decision
from optimizer.model.problem import ClusterResource, Problem, ProblemPolicy, ProblemWorkload
from optimizer.solve.move_reduction import exchange_equal_clusters, unchanged_count

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
