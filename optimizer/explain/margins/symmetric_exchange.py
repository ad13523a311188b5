"""Decisions of equal value, made by swapping two interchangeable workloads or clusters.

Swapping two that are equal in everything that a rule or the objective reads keeps every rule and
the objective (exchange argument; keys in `model.symmetry`). So an assignment that such a swap
removes has the margin 0, which needs no solver.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.problem import Problem
from optimizer.model.symmetry import ClusterForm, classes, cluster_forms, workload_keys


class SymmetricExchange:
    """Swaps the interchangeable workloads and clusters of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def without(self, decision: Decision, assignment: Assignment) -> Decision | None:
        """Return a decision of equal value without an assignment; None where no swap gives one."""
        for name in self._workloads_like(assignment.workload, decision):
            other = _renamed(
                decision.assignments, {assignment.workload: name, name: assignment.workload}
            )
            if assignment not in other:
                return self._ordered(decision.policies, other)
        for cluster in self._clusters.get(assignment.cluster, ()):
            moved = self._moved(decision, assignment.cluster, cluster)
            if assignment not in moved.assignments:
                return moved
        return None

    def with_workload(self, decision: Decision, name: str) -> Decision | None:
        """Return a decision of equal value in which a workload runs in place of an equal one."""
        running = {assignment.workload for assignment in decision.assignments}
        other = next((item for item in self._workloads.get(name, ()) if item in running), None)
        if other is None:
            return None
        return self._ordered(decision.policies, _renamed(decision.assignments, {other: name}))

    def interchangeable(self, one: str, other: str) -> bool:
        """Tell whether two workloads can be swapped in any decision."""
        return other in self._workloads.get(one, ())

    def _workloads_like(self, name: str, decision: Decision) -> Iterator[str]:
        """Yield the workloads that one can be swapped with, first those that run."""
        running = {assignment.workload for assignment in decision.assignments}
        yield from sorted(self._workloads.get(name, ()), key=lambda other: other not in running)

    def _moved(self, decision: Decision, one: str, other: str) -> Decision:
        """Return a decision in which two clusters are swapped."""
        clusters = {one: other, other: one}
        pairs = list(zip(self._policies[one], self._policies[other], strict=True))
        policies = dict(pairs) | {new: old for old, new in pairs}
        return self._ordered(
            [policies.get(item, item) for item in decision.policies],
            [
                item._replace(cluster=clusters.get(item.cluster, item.cluster))
                for item in decision.assignments
            ],
        )

    def _ordered(
        self, policies: Iterable[PolicyEnforcement], assignments: Iterable[Assignment]
    ) -> Decision:
        """Return a decision in the problem's order."""
        problem = self._problem
        numbers = sorted(problem.policy_index[item] for item in policies)
        pairs = sorted(problem.indexes_of(assignments))
        return Decision(
            tuple(map(problem.enforcement, numbers)),
            tuple(problem.assignment(*pair) for pair in pairs),
        )

    @cached_property
    def _workloads(self) -> Mapping[str, tuple[str, ...]]:
        """By workload, those that it can be swapped with; what affinity rules name has none."""
        names = [item.name for item in self._problem.workloads]
        keys = workload_keys(self._problem)
        return _others({names[number]: key for number, key in keys.items()})

    @cached_property
    def _clusters(self) -> Mapping[str, tuple[str, ...]]:
        """By cluster, those that it can be swapped with."""
        return _others({name: form.key for name, form in self._forms.items() if form.resources})

    @cached_property
    def _policies(self) -> Mapping[str, list[PolicyEnforcement]]:
        """By cluster, its policies in an order that interchangeable clusters share."""
        return {
            name: list(map(self._problem.enforcement, form.policies))
            for name, form in self._forms.items()
        }

    @cached_property
    def _forms(self) -> Mapping[str, ClusterForm]:
        return dict(zip(self._problem.clusters, cluster_forms(self._problem), strict=True))


def _others(keys: Mapping[str, Hashable]) -> Mapping[str, tuple[str, ...]]:
    """Return for each name those with an equal key, where there are some."""
    return {
        name: tuple(other for other in own if other != name)
        for own in classes(keys)
        for name in own
    }


def _renamed(assignments: Iterable[Assignment], names: Mapping[str, str]) -> list[Assignment]:
    return [item._replace(workload=names.get(item.workload, item.workload)) for item in assignments]
