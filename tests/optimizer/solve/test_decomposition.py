"""Decomposition against brute force, one model of everything, and the limits it is given."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.optimizer.instances import Instance, Kind, instance, problem
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.model.objective import objective, tier_values
from optimizer.model.parameters import (
    NO_DEVICE,
    ClusterResource,
    Limit,
    ProblemPolicy,
    ProblemWorkload,
)
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.blocks.block_problem import (
    Prices,
    merge_identical_sites,
    merge_identical_workloads,
)
from optimizer.solve.blocks.knapsack import all_items
from optimizer.solve.blocks.reduction import reduce_to_blocks
from optimizer.solve.greedy import greedy
from optimizer.solve.pricing.lagrangian_relaxation import items_if_few, price_blocks
from optimizer.solve.pricing.restricted_master import solve_master
from optimizer.solve.search.block_search import search_blocks
from optimizer.solve.search.column_enumeration import best_columns_within
from optimizer.solve.strategy import independent_components, solve_problem
from optimizer.solve.time_limit import SolveContext
from tests.optimizer.brute_force import best
from tests.optimizer.random_problems import random_problem

QUICK = (3, 28, 63)
MANY = range(2_000, 2_100)
EVERYTHING = 10**9


def decomposed(given: Problem, solver: SolverName = "highs", gap: float = 0.0) -> Solution:
    return solve_problem(given, solver=solver, time_limit_seconds=60, gap=gap, small=0)


def whole(given: Problem) -> Solution:
    return solve_problem(given, solver="highs", time_limit_seconds=60, small=EVERYTHING)


def small_instance(kind: Kind, seed: int = 1) -> Instance:
    return instance(6, 14, kind, seed)


def check_against_brute_force(seed: int) -> None:
    given = random_problem(seed)
    solution = decomposed(given)
    wanted = best(given).values
    found = tier_values(given, solution.decision)
    assert violations(given, solution.decision) == ()
    assert found <= tuple(value + 1e-6 for value in wanted)
    if solution.status == "Optimal":
        assert found == pytest.approx(wanted)
    for tier, (bound, most) in enumerate(zip(solution.tiers, wanted, strict=True)):
        if found[:tier] == pytest.approx(wanted[:tier]):
            assert bound.bound >= most - 1e-6
    assert solution.bound is not None
    assert solution.bound >= sum(wanted) - 1e-6


def check_reduced(seed: int) -> None:
    """Equal the optimum of reduced blocks, that of the problem as it is, and brute force."""
    given = random_problem(seed)
    weights = np.array([float(workload.priority == given.tiers[0]) for workload in given.workloads])
    last = float(len(given.tiers) == 1)
    wanted = best(given).values[0]
    assert tier_values(given, whole(given).decision)[0] == pytest.approx(wanted)
    reduction = reduce_to_blocks(given, weights, last)
    if reduction is None:
        assert wanted == 0.0
        return
    blocks = reduction.blocks
    items = all_items(blocks)
    free = Prices(np.zeros(len(blocks.sizes)), np.zeros(len(blocks.linking.limits)))
    columns, _ = best_columns_within(
        blocks,
        free,
        price_blocks(blocks, items, free),
        slack=1e6,
        limit=100_000,
        stop=lambda: False,
    )
    taken = solve_master(blocks, columns, SolveContext("highs", 0.0, 0, lambda: 60.0))
    assert taken is not None
    assert taken.proven
    assert float(columns.values(blocks) @ taken.multiplicities) == pytest.approx(wanted)
    decision = reduction.decision(given, columns.taken(taken.multiplicities))
    assert violations(given, decision) == ()
    assert tier_values(given, decision)[0] == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(3_000, 3_010))
def test_reductions_keep_the_optimum(seed: int) -> None:
    check_reduced(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3_010, 3_300))
def test_reductions_keep_the_optimum_of_many_problems(seed: int) -> None:
    check_reduced(seed)


@pytest.mark.parametrize("seed", QUICK)
def test_every_rule_is_kept_and_no_bound_is_too_low(seed: int) -> None:
    check_against_brute_force(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", MANY)
def test_many_problems_with_every_rule(seed: int) -> None:
    check_against_brute_force(seed)


@pytest.mark.parametrize("kind", ["prof", "dist", "rand"])
def test_the_optimum_is_that_of_one_model_of_everything(kind: Kind) -> None:
    given = problem(small_instance(kind))
    one, other = decomposed(given), whole(given)
    assert (one.status, other.status) == ("Optimal", "Optimal")
    assert one.objective_value == other.objective_value
    assert violations(given, one.decision) == ()


def test_both_solvers_agree() -> None:
    given = problem(small_instance("dist"))
    assert decomposed(given, "cbc").objective_value == decomposed(given).objective_value


def test_the_same_input_has_the_same_answer() -> None:
    given = problem(small_instance("prof"))
    again = problem(small_instance("prof"))
    assert decomposed(given).decision == decomposed(again).decision


def test_no_price_whatever_gives_a_bound_below_the_optimum() -> None:
    given = problem(small_instance("dist"))
    optimum = whole(given).objective_value
    reduction = reduce_to_blocks(given, np.ones(len(given.workloads)))
    assert reduction is not None
    blocks = reduction.blocks
    random = np.random.default_rng(7)
    for _ in range(50):
        prices = Prices(random.uniform(0, 90, len(blocks.sizes)), np.zeros(0))
        assert price_blocks(blocks, items_if_few(blocks), prices).bound >= optimum - 1e-6


def test_equal_workloads_and_clusters_become_classes() -> None:
    given = problem(instance(100, 200, "prof"))
    reduction = reduce_to_blocks(given, np.ones(len(given.workloads)))
    assert reduction is not None
    assert len(reduction.blocks.copies) <= 12
    assert len(reduction.blocks.sizes) <= 32
    assert int(reduction.blocks.copies.sum()) == 100
    assert int(reduction.blocks.counts.sum()) == 200
    merged, _ = merge_identical_workloads(reduction.blocks)
    assert len(merge_identical_sites(merged)[1]) == len(reduction.blocks.copies)


def test_an_policy_that_another_replaces_at_no_loss_is_gone() -> None:
    given = problem(small_instance("dist"))
    resource = given.policies[0].supplies[0][0]
    worse = ProblemPolicy(given.policies[0].cluster, "", "worse", ((resource, 0.5),))
    more = replace(given, policies=(*given.policies, worse))
    for one in (given, more):
        reduction = reduce_to_blocks(one, np.ones(len(one.workloads)))
        assert reduction is not None
        assert len(reduction.blocks.mode_sites) == 4 * 6


def test_a_gap_is_a_promise_and_ends_the_search() -> None:
    given = problem(small_instance("dist"))
    solution = decomposed(given, gap=0.5)
    assert solution.bound is not None
    assert solution.bound >= whole(given).objective_value
    assert solution.gap is not None
    assert solution.gap <= 0.5


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.4])
def test_a_time_limit_is_kept_and_what_is_said_of_it_true(limit: float) -> None:
    given = problem(instance(30, 70, "dist"))
    started = time.process_time()
    solution = solve_problem(given, solver="highs", time_limit_seconds=limit)
    # CPU time: never more than wall-clock time, and independent of how busy the machine is.
    assert time.process_time() - started < limit + 2.0
    assert violations(given, solution.decision) == ()
    assert solution.objective_value == objective(given, solution.decision)
    assert solution.bound is not None
    assert solution.bound >= solution.objective_value
    assert solution.status != "Optimal" or solution.gap == 0.0


def test_what_runs_now_is_what_a_solver_falls_back_on() -> None:
    given = problem(instance(12, 28, "dist"))
    known = solve_problem(given, solver="highs", time_limit_seconds=60, gap=0.01)
    hurried = solve_problem(given, solver="highs", time_limit_seconds=0.0, incumbent=known.decision)
    assert hurried.objective_value >= known.objective_value
    assert hurried.decision != Decision()


def in_regions(given: Problem, regions: int) -> Problem:
    """The same problem where a workload runs in its region alone."""
    clusters = given.resource_cluster % regions
    workloads = np.arange(len(given.workloads)) % regions
    return replace(given, values=np.where(workloads[:, None] == clusters, given.values, np.nan))


def test_what_has_nothing_to_do_with_each_other_is_solved_apart() -> None:
    given = in_regions(problem(instance(9, 21, "dist")), 3)
    assert [len(part.workloads) for part in independent_components(given)] == [7, 7, 7]
    one, other = decomposed(given), whole(given)
    assert (one.status, other.status) == ("Optimal", "Optimal")
    assert one.objective_value == other.objective_value
    assert violations(given, one.decision) == ()


def test_what_is_found_in_one_part_is_reported_with_what_is_known_of_the_others() -> None:
    given = in_regions(problem(instance(9, 21, "dist")), 3)
    first, reported = greedy(given, lambda: False), list[Solution]()
    solution = solve_problem(
        given,
        solver="highs",
        time_limit_seconds=60,
        small=0,
        report=reported.append,
        clock=lambda: 0.0,
    )
    between = [one for one in reported if one.objective_value > objective(given, first)]
    assert len(between) > 3
    assert between[-1].objective_value == solution.objective_value
    assert [one for one in between if violations(given, one.decision)] == []


def test_rows_that_couple_clusters_keep_parts_together() -> None:
    given = in_regions(problem(instance(9, 21, "dist")), 3)
    counted = given.resource_cluster % 3 != 2
    limit = Limit("power", 5.0, counted, np.ones(21), np.zeros(len(given.policies)))
    coupled = replace(given, limits=(limit,))
    assert sorted(len(part.workloads) for part in independent_components(coupled)) == [7, 14]
    assert decomposed(coupled).objective_value == whole(coupled).objective_value


@pytest.mark.parametrize("kind", ["prof", "dist"])
def test_a_known_decision_is_where_the_search_starts(kind: Kind) -> None:
    given = problem(instance(12, 28, kind))
    known = solve_problem(given, solver="highs", time_limit_seconds=60, gap=0.02).decision
    reduction = reduce_to_blocks(given, np.ones(len(given.workloads)))
    assert reduction is not None
    start = reduction.columns(given, known)
    assert start.value(reduction.blocks) == objective(given, known)
    again = reduction.decision(given, start)
    assert objective(given, again) == objective(given, known)
    met: list[float] = []
    search_blocks(
        reduction.blocks,
        SolveContext("highs", 0.0, 0, Budget(60).left),
        start,
        on_incumbent=lambda incumbent, _: met.append(incumbent.value(reduction.blocks)),
    )
    assert met[0] == objective(given, known)
    assert met == sorted(met)


class Budget:
    """Time that passes by being looked at, so that a limit bites at the same point every run."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def left(self) -> float:
        self.looks -= 1
        return 60.0 if self.looks >= 0 else 0.0


@pytest.mark.parametrize(
    "kind", ["prof", "dist", pytest.param("rand", marks=pytest.mark.exhaustive)]
)
def test_the_answer_and_its_bound_never_get_worse_with_more_time(kind: Kind) -> None:
    given = problem(instance(10, 24, kind))
    reduction = reduce_to_blocks(given, np.ones(len(given.workloads)))
    assert reduction is not None
    blocks = reduction.blocks
    found = [
        search_blocks(blocks, SolveContext("highs", 0.0, 0, seconds_left=Budget(looks).left))
        for looks in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 4_000)
    ]
    values = [one.incumbent.value(blocks) for one in found]
    bounds = [one.bound for one in found]
    assert values == sorted(values)
    assert bounds == sorted(bounds, reverse=True)
    assert values[0] < values[-1] <= bounds[-1]


@pytest.mark.parametrize("small", [0, EVERYTHING])
def test_what_is_reported_on_the_way_gets_ever_better_and_is_true(small: int) -> None:
    given = problem(instance(12, 28, "dist"))
    reported: list[Solution] = []
    last = solve_problem(
        given,
        solver="highs",
        time_limit_seconds=60,
        gap=0.005,
        small=small,
        incumbent=Decision(),
        report=reported.append,
    )
    values = [solution.objective_value for solution in (*reported, last)]
    assert reported
    assert values == sorted(values)
    for solution in reported:
        assert violations(given, solution.decision) == ()
        assert solution.objective_value == objective(given, solution.decision)
        assert solution.bound is not None
        assert solution.bound >= last.objective_value


def with_cpu(given: Problem) -> Problem:
    """The same problem where every workload takes cpu of its cluster too, which is scarce."""
    resources = tuple(
        ClusterResource(cluster, "cpu", NO_DEVICE) for cluster in range(len(given.clusters))
    )
    supply = [
        max(policy.supplies[0][1] for policy in given.policies if policy.cluster == cluster)
        for cluster in range(len(given.clusters))
    ]
    workloads = tuple(
        replace(workload, requests=(("cpu", workload.amount * (0.5 + index % 5)),))
        for index, workload in enumerate(given.workloads)
    )
    return replace(
        given,
        resources=(*given.resources, *resources),
        workloads=workloads,
        values=np.hstack([given.values, np.full((len(workloads), len(resources)), np.nan)]),
        base=np.concatenate([given.base, 1.2 * np.array(supply)]),
    )


def test_sites_that_ask_for_too_much_of_a_further_kind_still_get_something() -> None:
    given = with_cpu(problem(instance(12, 28, "dist")))
    reduction = reduce_to_blocks(given, np.ones(len(given.workloads)))
    assert reduction is not None
    found = search_blocks(
        reduction.blocks, SolveContext("highs", 0.0, 0, seconds_left=lambda: 60.0)
    )
    decision = reduction.decision(given, found.incumbent)
    assert violations(given, decision) == ()
    assert objective(given, decision) >= 0.9 * found.bound


def test_a_gap_holds_for_what_is_left_to_the_solver_too() -> None:
    """One model of everything needs a hundred times as long to prove the last few percent."""
    solution = solve_problem(
        with_cpu(problem(instance(8, 20, "dist"))),
        solver="highs",
        time_limit_seconds=60,
        gap=0.1,
        small=EVERYTHING,
    )
    assert solution.status == "Feasible"
    assert solution.gap is not None
    assert 0 < solution.gap <= 0.1


def test_of_equal_decisions_the_one_that_runs_now_is_taken() -> None:
    resources = (ClusterResource(0, "gpu", "d"), ClusterResource(1, "gpu", "d"))
    policies = tuple(ProblemPolicy(cluster, "", "p", ((cluster, 1.0),)) for cluster in (0, 1))
    for now in (0, 1):
        workload = ProblemWorkload("w", "w", "gpu", 1.0, current=(now,))
        given = Problem(
            ("c0", "c1"), resources, policies, (workload,), np.full((1, 2), 7.0), np.zeros(2)
        )
        assert whole(given).decision.assignments == (Assignment("w", f"c{now}", "d"),)


def tiered(given: Problem, priorities: int, seed: int) -> Problem:
    """The same problem with priorities drawn from a seed."""
    drawn = np.random.default_rng(seed).integers(0, priorities, len(given.workloads)).tolist()
    workloads = zip(given.workloads, drawn, strict=True)
    return replace(
        given, workloads=tuple(replace(workload, priority=own) for workload, own in workloads)
    )


def check_tiers(seed: int) -> None:
    """Equal brute force tier by tier, reported ever better on the way, with bounds that hold."""
    given = tiered(random_problem(seed), 3, seed)
    reported: list[Solution] = []
    solution = solve_problem(
        given, solver="highs", time_limit_seconds=60, small=0, report=reported.append
    )
    wanted = best(given).values
    every = [tier_values(given, one.decision) for one in (*reported, solution)]
    assert every[-1] == pytest.approx(wanted)
    for earlier, later in pairwise(every):
        assert [round(value, 6) for value in earlier] <= [round(value, 6) for value in later]
    for tier, (own, most) in enumerate(zip(solution.tiers, wanted, strict=True)):
        if every[-1][:tier] == pytest.approx(wanted[:tier]):
            assert own.bound >= most - 1e-6


@pytest.mark.parametrize("seed", [pytest.param(5, marks=pytest.mark.exhaustive), 11])
def test_every_priority_has_what_brute_force_gives_it(seed: int) -> None:
    check_tiers(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_every_priority_has_what_brute_force_gives_it_in_many_problems(seed: int) -> None:
    check_tiers(seed)


def test_what_policies_cost_is_never_more_than_what_a_higher_priority_has() -> None:
    """Also where the part that they belong to has no workload of the last priority."""
    given = Problem(
        clusters=("one", "two"),
        resources=(ClusterResource(0, "gpu", "d"), ClusterResource(1, "gpu", "d")),
        policies=(
            ProblemPolicy(0, "", "dear", ((0, 1.0),), value=-3.0),
            ProblemPolicy(1, "", "free", ((1, 1.0),)),
        ),
        workloads=(
            ProblemWorkload("first", "", "gpu", 1.0, priority=5),
            ProblemWorkload("last", "", "gpu", 1.0),
        ),
        values=np.array([[2.0, np.nan], [np.nan, 4.0]]),
        base=np.zeros(2),
    )
    solution = decomposed(given)
    assert (solution.status, [tier[1:] for tier in solution.tiers]) == (
        "Optimal",
        [(2.0, 2.0), (1.0, 1.0)],
    )


def test_a_dear_policy_that_a_higher_priority_needs_is_enforced() -> None:
    """The greedy decision takes the free one, which has room for the better half."""
    given = Problem(
        clusters=("c",),
        resources=(ClusterResource(0, "gpu", "d"), ClusterResource(0, "gpu", "e")),
        policies=(
            ProblemPolicy(0, "", "free", ((0, 1.0),)),
            ProblemPolicy(0, "", "dear", ((1, 2.0),), value=-3.0),
        ),
        workloads=(
            ProblemWorkload("one", "", "gpu", 1.0, priority=5),
            ProblemWorkload("two", "", "gpu", 1.0, priority=5),
            ProblemWorkload("last", "", "gpu", 1.0),
        ),
        values=np.array([[8.0, 5.0], [7.0, 5.0], [1.0, 1.0]]),
        base=np.zeros(2),
    )
    assert tier_values(given, greedy(given, lambda: False)) == (8.0, 0.0)
    solution = decomposed(given)
    assert (solution.status, [tier[1:] for tier in solution.tiers]) == (
        "Optimal",
        [(10.0, 10.0), (-3.0, -3.0)],
    )


@pytest.mark.parametrize("seed", [57, 167])
def test_nothing_to_be_had_is_seen_in_few_steps(seed: int) -> None:
    """A bound that goes to 0 is not lowered by ever smaller shares of itself."""
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    solution = solve_problem(
        random_problem(seed), solver="highs", time_limit_seconds=60, small=0, clock=clock
    )
    assert (solution.status, solution.objective_value) == ("Optimal", 0.0)
    assert looks < 4_000


def test_what_a_higher_priority_rules_out_is_not_searched_again() -> None:
    """The search asks for the time 318 times, and 485 times where nothing is ruled out."""
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    given = tiered(problem(instance(4, 10, "dist")), 2, 1)
    solution = solve_problem(given, solver="highs", time_limit_seconds=60, small=0, clock=clock)
    assert solution.status == "Optimal"
    assert looks < 400
