"""The rows of a problem that link sites: all rules that the blocks do not contain.

A rule that is added to `optimizer.model.rules` becomes linking rows without further work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from optimizer.domain.arrays import Bools, grouped
from optimizer.domain.solution import Decision
from optimizer.model import rules
from optimizer.model.allocation import Allocation
from optimizer.model.decision_comparison import SAME_VALUE, trimmed
from optimizer.model.problem import Problem
from optimizer.model.rules import Row
from optimizer.solve.blocks.block_problem import LinkingRows


def serving_assignments(linking: LinkingRows, shape: tuple[int, ...]) -> Bools:
    """Return the assignments that help to satisfy a row: they may pay with a value below 0."""
    found = np.zeros(shape, np.bool_)
    helps = linking.assignment_coefficients < 0
    found[linking.assignment_workloads[helps], linking.assignment_resources[helps]] = True
    return found


def linking_constraints(problem: Problem, inexact: frozenset[str]) -> LinkingRows:
    """Return the rows of all rules that the blocks do not contain, and of those that they relax.

    Each row is scaled to a largest coefficient of 1; its choices are policies.
    `inexact`: kinds whose amounts the blocks round.
    """
    rows = rules.linking_rows(problem)
    rows += _capacity_rows(problem, inexact)
    rows += _once_per_cluster_rows(problem)
    return _entries(problem, rows)


def with_priority_floors(
    problem: Problem, linking: LinkingRows, values: Sequence[float]
) -> LinkingRows:
    """Return the constraints with one more row per value: tier i keeps at least `values[i]`."""
    tiers = problem.workload_tier[problem.assignments.workload]
    for tier, value in enumerate(values):
        own = np.flatnonzero(tiers == tier)
        found = problem.assignments.value[own]
        scale = float(np.abs(found).max(initial=0.0)) or 1.0
        linking = linking.with_row(
            f"priority {problem.tiers[tier]} keeps its value",
            (SAME_VALUE - value) / scale,
            problem.assignments.workload[own],
            problem.assignments.resource[own],
            -found / scale,
        )
    return linking


def linked_workloads(problem: Problem) -> frozenset[int]:
    """Return the workloads with an entry in a rule that the blocks do not contain."""
    found = (row.columns - len(problem.policies) for row in rules.linking_rows(problem))
    columns = np.concatenate([np.zeros(0, np.int64), *found])
    return frozenset(problem.assignments.workload[columns[columns >= 0]].tolist())


def _capacity_rows(problem: Problem, inexact: frozenset[str]) -> Iterator[Row]:
    """Yield the capacities that extra kinds of requests or rounded amounts take from."""
    taken = {kind for workload in problem.workloads for kind, _ in workload.requests} | inexact
    if not taken:
        return
    resources = (resource for resource, _ in grouped(problem.demand.resource))
    for resource, row in zip(resources, rules.capacity(problem), strict=True):
        if problem.resources[resource].kind in taken:
            yield row


def _once_per_cluster_rows(problem: Problem) -> Iterator[Row]:
    """Yield the rows that keep replicas apart where a cluster has several resources for them.

    Where each mode supplies one of these resources, the knapsack keeps them apart already.
    """
    if not any(workload.replicas > 1 for workload in problem.workloads):
        return
    exclusive = _exclusive_resources(problem)
    first = len(problem.policies)
    for row in rules.once_per_cluster(problem):
        resources = problem.assignments.resource[row.columns - first].tolist()
        pools = {exclusive.get(resource) for resource in resources}
        if len(pools) > 1 or None in pools:
            yield row


def _exclusive_resources(problem: Problem) -> dict[int, tuple[int, str]]:
    """Return the cluster and pool of resources that no other policy and nothing else supplies.

    Of the resources of one pool, at most one exists in every decision.
    """
    pools: dict[int, set[tuple[int, str]]] = {}
    shared = set(np.flatnonzero(problem.base > 0).tolist())
    for policy in problem.policies:
        supplied = {resource for resource, _ in policy.supplies}
        shared |= supplied if len(supplied) > 1 else set()
        for resource in supplied:
            pools.setdefault(resource, set()).add((policy.cluster, policy.pool))
    return {
        resource: next(iter(own))
        for resource, own in pools.items()
        if len(own) == 1 and resource not in shared
    }


def _entries(problem: Problem, rows: list[Row]) -> LinkingRows:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    number = np.repeat(np.arange(len(rows)), [len(row.columns) for row in rows])
    columns = np.concatenate([none, *(row.columns for row in rows)])
    coefficients = np.concatenate([nothing, *(row.coefficients for row in rows)])
    # Subgradient steps suit all rows alike if their largest coefficients are equal.
    scale = np.array([float(np.abs(row.coefficients).max(initial=0.0)) or 1.0 for row in rows])
    coefficients = coefficients / scale[number]
    first = len(problem.policies)
    of_policies = columns < first
    assignments = columns[~of_policies] - first
    some = bool(len(assignments))
    return LinkingRows(
        np.array([row.limit for row in rows], np.float64) / scale,
        number[~of_policies],
        problem.assignments.workload[assignments] if some else none,
        problem.assignments.resource[assignments] if some else none,
        coefficients[~of_policies],
        number[of_policies],
        columns[of_policies],
        coefficients[of_policies],
        tuple(row.says for row in rows),
    )


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
