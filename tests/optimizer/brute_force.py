"""The best decision of a small problem by enumeration, and legality by definition.

`best` checks every subset of the variables with the rows of all rules. `legal` does not use the
rows: it states each rule as a plain loop, so that both can be compared.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem
from optimizer.model.rules import RULES

MOST_VARIABLES = 18
_SAME = 1e-9


class Best(NamedTuple):
    """The best value by tier, and every decision that has it."""

    values: tuple[float, ...]
    decisions: tuple[Decision, ...]


def best(problem: Problem) -> Best:
    """Try every subset of the variables."""
    subsets = _subsets(len(problem.weights()))
    keep = np.ones(len(subsets), dtype=bool)
    for rule in RULES:
        for row in rule(problem):
            keep &= subsets[:, row.columns] @ row.coefficients <= row.limit + _SAME
    subsets = subsets[keep]
    values = []
    for tier in range(len(problem.tiers)):
        worth = subsets @ problem.weights(tier)
        values.append(float(worth.max()))
        subsets = subsets[worth >= worth.max() - _SAME]
    return Best(tuple(values), tuple(problem.decision(np.nonzero(row)[0]) for row in subsets))


def legal(problem: Problem, decision: Decision) -> bool:
    """Tell by the definition of each rule whether a decision is allowed."""
    return all(holds(problem, decision) for holds in dict.fromkeys(DEFINITIONS.values()))


def _subsets(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    if count > MOST_VARIABLES:
        raise ValueError(f"{count} variables are too many for brute force")
    numbers = np.arange(2**count)[:, np.newaxis]
    return ((numbers >> np.arange(count)) & 1).astype(np.float64)


def _policy(problem: Problem, choice: PolicyEnforcement) -> int:
    return problem.policy_index[choice]


def _workload(problem: Problem, assignment: Assignment) -> int:
    return problem.workload_index[assignment.workload]


def _one_policy_per_pool(problem: Problem, decision: Decision) -> bool:
    policies = [problem.policies[_policy(problem, choice)] for choice in decision.policies]
    return max(Counter((item.cluster, item.pool) for item in policies).values(), default=0) <= 1


def _once_per_cluster_and_not_too_often(problem: Problem, decision: Decision) -> bool:
    pairs = Counter(
        (assignment.workload, assignment.cluster) for assignment in decision.assignments
    )
    often = Counter(assignment.workload for assignment in decision.assignments)
    return max(pairs.values(), default=0) <= 1 and all(
        often[workload.name] <= workload.replicas for workload in problem.workloads
    )


def _everything_fits(problem: Problem, decision: Decision) -> bool:
    held = {
        resource: float(base)
        for resource, base in zip(problem.resources, problem.base, strict=True)
    }
    there = {resource for resource, base in held.items() if base > 0}
    for choice in decision.policies:
        for index, amount in problem.policies[_policy(problem, choice)].supplies:
            resource = problem.resources[index]
            held[resource] += amount
            there.add(resource)
    for assignment in decision.assignments:
        workload, cluster = (
            problem.workloads[_workload(problem, assignment)],
            problem.clusters.index(assignment.cluster),
        )
        resource = ClusterResource(cluster, workload.kind, assignment.device)
        if resource not in there:
            return False
        held[resource] -= workload.amount
        for kind, amount in workload.requests:
            held[ClusterResource(cluster, kind, NO_DEVICE)] -= amount
    return min(held.values(), default=0.0) >= -_SAME


def _company(problem: Problem, decision: Decision) -> bool:
    for assignment in decision.assignments:
        workload = problem.workloads[_workload(problem, assignment)]
        neighbours = {
            other.workload
            for other in decision.assignments
            if other.cluster == assignment.cluster and other.workload != assignment.workload
        }
        if neighbours & set(workload.workload_anti_affinity):
            return False
        if not all(neighbours & set(wanted) for wanted in workload.workload_affinity):
            return False
    return True


def _spread(problem: Problem, decision: Decision) -> bool:
    counts = Counter[tuple[str, int, str, str]]()
    for assignment in decision.assignments:
        for key, most, group in problem.workloads[_workload(problem, assignment)].spread:
            value = problem.labels[key][problem.clusters.index(assignment.cluster)]
            counts[key, most, group or f"alone {assignment.workload}", value] += 1
    return all(count <= most for (_, most, _, _), count in counts.items())


def _limits(problem: Problem, decision: Decision) -> bool:
    for limit in problem.limits:
        total = 0.0
        for assignment in decision.assignments:
            found = problem.indexes(assignment)
            assert found is not None
            workload, resource = found
            if limit.counted[resource]:
                total += float(limit.workloads[workload])
                total += (
                    0.0
                    if limit.assignments is None
                    else float(limit.assignments[workload, resource])
                )
        for choice in decision.policies:
            total += float(limit.policies[_policy(problem, choice)])
        if total > limit.most + _SAME:
            return False
    return True


DEFINITIONS: dict[str, Callable[[Problem, Decision], bool]] = {
    "one_policy_per_pool": _one_policy_per_pool,
    "once_per_cluster": _once_per_cluster_and_not_too_often,
    "replicas": _once_per_cluster_and_not_too_often,
    "capacity": _everything_fits,
    "supplied": _everything_fits,
    "workload_affinity": _company,
    "workload_anti_affinity": _company,
    "spread": _spread,
    "limits": _limits,
}
"""By rule, what it means."""
