"""Moves that change no value, back to where workloads run now.

Large problems take the first of equally good decisions. Of those that one move, or one exchange
of two equal clusters or of two workloads that take the same, makes of it, this takes those that
keep more where it is.
"""

from collections.abc import Callable

import numpy as np

from optimizer.domain.solution import Decision, PolicyEnforcement
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem
from optimizer.solve.blocks.linking_constraints import linked_tasks
from optimizer.solve.heuristics.cluster_exchange import exchange_equal_clusters, unchanged_count

_SAME = 1e-9


def reduce_moves(problem: Problem, decision: Decision, stop: Callable[[], bool]) -> Decision:
    """Return a decision of the same value in which no fewer places and policies stay."""
    if not any(task.current for task in problem.workloads):
        return decision
    best = decision
    for start in (decision, exchange_equal_clusters(problem, decision, stop)):
        board, changed = _MoveReduction(problem, start), True
        while changed and not stop():
            changed = board.improved(stop)
        found = board.decision(start.policies)
        best = found if unchanged_count(problem, found) > unchanged_count(problem, best) else best
    return best


class _MoveReduction:
    """Who runs on which slots, and what is left of them."""

    def __init__(self, problem: Problem, decision: Decision) -> None:
        self._problem = problem
        self._fixed = linked_tasks(problem)
        self._left = problem.base.copy()
        self._there = problem.base > 0
        for choice in decision.policies:
            for slot, amount in problem.policies[problem.policy_index[choice]].supplies:
                self._left[slot] += amount
                self._there[slot] = True
        self._slots: list[list[int]] = [[] for _ in problem.workloads]
        self._on: list[list[int]] = [[] for _ in problem.resources]
        for place in decision.assignments:
            pair = problem.indexes(place)
            if pair is not None:
                self._put(*pair)
        self._of_cluster: list[list[int]] = [[] for _ in problem.clusters]
        for number, cluster in enumerate(problem.resource_cluster.tolist()):
            self._of_cluster[cluster].append(number)

    def decision(self, choices: tuple[PolicyEnforcement, ...]) -> Decision:
        """Return what is decided, with the policies given."""
        pairs = ((task, slot) for task, own in enumerate(self._slots) for slot in sorted(own))
        return Decision(choices, tuple(self._problem.assignment(*pair) for pair in pairs))

    def improved(self, stop: Callable[[], bool]) -> bool:
        """Bring back every task that can be; tell whether any was."""
        found = False
        for task, wanted in enumerate(self._problem.workloads):
            if stop():
                break
            if task in self._fixed:
                continue
            for cluster in wanted.current:
                away = [slot for slot in self._slots[task] if self._cluster(slot) != cluster]
                if len(away) == len(self._slots[task]):
                    found = any(self._brought(task, slot, cluster) for slot in away) or found
        return found

    def _brought(self, task: int, slot: int, cluster: int) -> bool:
        """Bring a task from a slot to a cluster where it runs now, if that changes no value."""
        if self._cluster(slot) in self._problem.workloads[task].current:
            return False
        values = self._problem.values
        for target in self._of_cluster[cluster]:
            if not self._there[target] or np.isnan(values[task, target]):
                continue
            lost = float(values[task, slot] - values[task, target])
            if abs(lost) <= _SAME and self._fits(task, target):
                self._move(task, slot, target)
                return True
            for other in self._on[target]:
                if self._exchangeable(task, slot, other, target, lost):
                    self._move(task, slot, target)
                    self._move(other, target, slot)
                    return True
        return False

    def _fits(self, task: int, slot: int) -> bool:
        wanted = self._problem.workloads[task]
        cluster = self._cluster(slot)
        needs = [(slot, wanted.amount)]
        needs += [
            (self._problem.resource_index[ClusterResource(cluster, kind, NO_DEVICE)], much)
            for kind, much in wanted.extras
        ]
        return all(self._left[need] >= much - _SAME for need, much in needs)

    def _exchangeable(self, task: int, slot: int, other: int, target: int, lost: float) -> bool:
        """Tell whether another task that takes the same may have the slot for what it leaves."""
        problem = self._problem
        one, two = problem.workloads[task], problem.workloads[other]
        back = float(problem.values[other, slot] - problem.values[other, target])
        same = one.priority == two.priority and abs(back - lost) <= _SAME
        return (
            other not in self._fixed
            and (same or (abs(lost) <= _SAME and abs(back) <= _SAME))
            and (one.kind, one.amount, one.extras) == (two.kind, two.amount, two.extras)
            and self._cluster(target) not in two.current
            and all(self._cluster(own) != self._cluster(slot) for own in self._slots[other])
        )

    def _move(self, task: int, slot: int, target: int) -> None:
        self._put(task, slot, -1)
        self._put(task, target)

    def _put(self, task: int, slot: int, sign: int = 1) -> None:
        wanted = self._problem.workloads[task]
        self._left[slot] -= sign * wanted.amount
        for kind, much in wanted.extras:
            self._left[
                self._problem.resource_index[ClusterResource(self._cluster(slot), kind, NO_DEVICE)]
            ] -= sign * much
        for held, item in ((self._slots[task], slot), (self._on[slot], task)):
            if sign > 0:
                held.append(item)
            else:
                held.remove(item)

    def _cluster(self, slot: int) -> int:
        return self._problem.resources[slot].cluster
