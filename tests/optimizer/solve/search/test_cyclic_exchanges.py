"""Workloads take each other's places, where that is worth more and keeps every rule."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.optimizer.instances import instance, problem
from optimizer.domain.solution import Decision
from optimizer.model.formulate import formulate
from optimizer.model.objective import objective, tier_values
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.greedy import greedy
from optimizer.solve.search.cyclic_exchanges import MOST_ASSIGNMENTS, improve_by_exchanges
from tests.optimizer.build import fleet
from tests.optimizer.random_problems import random_problem


def improved(given: Problem, decision: Decision, tier: int = 0) -> Decision:
    return improve_by_exchanges(given, decision, lambda: False, tier=tier)


def three_clusters(scores: list[list[float]], amount: int = 1) -> Problem:
    """Return three clusters with room for one workload each, and the scores of workloads there."""
    return formulate(
        fleet(
            {f"c{cluster}": [("d", amount)] for cluster in range(3)},
            {f"w{row}": amount for row in range(len(scores))},
            {
                (f"c{cluster}", f"w{row}", "d"): score
                for row, own in enumerate(scores)
                for cluster, score in enumerate(own)
            },
        )
    )


def placed(given: Problem, clusters: dict[int, int]) -> Decision:
    return given.named(range(len(given.policies)), clusters.items())


def test_three_workloads_change_places_where_no_two_could() -> None:
    given = three_clusters([[5.0, 9.0, 0.0], [0.0, 5.0, 9.0], [9.0, 0.0, 5.0]])
    found = improved(given, placed(given, {0: 0, 1: 1, 2: 2}))
    assert objective(given, found) == 27.0


def test_nothing_changes_places_where_more_is_asked_for_than_the_graph_may_hold() -> None:
    given = three_clusters([[5.0, 9.0, 0.0], [0.0, 5.0, 9.0], [9.0, 0.0, 5.0]])
    each = MOST_ASSIGNMENTS // 3 + 1
    given = replace(
        given, workloads=tuple(replace(item, replicas=each) for item in given.workloads)
    )
    start = placed(given, {0: 0, 1: 1, 2: 2})
    assert improved(given, start) == start


def test_a_chain_ends_in_free_room() -> None:
    given = three_clusters([[8.0, 9.0, 0.0], [0.0, 6.0, 7.0]])
    found = improved(given, placed(given, {0: 0, 1: 1}))
    assert objective(given, found) == 16.0


def test_a_workload_that_runs_nowhere_takes_the_place_of_one_that_is_worth_less() -> None:
    given = three_clusters([[1.0, 0.0, 0.0], [5.0, 4.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 9.0]])
    found = improved(given, placed(given, {0: 0, 1: 1}))
    assert {item.workload for item in found.assignments} == {"w1", "w2", "w3"}
    assert objective(given, found) == 18.0


def test_places_of_equal_value_do_not_change() -> None:
    given = three_clusters([[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]])
    start = placed(given, {0: 0, 1: 1})
    assert improved(given, start) == start


def test_it_ends_once_the_value_is_enough() -> None:
    given = problem(instance(20, 50, "dist"))
    start = greedy(given, lambda: False)
    first = objective(given, start)
    some = improve_by_exchanges(given, start, lambda: False, enough=first + 1.0)
    assert first < objective(given, some) < objective(given, improved(given, start))


def test_only_the_priority_that_is_named_moves() -> None:
    given = problem(instance(12, 30, "dist"))
    given = replace(
        given,
        workloads=tuple(
            replace(item, priority=number % 2) for number, item in enumerate(given.workloads)
        ),
    )
    start = greedy(given, lambda: False)
    found = improved(given, start, tier=1)
    before, after = tier_values(given, start), tier_values(given, found)
    assert after[0] == before[0]
    assert after[1] > before[1]


def test_a_workload_that_another_one_runs_near_stays() -> None:
    """It is worth less than nothing, so going alone would gain."""
    scores = {("c0", "w0", "d"): -2.0, ("c0", "w1", "d"): 5.0}
    found = fleet({"c0": [("d", 2)]}, {"w0": 1, "w1": 1}, scores)
    neighbour, user = found.workloads
    neighbour = replace(neighbour, labels={"app": "w0"})
    user = replace(user, workload_affinity="app=w0")
    given = formulate(replace(found, workloads=(neighbour, user)))
    start = placed(given, {0: 0, 1: 0})
    assert not violations(given, start)
    assert improved(given, start) == start


@given(st.integers(0, 10**6))
def test_every_rule_is_kept_and_nothing_is_lost(seed: int) -> None:
    given = random_problem(seed, most_variables=40)
    start = greedy(given, lambda: False)
    for tier in range(len(given.tiers)):
        found = improved(given, start, tier)
        assert not violations(given, found)
        assert np.all(
            np.array(tier_values(given, found)[: tier + 1])
            >= np.array(tier_values(given, start)[: tier + 1]) - 1e-6
        )
        start = found
