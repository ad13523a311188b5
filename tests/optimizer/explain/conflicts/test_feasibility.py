"""Counting, greedy and remembered results never contradict the solver."""

import random
from dataclasses import replace
from itertools import islice

import pytest

from optimizer.domain.fleet import CandidatePolicy, Supply
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.explain.conflicts.feasibility import (
    WORTH,
    FeasibilityOracle,
    all_placed,
    check_feasibility,
    exceeds_capacity,
    feasibility_problem,
    replica_counts,
)
from optimizer.explain.conflicts.limits import RequiredReplicas
from optimizer.explain.conflicts.relaxable_limits import relaxable_limits
from optimizer.explain.conflicts.supply_limits import SuppliedCapacity
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from tests.optimizer.build import fleet
from tests.optimizer.explain.conflicts.test_unplaced_conflicts import explained, infeasible_cases
from tests.optimizer.explain.solvers import RESOLVE, possible, spent
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
    found = check_feasibility(problem, needed, RESOLVE)
    assert bool(found) is answer
    if isinstance(found, Decision):
        assert violations(problem, found) == ()
        assert all(replica_counts(found)[name] >= count for name, count in needed.items())


@pytest.mark.parametrize(
    "seeds", [range(15), pytest.param(range(1_000, 1_600), marks=pytest.mark.long)]
)
def test_counting_and_greedy_decisions_agree_with_solving(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.exhaustive
def test_what_is_remembered_is_what_solving_says() -> None:
    rng = random.Random(7)  # noqa: S311 - to repeat, not to guard
    for given, wanted in islice(infeasible_cases(500), 8):
        named = relaxable_limits(given, wanted)
        oracle = FeasibilityOracle(given, wanted, named, RESOLVE)
        oracle.learn_from(RESOLVE(formulate(given)).decision)
        for _ in range(12):
            without = [item for item in named if rng.random() < 0.4]
            assert oracle.feasible(without) is possible(given, wanted, without, RESOLVE)


def test_many_that_are_alike_are_asked_about_once() -> None:
    names = [f"w{number}" for number in range(40)]
    clusters = [f"c{number}" for number in range(19)]
    scores = {(c, name, "3g"): 10.0 for c in clusters for name in names}
    given = fleet({c: [("3g", 2)] for c in clusters}, dict.fromkeys(names, 1), scores)
    problem = formulate(given)
    solution = RESOLVE(problem)
    asked = []

    def solve(changed: Problem) -> Solution:
        asked.append(changed)
        return RESOLVE(changed)

    missing = set(names) - {place.workload for place in solution.decision.assignments}
    found = explained(given, min(missing), solve)
    assert found.irreducible
    assert len(found.limits) == 19 + 38
    assert len(asked) < 40


def test_what_is_infeasible_is_asked_once() -> None:
    scores = {(at, name, "3g"): 10.0 for at in "cd" for name in "abc"}
    given = fleet({at: [("3g", 3)] for at in "cd"}, dict.fromkeys("abc", 2), scores)
    wanted = RequiredReplicas("c", dict.fromkeys("abc", 1))
    times = iter([True])
    oracle = FeasibilityOracle(
        given, wanted, relaxable_limits(given, wanted), RESOLVE, lambda: next(times, False)
    )
    assert [oracle.feasible(()), oracle.feasible(())] == [False, False]


def test_what_one_more_assignment_lacks_is_known_where_all_others_just_fit() -> None:
    scores = {(at, name, "3g"): 10.0 for at in "cd" for name in "abc"}
    given = fleet({"c": [("3g", 2)], "d": [("3g", 3)]}, {"a": 2, "b": 3, "c": 2}, scores)
    wanted = RequiredReplicas("c", dict.fromkeys("abc", 1))
    named = relaxable_limits(given, wanted)
    oracle = FeasibilityOracle(given, wanted, named, spent, lambda: False)
    oracle.learn_from(
        Decision(
            (PolicyEnforcement("c", "3g"), PolicyEnforcement("d", "3g")),
            (Assignment("a", "c", "3g"), Assignment("b", "d", "3g")),
        )
    )
    capacities = [item for item in named if isinstance(item, SuppliedCapacity)]
    assert list(oracle.known.lacking.values()) == [2, 2]
    assert [oracle.feasible([item]) for item in capacities] == [True, True]
