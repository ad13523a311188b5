"""Re-solves from the last solution: never worse than asked, with a bound that holds."""

import random
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.optimizer.instances import instance, problem
from benchmarks.optimizer.priorities import tiered
from optimizer.domain.solution import Solution
from optimizer.model.formulate import formulate
from optimizer.model.objective import objective, tier_values
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.solver_process import solve
from optimizer.solve.strategy import solve_problem
from optimizer.solve.warm_start import SolvedProblem, kept_for_next, resolve
from tests.optimizer.brute_force import best
from tests.optimizer.random_problems import draw_fleet, random_fleet, random_problem

EXACT = 1e-5


def cold(changed: Problem, gap: float = 0.0) -> Solution:
    return solve_problem(changed, solver="highs", time_limit_seconds=60, gap=gap, small=0)


def kept(solved: Problem, solution: Solution) -> SolvedProblem:
    found = kept_for_next(solved, solution)
    assert found is not None
    return found


def again(changed: Problem, previous: SolvedProblem, gap: float = 0.0) -> tuple[Solution, bool]:
    found = resolve(changed, previous, gap=gap, stop=lambda: False, clock=time.monotonic, small=0)
    assert found is not None
    return found


def with_score(given: Problem, workload: int, resource: int, score: float) -> Problem:
    values = given.values.copy()
    values[workload, resource] = score
    return replace(given, values=values)


@pytest.fixture(scope="module")
def proven() -> tuple[Problem, SolvedProblem]:
    given = problem(instance(20, 50, "dist", 2))
    solution = cold(given)
    assert solution.status == "Optimal"
    return given, kept(given, solution)


@pytest.mark.long
@given(st.integers(0, 10**6))
def test_every_change_of_a_small_fleet_keeps_the_rules_and_a_bound_above_the_optimum(
    seed: int,
) -> None:
    rng = random.Random(seed)  # noqa: S311 - to repeat, not to guard
    fleet = random_fleet(seed, most_variables=14)
    solved = formulate(fleet)
    previous = kept_for_next(solved, cold(solved))
    for _ in range(3):
        other = draw_fleet(rng, clusters=len(fleet.clusters), workloads=len(fleet.workloads))
        fleet = replace(
            fleet,
            **{
                name: getattr(other, name)
                for name in rng.sample(("scores", "workloads", "clusters", "limits"), 1)
            },
        )
        changed = formulate(fleet)
        if not 0 < len(changed.variables) <= 14 or previous is None:
            return
        gap = rng.choice((0.0, 0.05))
        found, is_enough = again(changed, previous, gap)
        assert not violations(changed, found.decision)
        optimum = best(changed).values
        value = tier_values(changed, found.decision)
        assert found.bound is not None
        assert found.status == "NotSolved" or found.tiers[0].bound >= optimum[0] - EXACT
        if is_enough:
            assert optimum[0] <= value[0] + gap * abs(value[0]) + EXACT
        if is_enough and gap == 0:
            assert value == pytest.approx(optimum, abs=EXACT)
        searched = solve_problem(
            changed,
            solver="highs",
            time_limit_seconds=60,
            small=0,
            incumbent=found.decision,
            prices=found.prices,
        )
        assert tier_values(changed, searched.decision) == pytest.approx(optimum, abs=EXACT)
        previous = kept_for_next(changed, searched)


@given(st.integers(0, 10**6))
def test_a_bound_carried_over_scores_that_change_is_never_below_the_optimum(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - to repeat, not to guard
    changed = random_problem(seed, most_variables=12)
    solution = cold(changed)
    for _ in range(6):
        previous = kept_for_next(changed, solution)
        usable = np.argwhere(~np.isnan(changed.values)).tolist()
        if previous is None or not usable:
            return
        pair = rng.choice([*usable, *changed.indexes_of(solution.decision.assignments)])
        changed = with_score(changed, *pair, rng.choice((np.nan, 0.0, 30.0, 100.0)))
        found, is_enough = again(changed, previous, gap=rng.choice((0.0, 0.1, 1.0)))
        assert not violations(changed, found.decision)
        optimum = best(changed).values
        assert found.status == "NotSolved" or found.tiers[0].bound >= optimum[0] - EXACT
        solution = found if is_enough else cold(changed)


@pytest.mark.parametrize("kind", ["dist", "prof", "rand"])
def test_a_sequence_of_changed_scores_stays_within_the_gap_of_the_cold_solve(kind: str) -> None:
    random, gap = np.random.default_rng(4), 0.005
    given = problem(instance(15, 40, kind))  # type: ignore[arg-type]
    previous, without_search = kept(given, cold(given, gap)), 0
    for _ in range(8):
        workload, resource = random.integers(len(given.workloads)), random.integers(45)
        if np.isnan(given.values[workload, resource]):
            continue
        given = with_score(given, workload, resource, float(random.integers(0, 101)))
        found, is_enough = again(given, previous, gap)
        without_search += is_enough
        if not is_enough:
            found = solve_problem(
                given,
                solver="highs",
                time_limit_seconds=60,
                gap=gap,
                small=0,
                incumbent=found.decision,
                prices=found.prices,
            )
        assert not violations(given, found.decision)
        assert found.gap is not None
        assert found.gap <= gap
        reference = cold(given, gap)
        assert reference.bound is not None
        assert found.bound is not None
        assert found.bound >= reference.objective_value - EXACT
        assert found.objective_value >= reference.objective_value / (1 + gap) - EXACT
        previous = kept(given, found)
    assert without_search >= 3


def test_an_unchanged_problem_keeps_its_decision_and_its_proof(
    proven: tuple[Problem, SolvedProblem],
) -> None:
    given, previous = proven
    found, is_enough = again(given, previous)
    assert is_enough
    assert found.status == "Optimal"
    assert found.decision == previous.solution.decision


def test_a_proof_outlives_scores_that_fall_where_nothing_runs(
    proven: tuple[Problem, SolvedProblem],
) -> None:
    given, previous = proven
    used = set(given.indexes_of(previous.solution.decision.assignments))
    values = given.values - 3.0
    for pair in used:
        values[pair] += 3.0
    found, is_enough = again(replace(given, values=values), previous)
    assert is_enough
    assert found.status == "Optimal"
    assert found.decision == previous.solution.decision


def test_a_score_that_rises_where_its_workload_runs_is_proven_at_once(
    proven: tuple[Problem, SolvedProblem],
) -> None:
    given, previous = proven
    pair = given.indexes_of(previous.solution.decision.assignments)[0]
    changed = with_score(given, *pair, float(given.values[pair]) + 7.0)
    found, is_enough = again(changed, previous)
    assert is_enough
    assert found.objective_value == previous.solution.objective_value + 7.0


@pytest.mark.exhaustive
def test_a_score_that_falls_where_its_workload_runs_is_no_proof_of_the_old_bound(
    proven: tuple[Problem, SolvedProblem],
) -> None:
    given, previous = proven
    pair = given.indexes_of(previous.solution.decision.assignments)[0]
    changed = with_score(given, *pair, float(given.values[pair]) - 40.0)
    found, is_enough = again(changed, previous)
    optimum = cold(changed)
    assert found.bound is not None
    assert found.bound >= optimum.objective_value
    assert not is_enough or found.objective_value == optimum.objective_value


def test_a_lost_cluster_and_a_new_workload_leave_the_others_where_they_are(
    proven: tuple[Problem, SolvedProblem],
) -> None:
    given, previous = proven
    lost = given.resource_cluster != 3
    rest = given.restricted(
        np.broadcast_to(lost[None, :], given.values.shape),
        np.array([policy.cluster != 3 for policy in given.policies]),
    )
    before = {item for item in previous.solution.decision.assignments if item.cluster != "c3"}
    found, _ = again(rest, previous, gap=0.5)
    assert not violations(rest, found.decision)
    assert before - set(found.decision.assignments) == set()
    more = replace(
        given,
        workloads=(*given.workloads, replace(given.workloads[0], name="new")),
        values=np.vstack([given.values, given.values[:1]]),
    )
    found, _ = again(more, previous, gap=0.5)
    assert not violations(more, found.decision)
    assert found.bound is not None
    assert found.bound >= cold(more).objective_value


def test_what_runs_now_stays_if_it_is_as_good_as_the_last_decision() -> None:
    given = problem(instance(15, 40, "prof", 2))
    previous = kept(given, cold(given, 0.002))
    decision = previous.solution.decision
    at = {item.workload: (given.cluster_index[item.cluster],) for item in decision.assignments}
    running = replace(
        given,
        workloads=tuple(replace(item, current=at.get(item.name, ())) for item in given.workloads),
        policies=tuple(
            policy._replace(current=given.enforcement(number) in decision.policies)
            for number, policy in enumerate(given.policies)
        ),
    )
    found, is_enough = again(running, previous, 0.002)
    assert is_enough
    assert set(found.decision.assignments) == set(decision.assignments)


def test_each_priority_is_close_to_its_bound() -> None:
    given = tiered(problem(instance(15, 36, "dist", 3)), 2)
    previous = kept(given, cold(given, 0.01))
    changed = with_score(given, 1, int(np.nanargmax(given.values[1])), 100.0)
    found, is_enough = again(changed, previous, 0.02)
    reference = cold(changed, 0.0)
    assert found.tiers[0].bound >= reference.tiers[0].value - EXACT
    if is_enough:
        assert all(tier.bound - tier.value <= 0.02 * abs(tier.value) for tier in found.tiers)


def test_a_solution_without_prices_and_a_small_problem_start_nothing() -> None:
    small = problem(instance(3, 6, "dist"))
    solution = solve_problem(small, solver="highs", time_limit_seconds=60)
    assert kept_for_next(small, solution) is None


async def test_a_solve_that_is_not_close_enough_goes_on_in_a_process(
    proven: tuple[Problem, SolvedProblem],
) -> None:
    given, previous = proven
    random, values = np.random.default_rng(1), given.values.copy()
    values[~np.isnan(values)] = random.integers(0, 101, np.count_nonzero(~np.isnan(values)))
    changed, reports, threads = replace(given, values=values), list[Solution](), set[int]()

    def report(better: Solution) -> None:
        reports.append(better)
        threads.add(threading.get_ident())

    found = await solve(
        changed, solver="highs", time_limit_seconds=60, gap=0.01, previous=previous, report=report
    )
    assert found.gap is not None
    assert found.gap <= 0.01
    assert found.prices
    assert reports[0].objective_value < found.objective_value
    assert threading.get_ident() not in threads
    assert found.objective_value == pytest.approx(objective(changed, found.decision))


async def test_the_mended_decision_counts_if_the_process_fails(
    proven: tuple[Problem, SolvedProblem],
) -> None:
    given, previous = proven
    changed = replace(given, values=given.values[:, ::-1][:, np.argsort(np.arange(60)[::-1])] * 0.5)
    pair = given.indexes_of(previous.solution.decision.assignments)[0]
    changed = with_score(changed, *pair, 0.0)
    found = await solve(
        changed, solver="highs", time_limit_seconds=60, previous=previous, memory_mib=1
    )
    assert found.failure is not None
    assert found.status == "Feasible"
    assert not violations(changed, found.decision)
    assert found.bound is not None
    assert found.bound >= found.objective_value
