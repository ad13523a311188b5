"""Which of several equally good decisions is taken.

More workloads placed; then what runs now stays; then the order of the request: workloads listed
first take clusters listed first, and policies listed first are preferred. Problems too large for a
second solve take what the solver finds first, which is the same every time, and bring back what can
be at no loss (`engine.staying`).
"""

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem

LARGEST_SAFE_COEFFICIENT = 1e6


def tie_weights(problem: Problem) -> Floats | None:
    """Return what a second solve maximises among decisions of equal value, by variable.

    None where the weights would grow beyond what a solver tells apart safely.
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
    """Return the decision without the policies that supply nothing of what runs."""
    used = {
        resource
        for assignment in decision.assignments
        for resource in _resources(problem, assignment)
    }

    def needed(choice: PolicyEnforcement) -> bool:
        supplies = problem.policies[problem.policy_index[choice]].supplies
        return any(resource in used for resource, _ in supplies)

    return Decision(tuple(filter(needed, decision.policies)), decision.assignments)


def _resources(problem: Problem, assignment: Assignment) -> list[int]:
    cluster = problem.cluster_index[assignment.cluster]
    workload = problem.workloads[problem.workload_index[assignment.workload]]
    wanted = [ClusterResource(cluster, workload.kind, assignment.device)]
    wanted += [ClusterResource(cluster, kind, NO_DEVICE) for kind, _ in workload.extras]
    return [problem.resource_index[resource] for resource in wanted]


def _standing(problem: Problem) -> tuple[Floats, Floats]:
    """Return 1 for each assignment taken now and for each policy enforced now that an assignment.

    needs.
    """
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
