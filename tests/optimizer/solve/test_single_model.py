"""The solver's results, compared with the golden scenario and with brute force."""

from collections import defaultdict
from dataclasses import replace
from itertools import chain, product, repeat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.optimizer.instances import instance, problem
from optimizer.domain.fleet import Fleet
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.model.decision_comparison import worth_more
from optimizer.model.formulate import formulate
from optimizer.model.objective import objective, tier_values, upper_bound
from optimizer.model.parameters import ClusterResource, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.strategy import solve_problem
from tests.optimizer.brute_force import best
from tests.optimizer.build import PERFORMANCE, POWER, SETTINGS, fleet
from tests.optimizer.random_problems import random_problem

SOLVERS: tuple[SolverName, ...] = ("highs", "cbc")
GUIDE = {"worker01": SETTINGS, "worker02": SETTINGS}


def solved(problem_fleet: Fleet, solver: SolverName = "highs") -> Solution:
    return solve_problem(formulate(problem_fleet), solver=solver, time_limit_seconds=60)


def guide(scores: dict[tuple[str, str], int]) -> Fleet:
    everywhere = {(c, *pair): float(value) for c in GUIDE for pair, value in scores.items()}
    return fleet(GUIDE, {"app01": 2, "app02": 2}, everywhere)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("scores", "device", "value"), [(PERFORMANCE, "3g.48gb", 115.0), (POWER, "2g.24gb", 170.0)]
)
def test_the_development_guides_scenario(
    solver: SolverName, scores: dict[tuple[str, str], int], device: str, value: float
) -> None:
    solution = solved(guide(scores), solver)
    assert (solution.status, solution.objective_value) == ("Optimal", value)
    assert (solution.bound, solution.gap, solution.solver) == (value, 0.0, solver)
    assert solution.decision.policies == (
        PolicyEnforcement("worker01", device),
        PolicyEnforcement("worker02", device),
    )
    assert solution.decision.assignments == (
        Assignment("app01", "worker01", device),
        Assignment("app02", "worker02", device),
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    devices = ["d0", "d1", "d2"]
    amounts = st.integers(0, 4)
    clusters = {
        f"c{index}": [(device, draw(amounts)) for device in devices[: draw(st.integers(1, 3))]]
        for index in range(draw(st.integers(1, 3)))
    }
    demands = {f"w{index}": draw(st.integers(0, 3)) for index in range(draw(st.integers(1, 4)))}
    value = st.one_of(st.none(), st.integers(-100, 100))
    scores = {
        (cluster, name, device): float(found)
        for cluster, policies in clusters.items()
        for name in demands
        for device, _ in policies
        if (found := draw(value)) is not None
    }
    return fleet(clusters, demands, scores)


def brute_force(given_fleet: Fleet) -> float:
    """Try every policy choice and every assignment, by the definition and not by the rows."""
    best = 0.0
    policies = [[None, *cluster.candidates] for cluster in given_fleet.clusters]
    for chosen in product(*policies):
        supplied = {
            cluster.name: candidate.supplies[0]
            for cluster, candidate in zip(given_fleet.clusters, chosen, strict=True)
            if candidate is not None
        }
        for assignments in product([None, *supplied], repeat=len(given_fleet.workloads)):
            used: dict[str, float] = defaultdict(float)
            total, possible = 0.0, True
            for workload, cluster in zip(given_fleet.workloads, assignments, strict=True):
                if cluster is None:
                    continue
                score = given_fleet.scores["score"].get(
                    (cluster, workload.app, supplied[cluster].device)
                )
                used[cluster] += workload.amount
                possible = possible and score is not None
                total += score or 0.0
            if possible and all(used[name] <= supplied[name].amount for name in used):
                best = max(best, total)
    return best


@given(fleets())
def test_the_optimum_is_that_of_brute_force(given_fleet: Fleet) -> None:
    formulated = formulate(given_fleet)
    solution = solved(given_fleet)
    assert solution.objective_value == brute_force(given_fleet)
    assert violations(formulated, solution.decision) == ()
    assert objective(formulated, solution.decision) == solution.objective_value
    assert solution.status == ("Optimal" if formulated.workloads else "Infeasible")


@settings(max_examples=10, deadline=None)
@given(fleets())
def test_both_solvers_find_the_same_value(given_fleet: Fleet) -> None:
    assert solved(given_fleet, "cbc").objective_value == solved(given_fleet).objective_value


def test_names_that_a_solver_would_confuse_stay_apart() -> None:
    names = ["a-b", "a_b", "a b", "a+b"]
    solution = solved(
        fleet({"c": [("d", 4)]}, dict.fromkeys(names, 1), {("c", name, "d"): 1.0 for name in names})
    )
    assert [assignment.workload for assignment in solution.decision.assignments] == names


def test_a_assignment_that_lowers_the_total_is_not_taken() -> None:
    solution = solved(fleet({"c": [("d", 2)]}, {"w": 1}, {("c", "w", "d"): -1.0}))
    assert (solution.status, solution.objective_value) == ("Optimal", 0.0)
    assert solution.decision.policies == ()


def test_of_equal_values_the_one_with_more_workloads_is_taken() -> None:
    solution = solved(fleet({"c": [("d", 2)]}, {"w": 1}, {("c", "w", "d"): 0.0}))
    assert solution.decision.assignments == (Assignment("w", "c", "d"),)


def test_of_equal_policies_the_first_of_the_request_is_taken() -> None:
    scores = {("c", "w", device): 5.0 for device in ("b", "a")}
    solution = solved(fleet({"c": [("b", 1), ("a", 1)]}, {"w": 1}, scores))
    assert solution.decision.policies == (PolicyEnforcement("c", "b"),)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_problem_has_the_same_answer(solver: SolverName) -> None:
    clusters = {f"c{index}": [("a", 3), ("b", 4)] for index in range(5)}
    demands = {f"w{index}": 1 + index % 2 for index in range(12)}
    scores = {(c, w, d): 7.0 for c in clusters for w in demands for d in ("a", "b")}
    equal = fleet(clusters, demands, scores)
    assert solved(equal, solver).decision == solved(equal, solver).decision


def test_nothing_that_could_be_placed_is_infeasible() -> None:
    found = solved(fleet({"c": [("d", 1)]}, {"w": 2}, {("c", "w", "d"): 1.0}))
    assert found == Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, "highs")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_time_limit_never_yields_more_than_was_proven(solver: SolverName) -> None:
    clusters = {f"c{i}": [("all", 1), ("3g", 5), ("2g", 8)] for i in range(8)}
    demands = {f"w{i}": 1 + i % 4 for i in range(24)}
    scores = {
        (c, w, d): float((i * 7919 + j * 104729 + k * 15485863) % 101)
        for i, (c, policies) in enumerate(clusters.items())
        for j, w in enumerate(demands)
        for k, (d, _) in enumerate(policies)
    }
    formulated = formulate(fleet(clusters, demands, scores))
    hurried = solve_problem(formulated, solver=solver, time_limit_seconds=0.001)
    assert hurried.status in {"Feasible", "NotSolved"}
    assert hurried.bound is not None
    assert hurried.bound >= hurried.objective_value
    assert violations(formulated, hurried.decision) == ()


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.01, 0.02, 0.05])
def test_a_solver_stopped_at_any_moment_leaves_a_bound_that_says_something(seconds: float) -> None:
    given_problem = problem(instance(8, 20, "dist"))
    tiered = replace(
        given_problem,
        workloads=tuple(
            replace(workload, priority=i % 2) for i, workload in enumerate(given_problem.workloads)
        ),
    )
    for one in (given_problem, tiered):
        hurried = solve_problem(one, solver="highs", time_limit_seconds=seconds, small=10**9)
        assert hurried.bound is not None
        assert hurried.objective_value <= hurried.bound <= upper_bound(one)


def test_a_lower_priority_is_not_lost_to_the_rounding_of_a_higher_one() -> None:
    """Three tenths, added up in different orders, differ in the last digit."""
    workloads = [ProblemWorkload(f"h{i}", "h", "gpu", 1.0, priority=1) for i in range(3)]
    workloads.append(ProblemWorkload("low", "low", "gpu", 1.0))
    resources = tuple(ClusterResource(cluster, "gpu", "d") for cluster in range(4))
    values = np.array([[0.1, 0.2, 0.3, 0.0]] * 3 + [[50.0, 0.0, 0.0, 1.0]])
    given_problem = Problem(
        ("a", "b", "c", "e"), resources, (), tuple(workloads), values, np.ones(4)
    )
    for small in (0, 10**9):
        solution = solve_problem(given_problem, solver="highs", time_limit_seconds=60, small=small)
        assert [round(tier.value, 6) for tier in solution.tiers] == [0.6, 1.0]


@pytest.mark.parametrize("seed", [5, 9])
def test_nothing_worse_than_what_is_known_is_returned_whenever_time_is_up(seed: int) -> None:
    """Also between two priorities, where the solver's optimum of the first has none of the next."""
    given = random_problem(seed)
    known = best(given).decisions[0]
    for most in range(1, 40):
        looks = chain(repeat(0.0, most), repeat(61.0))
        solution = solve_problem(
            given, solver="highs", time_limit_seconds=60, incumbent=known, clock=looks.__next__
        )
        assert not worth_more(tier_values(given, known), tier_values(given, solution.decision))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", [19, 21])
def test_a_start_that_is_worth_less_than_nothing_is_not_called_optimal(
    seed: int, solver: SolverName
) -> None:
    """Policies cost so much that the first priority's decision is one of the next's worst."""
    drawn = random_problem(seed)
    given = replace(drawn, policies=tuple(item._replace(value=-30.0) for item in drawn.policies))
    solution = solve_problem(given, solver=solver, time_limit_seconds=60)
    assert solution.status == "Optimal"
    assert tier_values(given, solution.decision) == pytest.approx(best(given).values)
