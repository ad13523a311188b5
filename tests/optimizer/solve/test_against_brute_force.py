"""The model against all decisions of small random problems with every rule switched on."""

import random
from dataclasses import replace

import pytest

from optimizer.domain.fleet import FleetLimit
from optimizer.domain.solution import Decision
from optimizer.model.formulate import formulate
from optimizer.model.objective import tier_values
from optimizer.model.problem import Problem
from optimizer.model.rules import COUPLING_RULES, LOCAL_RULES, RULES, violations
from optimizer.solve.strategy import solve_problem
from tests.optimizer.brute_force import best, legal
from tests.optimizer.random_problems import random_fleet, random_fleet_with_nodes, random_problem

QUICK = range(12)
MANY = range(1_000, 1_400)
NODES = range(2_000, 2_040)


def random_decision(problem: Problem, near: Decision, rng: random.Random) -> Decision:
    """A decision that differs from another in a few variables: it breaks few rules, or none."""
    variables = problem.variables
    chosen = {variables.index(item) for item in (*near.policies, *near.assignments)}
    flipped = rng.sample(range(len(variables)), min(len(variables), rng.randint(0, 3)))
    return problem.decision(chosen.symmetric_difference(flipped))


def check_rules(problem: Problem, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - to repeat
    good = best(problem).decisions
    for near in (good[0], good[-1], Decision()):
        for _ in range(40):
            decision = random_decision(problem, near, rng)
            assert (violations(problem, decision) == ()) is legal(problem, decision), decision


def check_optimum(problem: Problem) -> None:
    solution = solve_problem(problem, solver="highs", time_limit_seconds=60)
    assert solution.status == "Optimal"
    assert tier_values(problem, solution.decision) == pytest.approx(best(problem).values)
    assert tuple(tier.value for tier in solution.tiers) == pytest.approx(best(problem).values)
    assert violations(problem, solution.decision) == ()


@pytest.mark.parametrize("seed", QUICK)
def test_rows_mean_what_the_rules_say(seed: int) -> None:
    check_rules(random_problem(seed), seed)


@pytest.mark.parametrize("seed", QUICK)
def test_the_optimum_of_every_priority_is_that_of_brute_force(seed: int) -> None:
    check_optimum(random_problem(seed))


@pytest.mark.parametrize("seed", NODES)
def test_with_nodes_rows_mean_what_the_rules_say_and_the_optimum_is_that_of_brute_force(
    seed: int,
) -> None:
    problem = formulate(random_fleet_with_nodes(seed))
    check_rules(problem, seed)
    check_optimum(problem)


def check_move_budget(seed: int) -> None:
    """Solve with a budget for moves of some workloads, and count the moves that are made."""
    rng, fleet = random.Random(seed), random_fleet(seed)  # noqa: S311 - to repeat
    moving = {item.name: item.current for item in fleet.workloads if rng.random() < 0.7}
    budget = FleetLimit("moves", float(rng.randint(0, 2)), moving=frozenset(moving))
    problem = formulate(replace(fleet, limits=(*fleet.limits, budget)))
    check_optimum(problem)
    found = solve_problem(problem, solver="highs", time_limit_seconds=60).decision.assignments
    made = [item for item in found if item.cluster not in moving.get(item.workload, item.cluster)]
    assert len(made) <= budget.most


@pytest.mark.parametrize("seed", QUICK)
def test_a_budget_bounds_the_moves_of_the_workloads_that_it_names(seed: int) -> None:
    check_move_budget(seed)


@pytest.mark.parametrize("seed", QUICK)
def test_rows_are_of_the_kind_that_they_are_listed_as(seed: int) -> None:
    problem = random_problem(seed)
    for row in (row for rule in LOCAL_RULES for row in rule(problem)):
        assert len(set(problem.column_cluster[row.columns].tolist())) == 1, row.says
    for row in (row for rule in COUPLING_RULES for row in rule(problem)):
        assert (row.coefficients >= 0).all(), row.says
    for row in (row for rule in RULES for row in rule(problem)):
        assert row.holds(0.0), row.says
        assert len(set(row.columns.tolist())) == len(row.columns), row.says


@pytest.mark.long
@pytest.mark.parametrize("seed", MANY)
def test_many_problems(seed: int) -> None:
    check_rules(random_problem(seed), seed)
    check_optimum(random_problem(seed))
    check_move_budget(seed)


def test_random_problems_switch_every_rule_on() -> None:
    problems = [random_problem(seed) for seed in range(60)]
    workloads = [workload for problem in problems for workload in problem.workloads]
    policies = [policy for problem in problems for policy in problem.policies]
    assert any(len(problem.tiers) > 1 for problem in problems)
    assert any(len(policy.supplies) > 1 for policy in policies)
    assert {policy.pool for policy in policies} == {"", "second"}
    assert any(policy.value < 0 for policy in policies)
    assert any(problem.base.any() for problem in problems)
    for field in ("requests", "spread", "workload_affinity", "workload_anti_affinity", "current"):
        assert any(getattr(workload, field) for workload in workloads), field
    assert any(workload.replicas > 1 for workload in workloads)
    assert {limit.name.split()[0] for problem in problems for limit in problem.limits} == {
        "budget",
        "site",
        "watts",
        "workloads",
    }
