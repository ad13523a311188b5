"""Decisions of higher priorities, fixed: what they leave is the problem of the next priority."""

from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Floats, Ints
from optimizer.domain.solution import Decision
from optimizer.model.decision_order import trimmed
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem
from optimizer.solve.blocks.linking_constraints import LinkingConstraints


@dataclass(frozen=True, slots=True)
class FixedPriorities:
    """Enforced policies and assignments, by number."""

    policies: tuple[int, ...]
    workloads: Ints
    resources: Ints

    def base(self, problem: Problem) -> Floats:
        """Return what is left of each resource, [resources]."""
        left = problem.base.copy()
        for policy in self.policies:
            for resource, amount in problem.policies[policy].supplies:
                left[resource] += amount
        for index, resource in zip(self.workloads.tolist(), self.resources.tolist(), strict=True):
            workload, cluster = problem.workloads[index], problem.resources[resource].cluster
            left[resource] -= workload.amount
            for kind, amount in workload.requests:
                left[problem.resource_index[ClusterResource(cluster, kind, NO_DEVICE)]] -= amount
        return left

    def pools(self, problem: Problem) -> frozenset[int]:
        """Return the policies of the pools that have one enforced."""
        own = {problem.policies[policy][:2] for policy in self.policies}
        return frozenset(
            number for number, policy in enumerate(problem.policies) if policy[:2] in own
        )

    def residual_limits(self, problem: Problem, linking: LinkingConstraints) -> LinkingConstraints:
        """Return the linking constraints with what is left of their limits."""
        taken = np.zeros(problem.values.shape, np.bool_)
        taken[self.workloads, self.resources] = True
        enforced = np.zeros(len(problem.policies), np.bool_)
        enforced[list(self.policies)] = True
        size = len(linking.limits)
        by_assignment = (
            linking.assignment_coefficients
            * taken[linking.assignment_workloads, linking.assignment_resources]
        )
        by_policy = linking.policy_coefficients * enforced[linking.policy_numbers]
        used = np.bincount(linking.assignment_rows, by_assignment, size)
        used += np.bincount(linking.policy_rows, by_policy, size)
        return replace(linking, limits=tuple((np.array(linking.limits) - used).tolist()))

    def decision(self, problem: Problem, more: Decision) -> Decision:
        """Return a decision about the rest, completed by what is fixed."""
        own = [problem.enforcement(policy) for policy in self.policies]
        policies = sorted({problem.policy_index[item] for item in (*own, *more.policies)})
        pairs = [
            pair
            for assignment in more.assignments
            if (pair := problem.indexes(assignment)) is not None
        ]
        pairs += zip(self.workloads.tolist(), self.resources.tolist(), strict=True)
        return Decision(
            tuple(problem.enforcement(policy) for policy in policies),
            tuple(problem.assignment(workload, resource) for workload, resource in sorted(pairs)),
        )


def fix_priorities(problem: Problem, decision: Decision, tier: int) -> FixedPriorities:
    """Fix what a decision has of tiers before `tier`, and of the workloads that they need."""
    names = {
        workload.name
        for workload, own in zip(problem.workloads, problem.workload_tier.tolist(), strict=True)
        if own < tier
    }
    while more := _wanted(problem, names) - names:
        names |= more
    assignments = tuple(
        assignment for assignment in decision.assignments if assignment.workload in names
    )
    kept = trimmed(problem, Decision(decision.policies, assignments))
    pairs = [
        pair for assignment in kept.assignments if (pair := problem.indexes(assignment)) is not None
    ]
    return FixedPriorities(
        tuple(problem.policy_index[choice] for choice in kept.policies),
        np.array([workload for workload, _ in pairs], np.int64),
        np.array([resource for _, resource in pairs], np.int64),
    )


def _wanted(problem: Problem, names: set[str]) -> set[str]:
    workloads = (problem.workloads[problem.workload_index[name]] for name in names)
    wanted = {
        name for workload in workloads for some in workload.workload_affinity for name in some
    }
    return wanted & problem.workload_index.keys()
