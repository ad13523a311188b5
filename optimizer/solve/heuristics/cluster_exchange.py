"""Exchanges the policies and workloads of two equal clusters, so that more stays as it is now."""

from collections.abc import Callable
from itertools import chain, combinations

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem
from optimizer.model.symmetry import ClusterForm, classes, supply_forms
from optimizer.solve.blocks.linking_constraints import linked_workloads


def exchange_equal_clusters(
    problem: Problem, decision: Decision, stop: Callable[[], bool]
) -> Decision:
    """Return a decision of equal value in which no fewer current policies stay."""
    policies: list[list[int]] = [[] for _ in problem.clusters]
    assignments: list[list[tuple[int, int]]] = [[] for _ in problem.clusters]
    enforced, pairs = problem.numbered(decision)
    for policy in enforced:
        policies[problem.policies[policy].cluster].append(policy)
    for pair in pairs:
        assignments[problem.resources[pair[1]].cluster].append(pair)
    fixed, forms = linked_workloads(problem), supply_forms(problem)
    for own in classes({cluster: form.key for cluster, form in enumerate(forms)}):
        for one, two in combinations(own, 2):
            if stop():
                break
            _exchange(problem, (one, two), forms, policies, assignments, fixed)
    return problem.named(chain.from_iterable(policies), chain.from_iterable(assignments))


def unchanged_count(problem: Problem, decision: Decision) -> int:
    """Return how many assignments and policies are current."""
    stay = sum(
        problem.cluster_index[assignment.cluster]
        in problem.workloads[problem.workload_index[assignment.workload]].current
        for assignment in decision.assignments
    )
    policies = (problem.policies[problem.policy_index[choice]] for choice in decision.policies)
    return stay + sum(policy.current for policy in policies)


def _exchange(
    problem: Problem,
    pair: tuple[int, int],
    forms: list[ClusterForm],
    policies: list[list[int]],
    assignments: list[list[tuple[int, int]]],
    fixed: frozenset[int],
) -> None:
    """Exchange two clusters if more stays, policies first, and no value changes."""
    one, two = pair
    across = _corresponding(forms[one].policies, forms[two].policies)
    had, here, there = policies[one] + policies[two], assignments[one], assignments[two]
    before = (
        sum(problem.policies[policy].current for policy in had),
        _unmoved_count(problem, here, one) + _unmoved_count(problem, there, two),
    )
    after = (
        sum(problem.policies[across[policy]].current for policy in had),
        _unmoved_count(problem, here, two) + _unmoved_count(problem, there, one),
    )
    if after <= before:
        return
    over = _corresponding(forms[one].resources, forms[two].resources)
    values = problem.values
    for workload, resource in assignments[one] + assignments[two]:
        if workload in fixed or values[workload, resource] != values[workload, over[resource]]:
            return
    workloads = (
        [workload for workload, _ in assignments[one]],
        [workload for workload, _ in assignments[two]],
    )
    if np.intersect1d(*workloads).size:
        return
    assignments[one], assignments[two] = (
        [(workload, over[resource]) for workload, resource in assignments[two]],
        [(workload, over[resource]) for workload, resource in assignments[one]],
    )
    policies[one], policies[two] = (
        [across[policy] for policy in policies[two]],
        [across[policy] for policy in policies[one]],
    )


def _unmoved_count(problem: Problem, assignments: list[tuple[int, int]], cluster: int) -> int:
    return sum(cluster in problem.workloads[workload].current for workload, _ in assignments)


def _corresponding(one: tuple[int, ...], two: tuple[int, ...]) -> dict[int, int]:
    """Return what each item of two clusters is on the other one."""
    return dict(zip(one + two, two + one, strict=True))
