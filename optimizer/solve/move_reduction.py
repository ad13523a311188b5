"""Reduces moves: reassigns workloads to where they run now, at equal value.

Large problems return the first of equally good decisions. This improves it by one move, one
exchange of two equal clusters, or one exchange of two workloads with equal demand at a time.
"""

from collections.abc import Callable
from itertools import chain, combinations

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.allocation import EXACT, Allocation
from optimizer.model.decision_comparison import equal
from optimizer.model.problem import Problem
from optimizer.model.symmetry import ClusterForm, classes, supply_forms
from optimizer.solve.blocks.linking_constraints import linked_workloads


def reduce_moves(problem: Problem, decision: Decision, stop: Callable[[], bool]) -> Decision:
    """Return a decision of equal value in which no fewer assignments and policies are current."""
    made = len(decision.assignments) + len(decision.policies)
    runs = any(workload.current for workload in problem.workloads)
    if not runs or unchanged_count(problem, decision) == made:
        return decision
    best = decision
    for start in (decision, exchange_equal_clusters(problem, decision, stop)):
        board, changed = _MoveReduction(problem, start), True
        while changed and not stop():
            changed = board.improved(stop)
        found = board.decision()
        stays = unchanged_count(problem, found) > unchanged_count(problem, best)
        best = found if stays and equal(problem, decision, found) else best
    return best


class _MoveReduction:
    """A decision under local search: who runs on which resources, and what is left of them."""

    def __init__(self, problem: Problem, decision: Decision) -> None:
        self._problem = problem
        self._fixed = linked_workloads(problem)
        self._allocation = Allocation(problem, decision)

    def decision(self) -> Decision:
        """Return the decision."""
        return self._allocation.decision()

    def improved(self, stop: Callable[[], bool]) -> bool:
        """Bring back every workload that can be brought back; tell whether any was."""
        found = False
        for workload, wanted in enumerate(self._problem.workloads):
            if stop():
                break
            if workload in self._fixed:
                continue
            for cluster in wanted.current:
                away = [
                    resource
                    for resource in self._allocation.resources_of[workload]
                    if self._cluster(resource) != cluster
                ]
                if len(away) == len(self._allocation.resources_of[workload]):
                    found = (
                        any(self._brought(workload, resource, cluster) for resource in away)
                        or found
                    )
        return found

    def _brought(self, workload: int, resource: int, cluster: int) -> bool:
        """Bring a workload to a cluster where it runs now, if that changes no value."""
        if self._cluster(resource) in self._problem.workloads[workload].current:
            return False
        values = self._problem.values
        for target in self._problem.resources_on[cluster]:
            if np.isnan(values[workload, target]):
                continue
            lost = float(values[workload, resource] - values[workload, target])
            if abs(lost) <= EXACT and self._allocation.has_capacity(workload, target):
                self._move(workload, resource, target)
                return True
            for other in self._allocation.workloads_on[target]:
                if self._exchangeable(workload, resource, other, target, lost):
                    self._move(workload, resource, target)
                    self._move(other, target, resource)
                    return True
        return False

    def _exchangeable(
        self, workload: int, resource: int, other: int, target: int, lost: float
    ) -> bool:
        """Tell whether another workload of equal demand may take the resource that is left."""
        problem = self._problem
        one, two = problem.workloads[workload], problem.workloads[other]
        back = float(problem.values[other, resource] - problem.values[other, target])
        same = one.priority == two.priority and abs(back - lost) <= EXACT
        return (
            other not in self._fixed
            and (same or (abs(lost) <= EXACT and abs(back) <= EXACT))
            and (one.kind, one.amount, one.requests) == (two.kind, two.amount, two.requests)
            and self._cluster(target) not in two.current
            and all(
                self._cluster(own) != self._cluster(resource)
                for own in self._allocation.resources_of[other]
            )
        )

    def _move(self, workload: int, resource: int, target: int) -> None:
        self._allocation.unassign(workload, resource)
        self._allocation.assign(workload, target)

    def _cluster(self, resource: int) -> int:
        return self._problem.resources[resource].cluster


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
    moved = [
        _unmoved_count(problem, pairs, cluster) < len(pairs)
        or not all(problem.policies[policy].current for policy in policies[cluster])
        for cluster, pairs in enumerate(assignments)
    ]
    for own in classes({cluster: form.key for cluster, form in enumerate(forms)}):
        for one, two in combinations(own, 2):
            if stop():
                break
            if moved[one] or moved[two]:
                done = _exchange(problem, (one, two), forms, policies, assignments, fixed)
                moved[one], moved[two] = moved[one] or done, moved[two] or done
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
) -> bool:
    """Exchange two clusters if more stays, policies first, and no value changes; tell whether."""
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
        return False
    over = _corresponding(forms[one].resources, forms[two].resources)
    values = problem.values
    for workload, resource in assignments[one] + assignments[two]:
        if workload in fixed or values[workload, resource] != values[workload, over[resource]]:
            return False
    workloads = (
        [workload for workload, _ in assignments[one]],
        [workload for workload, _ in assignments[two]],
    )
    if np.intersect1d(*workloads).size:
        return False
    assignments[one], assignments[two] = (
        [(workload, over[resource]) for workload, resource in assignments[two]],
        [(workload, over[resource]) for workload, resource in assignments[one]],
    )
    policies[one], policies[two] = (
        [across[policy] for policy in policies[two]],
        [across[policy] for policy in policies[one]],
    )
    return True


def _unmoved_count(problem: Problem, assignments: list[tuple[int, int]], cluster: int) -> int:
    return sum(cluster in problem.workloads[workload].current for workload, _ in assignments)


def _corresponding(one: tuple[int, ...], two: tuple[int, ...]) -> dict[int, int]:
    """Return what each item of two clusters is on the other one."""
    return dict(zip(one + two, two + one, strict=True))
