"""The best decision of a small problem by enumeration, and legality by definition.

`best` checks every subset of the variables with the rows of all rules. `legal` does not use the
rows: it states each rule as a plain loop, so that both can be compared.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.parameters import NO_DEVICE, ClusterResource, Nodes, PodDemand, ProblemWorkload
from optimizer.model.problem import Problem
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


def _pods_find_nodes(problem: Problem, decision: Decision) -> bool:
    for cluster, name in enumerate(problem.clusters):
        enforced = [problem.policies[_policy(problem, i)] for i in decision.policies]
        under = [item.nodes for item in enforced if item.cluster == cluster]
        on = [
            problem.workloads[_workload(problem, i)]
            for i in decision.assignments
            if i.cluster == name
        ]
        for nodes in (problem.nodes.get(cluster), *under):
            if nodes is not None and not _find_nodes(nodes, cluster, on):
                return False
    return True


def _find_nodes(known: Nodes, cluster: int, workloads: list[ProblemWorkload]) -> bool:
    """Tell whether the loads of all other Pods are less than all nodes, node by node.

    Nodes have no labels and no taints here, and Pods are no DaemonSets.
    """
    nodes = [group for group in known.groups for _ in range(group.count)]
    free = [
        {
            r: much - group.taken.get(r, 0.0)
            for r, much in {"pods": inf, **group.allocatable}.items()
        }
        for group in nodes
    ]
    stay = {item.name for item in workloads if cluster in item.current}
    held = [{name: amounts for name, amounts in group.held if name in stay} for group in nodes]
    starting = list[tuple[str, PodDemand]]()
    for item in workloads:
        there = [amounts for node in held for name, amounts in node.items() if name == item.name]
        for pod in item.pods:
            left = pod.count
            if item.name in stay:
                asked = Counter[str]()
                for one in item.pods:
                    for r, much in one.requests:
                        asked[r] += one.count * much
                shares = [sum(a.get(r, 0.0) for a in there) / much for r, much in asked.items()]
                left = ceil((1 - min([1.0, *shares])) * pod.count - _SAME)
            starting += left * [(item.name, pod)]
    for at, (name, pod) in enumerate(starting):
        if name not in stay:
            others = [i for n, (_, i) in enumerate(starting) if n != at]
            if known.best_fit:
                others = [item for item in others if item.rank >= pod.rank]
            if not _finds_a_node(pod, others, free, held, best_fit=known.best_fit):
                return False
    return True


def _finds_a_node(
    pod: PodDemand,
    others: list[PodDemand],
    free: list[dict[str, float]],
    held: list[dict[str, Mapping[str, float]]],
    *,
    best_fit: bool,
) -> bool:
    def can(item: PodDemand, node: dict[str, float]) -> bool:
        return all(node.get(r, 0.0) >= much * (1 - _SAME) for r, much in item.requests)

    own = [at for at, node in enumerate(free) if can(pod, node)]
    quanta = dict(pod.quanta[best_fit])
    if len(own) == 1:
        node, here = free[own[0]], [item for item in (*others, pod) if can(item, free[own[0]])]
        return all(
            sum(dict(i.requests).get(r, 0.0) for i in here)
            + sum(amounts.get(r, 0.0) for amounts in held[own[0]].values())
            <= node.get(r, 0.0) + 1e-6
            for r, _ in pod.requests
        )
    blocks = {
        at: {
            r: (floor(free[at][r] / quanta[r] + _SAME) + 1) * quanta[r] - much
            for r, much in pod.requests
            if free[at][r] < inf
        }
        for at in own
    }
    fine = min(64.0, max(much / quanta[r] for r, much in pod.requests))
    weights = {
        at: fine * min([inf, *(cost / dict(pod.requests)[r] for r, cost in blocks[at].items())])
        for at in own
    }
    if inf in weights.values():
        return True

    def share(amounts: Mapping[str, float], at: int) -> float:
        parts = (
            ceil(amounts.get(r, 0.0) / quanta[r] - _SAME) * quanta[r] / cost
            for r, cost in blocks[at].items()
        )
        return weights[at] * min(1.0, max(parts))

    loads = sum(
        max((share(dict(item.requests), at) for at in own if can(item, free[at])), default=0.0)
        for item in others
    )
    loads += sum(share(amounts, at) for at in own for amounts in held[at].values())
    return bool(own) and loads <= sum(weights.values()) - 0.5 + 1e-6


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
    "node_fit": _pods_find_nodes,
}
"""By rule, what it means."""
