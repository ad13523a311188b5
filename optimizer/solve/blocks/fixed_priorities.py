"""Decisions of higher priorities, fixed: what they leave is the problem of the next priority."""

from dataclasses import replace

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.allocation import Allocation
from optimizer.model.decision_comparison import trimmed
from optimizer.model.problem import Problem
from optimizer.solve.blocks.linking_constraints import LinkingConstraints


def fix_priorities(problem: Problem, decision: Decision, tier: int) -> Allocation:
    """Fix what a decision has of tiers before `tier`, and of workloads that those need near."""
    tiers = zip(problem.workloads, problem.workload_tier.tolist(), strict=True)
    names = {workload.name for workload, own in tiers if own < tier}
    while more := _wanted(problem, names) - names:
        names |= more
    kept = tuple(item for item in decision.assignments if item.workload in names)
    return Allocation(problem, trimmed(problem, Decision(decision.policies, kept)))


def policies_of_fixed_pools(fixed: Allocation) -> frozenset[int]:
    """Return the policies of the pools that have one enforced."""
    pools = (members for members in fixed.problem.pools.values() if fixed.policies & {*members})
    return frozenset(number for members in pools for number in members)


def residual_limits(fixed: Allocation, linking: LinkingConstraints) -> LinkingConstraints:
    """Return the linking constraints with what is left of their limits."""
    taken = np.zeros(fixed.problem.values.shape, np.bool_)
    taken[tuple(np.array(fixed.pairs, np.int64).reshape(-1, 2).T)] = True
    enforced = np.isin(linking.policy_numbers, list(fixed.policies))
    assigned = taken[linking.assignment_workloads, linking.assignment_resources]
    size = len(linking.limits)
    used = np.bincount(linking.assignment_rows, linking.assignment_coefficients * assigned, size)
    used += np.bincount(linking.policy_rows, linking.policy_coefficients * enforced, size)
    return replace(linking, limits=tuple((np.array(linking.limits) - used).tolist()))


def _wanted(problem: Problem, names: set[str]) -> set[str]:
    workloads = (problem.workloads[problem.workload_index[name]] for name in names)
    wanted = {
        name for workload in workloads for some in workload.workload_affinity for name in some
    }
    return wanted & problem.workload_index.keys()
