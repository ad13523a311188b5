"""The value of a decision in each tier, and bounds that no decision exceeds."""

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Decision
from optimizer.model.parameters import ProblemWorkload
from optimizer.model.problem import Problem


def objective(problem: Problem, decision: Decision) -> float:
    """Return the value of a decision: the sum over all tiers."""
    return float(sum(tier_values(problem, decision)))


def tier_values(problem: Problem, decision: Decision) -> tuple[float, ...]:
    """Return the value of a decision in each tier; the better of two is the larger tuple.

    Raises KeyError if the decision sets a variable that the problem lacks.
    """
    totals = [0.0] * max(1, len(problem.tiers))
    for assignment in decision.assignments:
        found = problem.indexes(assignment)
        if found is None:
            raise KeyError(assignment)
        totals[problem.workload_tier[found[0]]] += float(problem.values[found])
    totals[-1] += sum(
        problem.policies[problem.policy_index[item]].value for item in decision.policies
    )
    return tuple(totals)


def upper_bounds(problem: Problem) -> tuple[float, ...]:
    """Return a bound of each tier: the sum of the best positive values of each workload.

    A workload counts as many assignments as it has replicas.
    """
    totals = [0.0] * max(1, len(problem.tiers))
    of_workloads = zip(
        problem.workload_tier.tolist(), problem.workloads, problem.values, strict=True
    )
    for tier, workload, row in of_workloads:
        totals[tier] += _best(workload, row)
    return tuple(totals)


def upper_bound(problem: Problem) -> float:
    """Return a value that no decision exceeds."""
    return float(sum(upper_bounds(problem)))


def _best(workload: ProblemWorkload, row: Floats) -> float:
    usable = row[row > 0]  # NaN is not above 0
    if len(usable) > workload.replicas:
        usable = np.partition(usable, -workload.replicas)[-workload.replicas :]
    return float(usable.sum())
