"""The order of decisions that are worth the same."""

from dataclasses import replace
from itertools import chain, combinations, pairwise

import numpy as np
import pytest

from optimizer.domain.arrays import Floats
from optimizer.model.decision_comparison import LARGEST_SAFE_COEFFICIENT, tie_weights
from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from tests.optimizer.random_problems import random_problem


def of_size(workloads: int, clusters: int, policies: tuple[int, int]) -> Problem:
    """The first workload could run on the first two clusters, which have so many policies."""
    values = np.full((workloads, 2), np.nan)
    values[0] = 1.0
    return Problem(
        tuple(f"c{number}" for number in range(clusters)),
        (ClusterResource(0, "gpu", "d"), ClusterResource(1, "gpu", "d")),
        tuple(
            ProblemPolicy(at, "", f"p{number}", ((at, 1.0),))
            for at, count in enumerate(policies)
            for number in range(count)
        ),
        tuple(ProblemWorkload(f"w{number}", "w", "gpu", 1.0) for number in range(workloads)),
        values,
        np.zeros(2),
    )


def order_of(given: Problem, chosen: Floats) -> tuple[float, ...]:
    """More assignments, then more that is current, then what is listed first."""
    assignments = given.assignments
    pairs = list(zip(assignments.workload.tolist(), assignments.cluster.tolist(), strict=True))
    first = len(given.policies)
    stays = [given.policies[at].current for at in range(first)]
    stays += [cluster in given.workloads[workload].current for workload, cluster in pairs]
    ranks = [
        sum(other.cluster == policy.cluster for other in given.policies[:at])
        for at, policy in enumerate(given.policies)
    ]
    listed = [-rank for rank in ranks]
    listed += [
        (len(given.workloads) - workload) * (len(given.clusters) - cluster)
        for workload, cluster in pairs
    ]
    return float(chosen[first:].sum()), float(chosen @ stays), float(chosen @ listed)


@pytest.mark.parametrize("current", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_weights_order_decisions_by_what_is_placed_then_current_then_listed_first(
    seed: int, current: bool
) -> None:
    """Among decisions of which none assigns a workload twice."""
    given = random_problem(seed, most_variables=9)
    policies = tuple(
        policy._replace(current=current and at % 2 == 1) for at, policy in enumerate(given.policies)
    )
    workloads = tuple(
        replace(workload, current=(0,) if current else (), replicas=1)
        for workload in given.workloads
    )
    given = replace(given, policies=policies, workloads=workloads)
    weights = tie_weights(given)
    assert weights is not None
    first, owners = len(given.policies), given.assignments.workload.tolist()
    every = chain.from_iterable(
        combinations(range(len(weights)), count) for count in range(len(weights) + 1)
    )
    decisions = []
    for some in every:
        own = [owners[at - first] for at in some if at >= first]
        if len(own) == len(set(own)):
            chosen = np.zeros(len(weights))
            chosen[list(some)] = 1.0
            decisions.append((order_of(given, chosen), float(chosen @ weights)))
    decisions.sort()
    for (one, less), (other, more) in pairwise(decisions):
        assert (less < more) if one != other else (less == pytest.approx(more))


def test_there_are_no_weights_beyond_what_a_solver_tells_apart() -> None:
    """The weight of a workload is 1 + 333 * 333 * 9 + the sum of the policies' ranks, 1998."""
    largest = tie_weights(of_size(333, 9, (63, 10)))
    assert largest is not None
    assert largest[-2] == LARGEST_SAFE_COEFFICIENT + 333 * 9
    assert tie_weights(of_size(333, 9, (63, 11))) is None
