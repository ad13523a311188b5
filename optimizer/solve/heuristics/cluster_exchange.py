"""Exchanging all that two equal clusters have, policies and workloads, so that more stays."""

from collections.abc import Callable
from itertools import combinations

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem
from optimizer.model.symmetry import ClusterForm, classes, supply_forms
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
    fixed, forms = linked_tasks(problem), supply_forms(problem)
    for own in classes({cluster: form.key for cluster, form in enumerate(forms)}):
        for one, two in combinations(own, 2):
            if stop():
                break
            _exchange(problem, (one, two), forms, options, places, fixed)
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


def _exchange(
    problem: Problem,
    pair: tuple[int, int],
    forms: list[ClusterForm],
    options: list[list[int]],
    places: list[list[tuple[int, int]]],
    fixed: frozenset[int],
) -> None:
    """Exchange what two clusters have, where more stays, policies first, and no value changes."""
    one, two = pair
    across = _corresponding(forms[one].policies, forms[two].policies)
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
    over = _corresponding(forms[one].resources, forms[two].resources)
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


def _corresponding(one: tuple[int, ...], two: tuple[int, ...]) -> dict[int, int]:
    """Return what each item of two clusters is on the other one."""
    return dict(zip(one + two, two + one, strict=True))
