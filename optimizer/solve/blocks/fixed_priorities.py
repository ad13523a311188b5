"""Decisions of higher priorities, fixed: what they leave is the problem of the next priority."""

from dataclasses import replace

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.allocation import Allocation
from optimizer.model.decision_comparison import trimmed
from optimizer.model.problem import Problem
from optimizer.solve.blocks.block_problem import LinkingRows


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


def residual_limits(fixed: Allocation, linking: LinkingRows) -> LinkingRows:
    """Return the linking constraints with what is left of their limits."""
    assigned, enforced = np.zeros(fixed.problem.values.shape), np.zeros(len(fixed.problem.policies))
    assigned[tuple(np.array(fixed.pairs, np.int64).reshape(-1, 2).T)] = 1.0
    enforced[list(fixed.policies)] = 1.0
    return replace(linking, limits=linking.limits - linking.used(assigned, enforced))


def _wanted(problem: Problem, names: set[str]) -> set[str]:
    workloads = (problem.workloads[problem.workload_index[name]] for name in names)
    wanted = {
        name for workload in workloads for some in workload.workload_affinity for name in some
    }
    return wanted & problem.workload_index.keys()
