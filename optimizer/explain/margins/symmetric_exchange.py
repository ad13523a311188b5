"""Decisions that are as good because equals change hands: two workloads, or two clusters.

What is equal in everything that a rule or the objective speaks of can be exchanged in any decision.
So nothing is lost without a place wherever an equal can stand in; that asks no solver.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.problem import Problem
from optimizer.model.symmetry import ClusterForm, classes, cluster_forms, workload_keys


class SymmetricExchange:
    """The workloads and clusters of a problem that can stand in for each other."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def without(self, decision: Decision, place: Assignment) -> Decision | None:
        """Return a decision that lacks a place and is as good; None where no exchange gives one."""
        for name in self._workloads_like(place.workload, decision):
            other = _renamed(decision.assignments, {place.workload: name, name: place.workload})
            if place not in other:
                return self._ordered(decision.policies, other)
        for cluster in self._clusters.get(place.cluster, ()):
            moved = self._moved(decision, place.cluster, cluster)
            if place not in moved.assignments:
                return moved
        return None

    def with_workload(self, decision: Decision, name: str) -> Decision | None:
        """Return a decision as good in which a workload runs instead of an equal, if one does."""
        running = {place.workload for place in decision.assignments}
        other = next((item for item in self._workloads.get(name, ()) if item in running), None)
        if other is None:
            return None
        return self._ordered(decision.policies, _renamed(decision.assignments, {other: name}))

    def are(self, one: str, other: str) -> bool:
        """Tell whether two workloads are equal."""
        return other in self._workloads.get(one, ())

    def _workloads_like(self, name: str, decision: Decision) -> Iterator[str]:
        """Yield the equals of a workload, first those that run."""
        running = {place.workload for place in decision.assignments}
        yield from sorted(self._workloads.get(name, ()), key=lambda other: other not in running)

    def _moved(self, decision: Decision, one: str, other: str) -> Decision:
        """Return a decision in which two clusters have changed roles."""
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
        self, choices: Iterable[PolicyEnforcement], places: Iterable[Assignment]
    ) -> Decision:
        """Return a decision in the problem's order."""
        problem = self._problem
        options = sorted(problem.policy_index[choice] for choice in choices)
        pairs = sorted(at for place in places if (at := problem.indexes(place)) is not None)
        return Decision(
            tuple(problem.enforcement(option) for option in options),
            tuple(problem.assignment(*pair) for pair in pairs),
        )

    @cached_property
    def _workloads(self) -> Mapping[str, tuple[str, ...]]:
        """By workload, its equals; what rules name has none."""
        names = [item.name for item in self._problem.workloads]
        keys = workload_keys(self._problem)
        return _others({names[number]: key for number, key in keys.items()})

    @cached_property
    def _clusters(self) -> Mapping[str, tuple[str, ...]]:
        """By cluster, its equals."""
        return _others({name: form.key for name, form in self._forms.items() if form.resources})

    @cached_property
    def _policies(self) -> Mapping[str, list[PolicyEnforcement]]:
        """By cluster, its policies in an order that is the same for equals."""
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


def _renamed(places: Iterable[Assignment], names: Mapping[str, str]) -> list[Assignment]:
    return [item._replace(workload=names.get(item.workload, item.workload)) for item in places]
