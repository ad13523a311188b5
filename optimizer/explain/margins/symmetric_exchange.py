"""Decisions that are as good because equals change hands: two workloads, or two clusters.

What is equal in everything that a rule or the objective speaks of can be exchanged in any decision.
So nothing is lost without a place wherever an equal can stand in; that asks no solver.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.problem import Problem


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
        problem = self._problem
        named = {name for task in problem.workloads for some in task.near for name in some}
        named |= {name for task in problem.workloads for name in task.apart}
        return _equals(
            {
                task.name: (
                    *(task.kind, task.amount, task.extras, task.replicas, task.priority),
                    *(task.spread, task.current, task.move_cost),
                    _digest(problem.values, index),
                    *(float(item.workloads[index]) for item in problem.limits),
                    *(_digest(item.assignments, index) for item in problem.limits),
                )
                for index, task in enumerate(problem.workloads)
                if not (task.near or task.apart or task.name in named)
            }
        )

    @cached_property
    def _clusters(self) -> Mapping[str, tuple[str, ...]]:
        """By cluster, its equals."""
        slots, problem = self._slots, self._problem
        return _equals(
            {
                name: (
                    tuple(key for key, _ in slots[name]),
                    tuple(key for key, _ in self._options[name]),
                    tuple(values[number] for values in problem.labels.values()),
                )
                for number, name in enumerate(problem.clusters)
                if slots[name]
            }
        )

    @cached_property
    def _policies(self) -> Mapping[str, list[PolicyEnforcement]]:
        """By cluster, its policies in an order that is the same for equals."""
        return {
            name: [self._problem.enforcement(option) for _, option in own]
            for name, own in self._options.items()
        }

    @cached_property
    def _slots(self) -> Mapping[str, list[tuple[Hashable, int]]]:
        """By cluster, what rules and the objective know of its slots, and their numbers."""
        problem = self._problem
        found: dict[str, list[tuple[Hashable, int]]] = {name: [] for name in problem.clusters}
        for number, slot in enumerate(problem.resources):
            key = (
                *(slot.kind, slot.device, float(problem.base[number])),
                _digest(problem.values, (slice(None), number)),
                *(bool(item.counted[number]) for item in problem.limits),
                *(_digest(item.assignments, (slice(None), number)) for item in problem.limits),
            )
            found[problem.clusters[slot.cluster]].append((key, number))
        return {name: sorted(own, key=repr) for name, own in found.items()}

    @cached_property
    def _options(self) -> Mapping[str, list[tuple[Hashable, int]]]:
        """By cluster, what rules and the objective know of its policies, and their numbers."""
        problem = self._problem
        found: dict[str, list[tuple[Hashable, int]]] = {name: [] for name in problem.clusters}
        for number, option in enumerate(problem.policies):
            supplies = sorted(
                (*problem.resources[slot][1:], amount) for slot, amount in option.supplies
            )
            used = tuple(float(item.policies[number]) for item in problem.limits)
            key = option.pool, tuple(supplies), option.current, option.value, used
            found[problem.clusters[option.cluster]].append((key, number))
        return {name: sorted(own, key=repr) for name, own in found.items()}


def _equals(keys: Mapping[str, Hashable]) -> Mapping[str, tuple[str, ...]]:
    """Return, of names whose keys are equal, those that each can be exchanged for."""
    together: dict[Hashable, list[str]] = {}
    for name, key in keys.items():
        together.setdefault(key, []).append(name)
    return {
        name: tuple(other for other in own if other != name)
        for own in together.values()
        if len(own) > 1
        for name in own
    }


def _renamed(places: Iterable[Assignment], names: Mapping[str, str]) -> list[Assignment]:
    return [item._replace(workload=names.get(item.workload, item.workload)) for item in places]


def _digest(values: Floats | None, at: int | tuple[slice, int]) -> bytes:
    return b"" if values is None else blake2b(values[at].tobytes(), digest_size=16).digest()
