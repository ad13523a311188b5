"""Runner-ups, margins and the losses of forced decisions, compared with brute force."""

from dataclasses import replace

import numpy as np
import pytest

from optimizer.domain.fleet import Fleet, FleetLimit
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import (
    Assignment,
    Decision,
    PolicyEnforcement,
    Solution,
    Status,
    Variable,
)
from optimizer.explain.case import ProblemSolver
from optimizer.explain.forced_problems import SymmetricExchange, objective_loss, solve_forced
from optimizer.explain.margins import Margins
from optimizer.explain.why_not import why_not
from optimizer.model.formulate import formulate
from optimizer.model.objective import tier_values
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES, violations
from optimizer.wire.explanation import AssignmentReason, RunnerUp, WhyNotAnswer, WhyNotQuestion
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE, spent
from tests.optimizer.random_problems import random_fleet

GUIDE_VALUES = {("a", "3g"): 60.0, ("b", "3g"): 55.0, ("a", "2g"): 10.0, ("b", "2g"): 15.0}
GUIDE = fleet(
    {"one": [("all", 1), ("3g", 2)], "two": [("3g", 2), ("2g", 3)]},
    {"a": 2, "b": 2},
    {
        (cluster, app, device): score
        for cluster in ("one", "two")
        for (app, device), score in GUIDE_VALUES.items()
    },
)


def margins(problem: Problem, solution: Solution, solve: ProblemSolver) -> Margins:
    """Margins, as far as the solver tells them."""
    found = Margins(problem, solution, solve)
    for _ in found.steps():
        pass
    return found


def reasons(
    problem: Problem, solution: Solution, solve: ProblemSolver = RESOLVE
) -> list[AssignmentReason]:
    return list(margins(problem, solution, solve).reasons())


def asked(
    given: Fleet, solve: ProblemSolver = RESOLVE, /, cluster: str = "", **question: str
) -> WhyNotAnswer:
    """Why the best solution of a fleet lacks what is asked about."""
    problem = formulate(given)
    named = WhyNotQuestion(cluster=cluster, **question)
    return why_not(given, problem, RESOLVE(problem), named, solve)


def twins(given: Fleet) -> Fleet:
    """A fleet in which the first workload and the first cluster have an equal."""
    first, cluster = given.workloads[0], given.clusters[0]
    scores = {
        name: ScoreMatrix.of(
            dict(held)
            | {("twin", *key[1:]): value for key, value in held.items() if key[0] == cluster.name}
        )
        for name, held in given.scores.items()
    }
    return replace(
        given,
        workloads=(*given.workloads, replace(first, name="twin")),
        clusters=(*given.clusters, replace(cluster, name="twin")),
        scores=scores,
    )


def values_with(problem: Problem, variable: Variable, *, chosen: bool) -> tuple[float, ...] | None:
    """The best value by tier of all decisions that have a variable, or that lack it."""
    count = len(problem.weights())
    subsets = ((np.arange(2**count)[:, np.newaxis] >> np.arange(count)) & 1).astype(float)
    subsets = subsets[subsets[:, problem.variables.index(variable)] == float(chosen)]
    for rule in RULES:
        for row in rule(problem):
            subsets = subsets[subsets[:, row.columns] @ row.coefficients <= row.limit + 1e-9]
    found = []
    for tier in range(len(problem.tiers)):
        if not len(subsets):
            return None
        worth = subsets @ problem.weights(tier)
        found.append(float(worth.max()))
        subsets = subsets[worth >= worth.max() - 1e-9]
    return tuple(found)


def test_a_place_has_a_runner_up_and_a_margin() -> None:
    problem = formulate(GUIDE)
    first, _ = reasons(problem, RESOLVE(problem))
    assert (first.workload, first.cluster, first.score) == ("a", "one", 60)
    assert first.runner_up is not None
    assert (first.runner_up.cluster, first.runner_up.score) == ("two", 60)
    assert first.margin is not None
    assert first.margin.total == 0
    assert [item.cluster for item in first.instead] == ["two"]


A_OR_B = {("c", "a", "3g"): 60.0, ("c", "b", "3g"): 90.0, ("d", "a", "2g"): 10.0}
TOGETHER = {("c", "a", "3g"): 60.0, ("c", "a", "2g"): 40.0, ("c", "b", "2g"): 30.0}


@pytest.mark.parametrize(
    ("given", "better"),
    [
        (fleet({"c": [("3g", 2)], "d": [("2g", 2)]}, {"a": 2, "b": 2}, A_OR_B), ("3g", ("b",))),
        (fleet({"c": [("3g", 1), ("2g", 2)]}, {"a": 1, "b": 1}, TOGETHER), ("3g", ("b",))),
        (fleet({"c": [("3g", 1), ("2g", 2)]}, {"a": 1}, TOGETHER), ("2g", ())),
    ],
    ids=["who has the device", "who has the cluster", "another policy is free to be chosen"],
)
def test_who_has_the_runner_up_is_told(given: Fleet, better: tuple[str, tuple[str, ...]]) -> None:
    problem = formulate(given)
    first, *_ = reasons(problem, RESOLVE(problem))
    assert first.runner_up is not None
    assert (first.runner_up.device, first.runner_up.taken_by) == better


def test_another_replica_is_no_runner_up() -> None:
    scores = {("c", "a", "3g"): 60.0, ("d", "a", "2g"): 10.0}
    given = fleet({"c": [("3g", 2)], "d": [("2g", 2)]}, {"a": 2}, scores)
    twice = replace(given, workloads=(replace(given.workloads[0], replicas=2),))
    problem = formulate(twice)
    assert [item.runner_up for item in reasons(problem, RESOLVE(problem))] == [None, None]


def test_without_time_there_is_no_margin() -> None:
    problem = formulate(GUIDE)
    solution = RESOLVE(problem)
    found = reasons(problem, solution, spent)
    assert [item.margin for item in found] == [None, None]
    assert found[0].runner_up is not None


@pytest.mark.parametrize(
    ("question", "lost"),
    [({"workload": "a", "device": "2g"}, 115 - (10 + 55)), ({"policy": "2g"}, 115 - (60 + 15))],
)
def test_why_not_another_device_or_policy(question: dict[str, str], lost: float) -> None:
    found = asked(GUIDE, cluster="two", **question)
    assert found.lost is not None
    assert found.lost.total == lost
    late = asked(GUIDE, spent, cluster="two", **question)
    assert (late.possible, late.message) == (None, "not computed in time")


def test_a_forced_workload_counts_towards_a_fleet_wide_limit() -> None:
    """Only one of the two may run, and each has a priority of its own."""
    scores = {(at, *key): value for at in ("one", "two") for key, value in GUIDE_VALUES.items()}
    given = fleet({"one": [("3g", 2)], "two": [("3g", 2)]}, {"a": 2, "b": 2}, scores)
    a, b = (replace(item, uses=(("watts", 5.0),)) for item in given.workloads)
    limit = FleetLimit("power", 5.0, uses="watts")
    given = replace(given, workloads=(replace(a, priority=1), b), limits=(limit,))
    found = asked(given, workload="b", cluster="one", device="3g")
    assert found.lost is not None
    assert found.lost.by_priority == {1: 60, 0: -55}


BARE = replace(GUIDE, clusters=tuple(replace(c, candidates=()) for c in GUIDE.clusters))

DRAINED = replace(GUIDE, clusters=tuple(replace(c, drained="until noon") for c in GUIDE.clusters))


@pytest.mark.parametrize(
    ("given", "question", "says"),
    [
        (GUIDE, {"workload": "a", "cluster": "one", "device": "all"}, "NoSupply: No policy"),
        (GUIDE, {"policy": "none", "cluster": "one"}, "it is not a candidate there"),
        (GUIDE, {"workload": "x", "cluster": "one"}, "the request names no workload x"),
        (GUIDE, {"workload": "a", "cluster": "x"}, "the request names no cluster x"),
        (BARE, {"workload": "a", "cluster": "one"}, "cluster one supplies no gpu"),
        (DRAINED, {"workload": "a", "cluster": "one"}, "Drained: The cluster is drained"),
    ],
)
def test_why_not_where_it_is_impossible(given: Fleet, question: dict[str, str], says: str) -> None:
    found = asked(given, **question)
    assert found.possible is False
    assert says in found.message
    assert "NoSupply" not in found.message or says.startswith("NoSupply")


def test_a_decision_bounds_the_margins_of_all_assignments_that_it_lacks() -> None:
    """The best decision without either assignment has the other policy, so it lacks both."""
    scores = {("c", "a", "3g"): 30.0, ("c", "b", "3g"): 31.0}
    scores |= {("c", app, "2g"): 20.0 for app in "ab"}
    problem = formulate(fleet({"c": [("3g", 2), ("2g", 2)]}, {"a": 1, "b": 1}, scores))
    found = Margins(problem, RESOLVE(problem), RESOLVE)
    seen = [[(item.lost.total, item.exact) for item in found.known.values()] for _ in found.steps()]
    assert seen[-2:] == [[(21, True), (21, False)], [(21, True), (21, True)]]


@pytest.mark.parametrize("apps", ["ab", "a"])
def test_equals_settle_margins_without_any_solver(apps: str) -> None:
    """Equal workloads change places; a workload without equals moves to an equal cluster."""
    scores = {(c, app, "3g"): 10.0 for c in ("one", "two") for app in apps}
    given = fleet({c: [("3g", 2)] for c in ("one", "two")}, dict.fromkeys(apps, 2), scores)
    problem = formulate(given)
    solution = RESOLVE(problem)
    found = Margins(problem, solution, spent)
    next(found.steps())
    for number, before in enumerate(solution.decision.assignments):
        margin = found.known[number]
        assert (margin.exact, margin.lost.total) == (True, 0)
        assert before not in margin.decision.assignments
        assert len(margin.decision.assignments) == len(apps)


@pytest.mark.parametrize("lost", [4e-9, 0.3])
def test_a_loss_is_exact_to_nine_places(lost: float) -> None:
    scores = {("c", "a", "3g"): 10.0 + lost, ("d", "a", "3g"): 10.0}
    problem = formulate(fleet({"c": [("3g", 2)], "d": [("3g", 2)]}, {"a": 2}, scores))
    on_c, on_d = (
        Decision((PolicyEnforcement(at, "3g"),), (Assignment("a", at, "3g"),)) for at in "cd"
    )
    assert objective_loss(problem, on_c, on_d).total == lost


def test_a_loss_over_priorities_has_no_rounding_error() -> None:
    """As floats, 1000000.1 and 0.2 add up to 1000000.2999999999."""
    scores = {("c", "a", "3g"): 1000000.1, ("c", "b", "3g"): 0.2}
    given = fleet({"c": [("3g", 2)]}, {"a": 1, "b": 1}, scores)
    a, b = given.workloads
    problem = formulate(replace(given, workloads=(replace(a, priority=1), b)))
    lost = objective_loss(problem, RESOLVE(problem).decision, Decision())
    assert (lost.total, lost.by_priority) == (1000000.3, {1: 1000000.1, 0: 0.2})


@pytest.mark.parametrize("status", ["Optimal", "Infeasible"])
def test_what_no_best_solution_has_is_not_possible(status: Status) -> None:
    problem = formulate(GUIDE)
    without = replace(spent(problem), status=status)
    found = solve_forced(problem, Decision(), problem, lambda _: without, times=1)
    assert (found.possible, found.lost) == (False, None)


@pytest.mark.parametrize("seed", range(12))
def test_equals_change_hands_at_no_loss(seed: int) -> None:
    problem = formulate(twins(random_fleet(seed, most_variables=12)))
    solution = RESOLVE(problem)
    equals = SymmetricExchange(problem)
    for place in solution.decision.assignments:
        other = equals.without(solution.decision, place)
        if other is not None:
            assert place not in other.assignments
            assert violations(problem, other) == ()
            assert tier_values(problem, other) == tier_values(problem, solution.decision)


def check(given: Fleet) -> None:
    problem = formulate(given)
    solution = RESOLVE(problem)
    before = tier_values(problem, solution.decision)
    for number, item in margins(problem, solution, RESOLVE).known.items():
        place = solution.decision.assignments[number]
        assert place not in item.decision.assignments
        assert violations(problem, item.decision) == ()
        without = values_with(problem, place, chosen=False)
        assert without is not None
        after = tier_values(problem, item.decision)
        assert after <= tuple(value + 1e-6 for value in without)
    for reason, place in zip(
        reasons(problem, solution), solution.decision.assignments, strict=True
    ):
        assert reason.margin is not None
        without = values_with(problem, place, chosen=False)
        assert without is not None
        assert reason.margin.total == pytest.approx(sum(before) - sum(without))
        if reason.runner_up and reason.runner_up.taken_by:
            check_taken(problem, solution.decision, place, reason.runner_up)
    for variable in problem.variables:
        check_force(given, problem, solution, variable)


def check_taken(problem: Problem, decision: Decision, place: Assignment, other: RunnerUp) -> None:
    there = {item.workload for item in decision.assignments if item.cluster == other.cluster}
    assert there >= set(other.taken_by)
    moved = Assignment(place.workload, other.cluster, other.device)
    left = [item for item in decision.assignments if item != place]
    assert violations(problem, replace(decision, assignments=(*left, moved)))


def check_force(given: Fleet, problem: Problem, solution: Solution, variable: Variable) -> None:
    match variable:
        case Assignment(workload, cluster, device):
            question = WhyNotQuestion(workload=workload, cluster=cluster, device=device)
        case PolicyEnforcement(cluster, policy):
            question = WhyNotQuestion(policy=policy, cluster=cluster)
    found = why_not(given, problem, solution, question, RESOLVE)
    best = values_with(problem, variable, chosen=True)
    assert found.possible is (best is not None)
    if best is not None:
        before = tier_values(problem, solution.decision)
        assert found.lost is not None
        assert found.lost.total == pytest.approx(sum(before) - sum(best))


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(2_000, 2_060), marks=pytest.mark.long)]
)
def test_margins_and_force_agree_with_trying_everything(seeds: range) -> None:
    for seed in seeds:
        check(random_fleet(seed, most_variables=12))
