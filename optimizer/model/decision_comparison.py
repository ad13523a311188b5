"""Which of two decisions is better: tier by tier, highest priority first; then by tie-breaking.

Ties: more workloads placed wins; then more of what runs now; then the order of the request:
workloads listed first get clusters listed first, and policies listed first are preferred. A problem
that is too large for a second solve keeps what the solver finds first, which is deterministic;
`solve.move_reduction` then undoes moves that gain nothing.
"""

from collections.abc import Sequence

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Decision, PolicyEnforcement
from optimizer.model.objective import tier_values
from optimizer.model.problem import Problem
from optimizer.model.rules import violations

SAME_VALUE = 1e-6
"""Values of a tier that differ by at most this much are equal: sums of scores are rounded."""


def better(problem: Problem, one: Decision | None, other: Decision | None) -> Decision | None:
    """Return the better of two decisions, the first where equal; infeasible ones never win."""
    if other is None or other == one or violations(problem, other):
        return one
    if one is None or worth_more(tier_values(problem, other), tier_values(problem, one)):
        return other
    return one


def worth_more(values: Sequence[float], than: Sequence[float]) -> bool:
    """Tell whether the first tier with different values has the larger one."""
    for value, other in zip(values, than, strict=True):
        if abs(value - other) > SAME_VALUE:
            return value > other
    return False


def equal(problem: Problem, one: Decision, other: Decision) -> bool:
    """Tell whether another decision is feasible and has the same value in every tier."""
    if other == one:
        return True
    values = zip(tier_values(problem, one), tier_values(problem, other), strict=True)
    return not violations(problem, other) and all(abs(a - b) <= SAME_VALUE for a, b in values)


LARGEST_SAFE_COEFFICIENT = 1e6
"""Weights above it are too close to a solver's tolerances, relative to weights of 1."""


def tie_weights(problem: Problem) -> Floats | None:
    """Return the weight of each variable in a second solve over decisions of equal value.

    None where the weights would exceed LARGEST_SAFE_COEFFICIENT.
    """
    assignments, workloads, clusters = (
        problem.assignments,
        len(problem.workloads),
        len(problem.clusters),
    )
    order = (workloads - assignments.workload) * (clusters - assignments.cluster)
    ranks = _policy_ranks(problem)
    stays, enforced = _standing(problem)
    rest = 1.0 + workloads * float(order.max(initial=0)) + float(ranks.sum())
    kept = rest if stays.any() or enforced.any() else 0.0
    placed = rest + kept * float(stays.sum() + enforced.sum())
    if placed > LARGEST_SAFE_COEFFICIENT:
        return None
    return np.concatenate([kept * enforced - ranks, placed + kept * stays + order])


def trimmed(problem: Problem, decision: Decision) -> Decision:
    """Return the decision without policies whose supply no assignment uses."""
    pairs = problem.indexes_of(decision.assignments)
    used = {resource for pair in pairs for resource, _ in problem.demand_of(*pair)}

    def needed(choice: PolicyEnforcement) -> bool:
        supplies = problem.policies[problem.policy_index[choice]].supplies
        return any(resource in used for resource, _ in supplies)

    return Decision(tuple(filter(needed, decision.policies)), decision.assignments)


def _standing(problem: Problem) -> tuple[Floats, Floats]:
    """Return 1 for each candidate assignment, and for each policy, that is current; else 0."""
    pairs = zip(
        problem.assignments.workload.tolist(), problem.assignments.cluster.tolist(), strict=True
    )
    stays = np.fromiter(
        (cluster in problem.workloads[workload].current for workload, cluster in pairs), np.float64
    )
    enforced = np.array([policy.current for policy in problem.policies], np.float64)
    return stays, enforced


def _policy_ranks(problem: Problem) -> Floats:
    seen: dict[int, int] = {}
    ranks = np.zeros(len(problem.policies))
    for index, policy in enumerate(problem.policies):
        ranks[index] = seen.get(policy.cluster, 0)
        seen[policy.cluster] = int(ranks[index]) + 1
    return ranks
