"""Counting and packing never contradict the solver."""

import random
from dataclasses import replace

import pytest

from optimizer.domain.fleet import CandidatePolicy, Supply
from optimizer.domain.solution import Decision
from optimizer.explain.conflicts.feasibility_check import (
    best_fit_decreasing,
    check_feasibility,
    exceeds_capacity,
)
from optimizer.explain.conflicts.feasibility_problem import WORTH, all_placed, feasibility_problem
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE, spent
from tests.optimizer.random_problems import draw_fleet


def asked(supply: int, *sizes: int) -> tuple[Problem, dict[str, int]]:
    """One cluster with two devices of each so much, and workloads of these sizes."""
    names = {f"w{number}": size for number, size in enumerate(sizes)}
    scores = {("c", name, device): 1.0 for name in names for device in ("all", "3g")}
    needed = dict.fromkeys(names, 1)
    problem = feasibility_problem(
        fleet({"c": [("all", supply), ("3g", supply)]}, names, scores), needed
    )
    assert problem is not None
    return problem, needed


def test_sums_that_exceed_the_supply_have_no_room() -> None:
    assert exceeds_capacity(*asked(4, 2, 3))
    assert not exceeds_capacity(*asked(5, 2, 3))


def test_one_kind_that_is_short_is_enough_to_have_no_room() -> None:
    names = {"v": 1, "w": 1}
    given = fleet({"c": [("all", 2)]}, names, {("c", name, "all"): 1.0 for name in names})
    asking = tuple(replace(item, requests=(("cpu", 2.0),)) for item in given.workloads)
    for supply, exceeds in ((3.0, True), (4.0, False)):
        clusters = (replace(given.clusters[0], base=(Supply("cpu", "", supply),)),)
        needed = dict.fromkeys(names, 1)
        problem = feasibility_problem(replace(given, clusters=clusters, workloads=asking), needed)
        assert problem is not None
        assert exceeds_capacity(problem, needed) is exceeds


@pytest.mark.parametrize(("count", "exceeds"), [(12, False), (13, True)])
def test_where_combinations_are_too_many_the_supplies_of_all_policies_are_added_up(
    count: int, exceeds: bool
) -> None:
    """13 pools supply 13 of each device, of which 6 times 2 fit on each."""
    names = {f"w{number}": 2 for number in range(count)}
    scores = {("c", name, device): 1.0 for name in names for device in ("all", "3g")}
    given = fleet({"c": []}, names, scores)
    supplies = (Supply("gpu", "all", 1.0), Supply("gpu", "3g", 1.0))
    pools = tuple(CandidatePolicy(f"p{at}", supplies, pool=f"p{at}") for at in range(13))
    given = replace(given, clusters=(replace(given.clusters[0], candidates=pools),))
    needed = dict.fromkeys(names, 1)
    problem = feasibility_problem(given, needed)
    assert problem is not None
    assert exceeds_capacity(problem, needed) is exceeds


def test_large_ones_have_no_room_although_sums_fit() -> None:
    clusters = {name: [("all", 3)] for name in ("c", "d")}
    names = {"v": 2, "w": 2, "x": 2}
    scores = {(c, name, "all"): 1.0 for c in clusters for name in names}
    needed = dict.fromkeys(names, 1)
    problem = feasibility_problem(fleet(clusters, names, scores), needed)
    assert problem is not None
    assert check_feasibility(problem, needed, spent) is False


def test_what_packs_at_once_asks_no_solver() -> None:
    problem, needed = asked(5, 2, 3)
    found = check_feasibility(problem, needed, spent)
    assert isinstance(found, Decision)
    assert len(found.assignments) == len(needed)


def check(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - to repeat, not to guard
    given = draw_fleet(rng, clusters=rng.randint(1, 4), workloads=rng.randint(2, 6))
    needed = {item.name: rng.randint(1, item.replicas) for item in given.workloads}
    needed = {name: count for name, count in needed.items() if rng.random() < 0.7}
    problem = feasibility_problem(given, needed)
    if problem is None:
        return
    solution = RESOLVE(problem)
    answer = all_placed(solution, sum(needed.values()))
    assert solution.objective_value <= WORTH * sum(needed.values())
    if exceeds_capacity(problem, needed):
        assert answer is False
    packed = best_fit_decreasing(problem, needed)
    if packed is not None:
        assert answer is True
        assert violations(problem, packed) == ()
        assert len(packed.assignments) == sum(needed.values())
    assert bool(check_feasibility(problem, needed, RESOLVE)) is answer


@pytest.mark.parametrize("seed", range(15))
def test_counting_and_packing_agree_with_solving(seed: int) -> None:
    check(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1_000, 1_600, 100))
def test_many_rooms(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)
