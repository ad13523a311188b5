"""Exchanging all that two equal clusters have, policies and workloads, so that more stays."""

from collections.abc import Callable, Hashable
from itertools import combinations

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem
from optimizer.solve.blocks.linking_constraints import linked_tasks


def exchange_equal_clusters(
    problem: Problem, decision: Decision, stop: Callable[[], bool]
) -> Decision:
    """Return a decision of the same value in which no fewer of the policies of now stay."""
    options: list[list[int]] = [[] for _ in problem.clusters]
    places: list[list[tuple[int, int]]] = [[] for _ in problem.clusters]
    for choice in decision.policies:
        options[problem.cluster_index[choice.cluster]].append(problem.policy_index[choice])
    for place in decision.assignments:
        pair = problem.indexes(place)
        if pair is not None:
            places[problem.cluster_index[place.cluster]].append(pair)
    fixed, members = linked_tasks(problem), _members_of_clusters(problem)
    for own in _equal_clusters(problem, *members):
        for one, two in combinations(own, 2):
            if stop():
                break
            _exchange(problem, (one, two), members, options, places, fixed)
    pairs = sorted(pair for own in places for pair in own)
    chosen = sorted(option for own in options for option in own)
    return Decision(
        tuple(problem.enforcement(option) for option in chosen),
        tuple(problem.assignment(*pair) for pair in pairs),
    )


def unchanged_count(problem: Problem, decision: Decision) -> int:
    """Return how many places and policies are those of now."""
    stay = sum(
        problem.cluster_index[place.cluster]
        in problem.workloads[problem.workload_index[place.workload]].current
        for place in decision.assignments
    )
    options = (problem.policies[problem.policy_index[choice]] for choice in decision.policies)
    return stay + sum(option.current for option in options)


def _equal_clusters(
    problem: Problem, slots: list[list[int]], options: list[list[int]]
) -> list[list[int]]:
    """Return the clusters whose slots and options are equal."""
    found: dict[Hashable, list[int]] = {}
    for cluster, own in enumerate(slots):
        at = {slot: position for position, slot in enumerate(own)}
        key = (
            tuple((*problem.resources[slot][1:], float(problem.base[slot])) for slot in own),
            tuple(
                (option.pool, option.value, tuple((at[s], amount) for s, amount in option.supplies))
                for option in (problem.policies[number] for number in options[cluster])
            ),
        )
        found.setdefault(key, []).append(cluster)
    return [own for own in found.values() if len(own) > 1]


def _members_of_clusters(problem: Problem) -> tuple[list[list[int]], list[list[int]]]:
    """Return the slots and the options of each cluster."""
    slots: list[list[int]] = [[] for _ in problem.clusters]
    options: list[list[int]] = [[] for _ in problem.clusters]
    for number, slot in enumerate(problem.resources):
        slots[slot.cluster].append(number)
    for number, option in enumerate(problem.policies):
        options[option.cluster].append(number)
    return slots, options


def _exchange(
    problem: Problem,
    pair: tuple[int, int],
    members: tuple[list[list[int]], list[list[int]]],
    options: list[list[int]],
    places: list[list[tuple[int, int]]],
    fixed: frozenset[int],
) -> None:
    """Exchange what two clusters have, where more stays, policies first, and no value changes."""
    (one, two), (slots, numbers) = pair, members
    across = dict(zip(numbers[one] + numbers[two], numbers[two] + numbers[one], strict=True))
    had, here, there = options[one] + options[two], places[one], places[two]
    before = (
        sum(problem.policies[option].current for option in had),
        _unmoved_count(problem, here, one) + _unmoved_count(problem, there, two),
    )
    after = (
        sum(problem.policies[across[option]].current for option in had),
        _unmoved_count(problem, here, two) + _unmoved_count(problem, there, one),
    )
    if after <= before:
        return
    over = dict(zip(slots[one] + slots[two], slots[two] + slots[one], strict=True))
    values = problem.values
    for task, slot in places[one] + places[two]:
        if task in fixed or values[task, slot] != values[task, over[slot]]:
            return
    tasks = [task for task, _ in places[one]], [task for task, _ in places[two]]
    if np.intersect1d(*tasks).size:
        return
    places[one], places[two] = (
        [(task, over[slot]) for task, slot in places[two]],
        [(task, over[slot]) for task, slot in places[one]],
    )
    options[one], options[two] = (
        [across[option] for option in options[two]],
        [across[option] for option in options[one]],
    )


def _unmoved_count(problem: Problem, places: list[tuple[int, int]], cluster: int) -> int:
    return sum(cluster in problem.workloads[task].current for task, _ in places)
