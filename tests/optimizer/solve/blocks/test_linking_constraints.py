"""Rows that link blocks: those of rules between clusters, and floors of higher priorities."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from optimizer.domain.arrays import Ints
from optimizer.model.decision_comparison import SAME_VALUE
from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.solve.blocks.block_problem import LinkingRows
from optimizer.solve.blocks.linking_constraints import (
    linked_workloads,
    linking_constraints,
    with_priority_floors,
)

VALUES = np.array([[4.0, 8.0], [2.0, 16.0], [3.0, 5.0]])


def prioritized(*priorities: int) -> Problem:
    return Problem(
        ("c", "e"),
        (ClusterResource(0, "gpu", "d"), ClusterResource(1, "gpu", "d")),
        (),
        tuple(
            ProblemWorkload(f"w{at}", "w", "gpu", 1.0, priority=own)
            for at, own in enumerate(priorities)
        ),
        VALUES,
        np.full(2, 9.0),
    )


def used(rows: LinkingRows, chosen: Ints) -> list[float]:
    """What a decision uses of each row; `chosen`: the resource of each workload."""
    on = chosen[rows.assignment_workloads] == rows.assignment_resources
    sums = np.bincount(rows.assignment_rows, rows.assignment_coefficients * on, len(rows.limits))
    return [float(each) for each in sums]


@pytest.mark.parametrize("floors", [(8.0,), (24.0,), (6.0,), (20.0, 5.0)])
def test_a_floor_holds_where_the_priority_keeps_its_value(floors: tuple[float, ...]) -> None:
    given = prioritized(7, 7, 0)
    rows = with_priority_floors(given, linking_constraints(given, frozenset()), floors)
    assert len(rows.limits) == len(floors)
    for row in range(len(floors)):
        own = rows.assignment_coefficients[rows.assignment_rows == row]
        assert np.abs(own).max() == 1.0
    for pair in product((0, 1), repeat=3):
        chosen = np.array(pair)
        worth = VALUES[np.arange(3), chosen]
        values = (float(worth[:2].sum()), float(worth[2]))
        for value, floor, amount, limit in zip(
            values, floors, used(rows, chosen), rows.limits.tolist(), strict=False
        ):
            assert (amount <= limit) is (value >= floor - SAME_VALUE)


def test_floors_come_after_the_rows_that_there_are() -> None:
    given = prioritized(7, 7, 0)
    apart = replace(given.workloads[0], workload_anti_affinity=("w1",))
    given = replace(given, workloads=(apart, *given.workloads[1:]))
    before = linking_constraints(given, frozenset())
    after = with_priority_floors(given, before, (8.0,))
    count = len(before.limits)
    assert count > 0
    assert after.limits[:count].tolist() == before.limits.tolist()
    assert set(after.assignment_rows[len(before.assignment_rows) :].tolist()) == {count}


def test_workloads_in_rules_between_clusters_or_workloads_are_linked() -> None:
    given = prioritized(0, 0, 0)
    assert linked_workloads(given) == frozenset()
    apart = replace(given.workloads[0], workload_anti_affinity=("w2",))
    linked = replace(given, workloads=(apart, *given.workloads[1:]))
    assert linked_workloads(linked) == {0, 2}


def replicated(*policies: tuple[str, tuple[int, ...]], base: float = 0.0) -> Problem:
    """Two devices of a cluster for two replicas; policies by pool and the devices they supply."""
    return Problem(
        ("c",),
        (ClusterResource(0, "gpu", "d"), ClusterResource(0, "gpu", "e")),
        tuple(
            ProblemPolicy(0, pool, f"p{at}", tuple((device, 2.0) for device in devices))
            for at, (pool, devices) in enumerate(policies)
        ),
        (ProblemWorkload("w", "w", "gpu", 1.0, replicas=2),),
        np.array([[4.0, 8.0]]),
        np.array([base, 0.0]),
    )


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        (replicated(("", (0,)), ("", (1,))), 0),
        (replicated(("", (0, 1)), ("", (1,))), 1),
        (replicated(("a", (0,)), ("b", (1,))), 1),
        (replicated(("", (0,)), ("", (1,)), base=1.0), 1),
    ],
    ids=["one pool", "one policy supplies both", "two pools", "one is there anyway"],
)
def test_replicas_need_a_row_where_a_cluster_can_have_two_devices(
    given: Problem, rows: int
) -> None:
    assert len(linking_constraints(given, frozenset()).limits) == rows
