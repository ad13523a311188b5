"""Exchanging members with equal keys changes no rule and no value."""

import random
from itertools import combinations

import pytest

from optimizer.domain.solution import Decision
from optimizer.model.formulate import formulate
from optimizer.model.objective import objective
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.model.symmetry import classes, cluster_forms, supply_forms, workload_keys
from tests.optimizer.build import fleet

SCORES = {
    (cluster, name, device): value
    for cluster, value in (("a", 5.0), ("b", 5.0), ("c", 9.0))
    for name in ("v", "w", "x")
    for device in ("d", "e")
}


@pytest.fixture
def problem() -> Problem:
    supplies = {"a": [("d", 1), ("e", 2)], "b": [("e", 2), ("d", 1)], "c": [("d", 1), ("e", 2)]}
    return formulate(fleet(supplies, {"v": 1, "w": 1, "x": 2}, SCORES))


def decisions(problem: Problem) -> list[Decision]:
    """Some decisions of a few variables each, feasible and not."""
    rng, columns = random.Random(0), range(len(problem.variables))  # noqa: S311 - to repeat
    return [problem.decision(rng.sample(columns, rng.randint(1, 5))) for _ in range(300)]


def test_classes_have_equal_keys(problem: Problem) -> None:
    assert classes(workload_keys(problem)) == [[0, 1], [2]]
    forms = cluster_forms(problem)
    assert classes({cluster: form.key for cluster, form in enumerate(forms)}) == [[0, 1], [2]]
    supplies = supply_forms(problem)
    assert classes({cluster: form.key for cluster, form in enumerate(supplies)}) == [[0, 1, 2]]


def test_exchanged_decisions_are_as_feasible_and_as_good(problem: Problem) -> None:
    workloads = {one: two for own in named_classes(problem) for one, two in combinations(own, 2)}
    swap = {**workloads, **{two: one for one, two in workloads.items()}}
    for decision in decisions(problem):
        other = Decision(
            decision.policies,
            tuple(
                item._replace(workload=swap.get(item.workload, item.workload))
                for item in decision.assignments
            ),
        )
        assert bool(violations(problem, other)) == bool(violations(problem, decision))
        assert objective(problem, other) == objective(problem, decision)


def test_resources_and_policies_correspond_by_position(problem: Problem) -> None:
    first, second, _ = cluster_forms(problem)
    for one, two in zip(first.policies, second.policies, strict=True):
        assert problem.policies[one].name == problem.policies[two].name
    for one, two in zip(first.resources, second.resources, strict=True):
        assert problem.resources[one].device == problem.resources[two].device


def named_classes(problem: Problem) -> list[list[str]]:
    names = [item.name for item in problem.workloads]
    return [[names[number] for number in own] for own in classes(workload_keys(problem))]
