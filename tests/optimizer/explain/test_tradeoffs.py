"""Dual prices, and Pareto sets compared with brute force."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import CandidatePolicy, Fleet, FleetLimit, Objective, Supply
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Decision
from optimizer.explain.tradeoffs import (
    FRACTIONAL_STEP,
    MultiObjectiveProblem,
    binding_limits,
    multi_objective,
    pareto_set,
)
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES, Row
from optimizer.solve.solver_adapters import SolverResult
from optimizer.wire.explanation import ParetoSet
from tests.optimizer.build import PERFORMANCE, POWER, fleet
from tests.optimizer.explain.solvers import LINEAR, RESOLVE
from tests.optimizer.random_problems import random_fleet, random_problem

SCORES = {("c", "first", "3g"): 50.0, ("c", "second", "3g"): 20.0, ("c", "third", "3g"): 8.0}


def test_the_price_of_one_more_device_is_what_the_next_workload_would_add() -> None:
    given = fleet({"c": [("3g", 2)]}, {"first": 1, "second": 1, "third": 1}, SCORES)
    problem = formulate(given)
    (found,) = binding_limits(problem, RESOLVE(problem).decision, LINEAR)
    assert (found.cluster, found.limit, found.used) == ("c", "gpu 3g of cluster c", 2)
    assert found.price == {0: 8.0}


def test_a_part_of_a_unit_is_used_in_full() -> None:
    given = fleet({"c": [("3g", 1)]}, {"first": 1, "second": 1}, SCORES)
    half = tuple(replace(item, amount=0.5) for item in given.workloads[:1])
    policy = CandidatePolicy("half", (Supply("gpu", "3g", 0.5),))
    clusters = (replace(given.clusters[0], candidates=(policy,)),)
    problem = formulate(replace(given, workloads=half, clusters=clusters))
    (found,) = binding_limits(problem, RESOLVE(problem).decision, LINEAR)
    assert (found.limit, found.used) == ("gpu 3g of cluster c", 0.5)


def test_what_is_not_used_up_is_not_binding() -> None:
    given = fleet({"c": [("3g", 4)]}, {"first": 1, "second": 1, "third": 1}, SCORES)
    problem = formulate(given)
    assert binding_limits(problem, RESOLVE(problem).decision, LINEAR) == ()


def test_fleet_wide_limits_bind_too() -> None:
    given = fleet({"c": [("3g", 4)]}, {"first": 1, "second": 1, "third": 1}, SCORES)
    given = replace(
        given,
        workloads=tuple(replace(item, uses=(("watts", 5.0),)) for item in given.workloads),
        limits=(FleetLimit("power", 10.0, uses="watts"),),
    )
    problem = formulate(given)
    (found,) = binding_limits(problem, RESOLVE(problem).decision, LINEAR)
    assert (found.cluster, found.limit) == ("", "power is at most 10")
    assert found.price is not None
    assert found.price[0] == pytest.approx(8 / 5)


def test_a_price_holds_while_higher_priorities_lose_nothing() -> None:
    """A part of the device that `first` gives up would be enough for `second`."""
    given = fleet({"c": [("3g", 1)]}, {"first": 1, "second": 1}, SCORES)
    first, second = given.workloads
    workloads = (replace(first, priority=1), replace(second, amount=0.01))
    problem = formulate(replace(given, workloads=workloads))
    (found,) = binding_limits(problem, RESOLVE(problem).decision, LINEAR)
    assert found.price is not None
    assert found.price[0] == pytest.approx(20 / 0.01)


def relaxed_value(problem: Problem, decision: Decision, says: str, more: float) -> float | None:
    """The value of the relaxation under chosen policies if a limit were higher; None: no value."""
    options = np.array(
        [
            choice in decision.policies
            for choice in map(problem.enforcement, range(len(problem.policies)))
        ],
        dtype=np.bool_,
    )
    part = problem.restricted(~np.isnan(problem.values), options)
    rows = [row for rule in RULES for row in rule(part)]
    rows = [replace(row, limit=row.limit + more * row.says.startswith(says)) for row in rows]
    stay = np.arange(len(part.policies))
    rows.append(Row("stay", stay, np.full(len(stay), -1.0), -float(len(stay))))
    answer = LINEAR(part.weights(), rows, True)
    return float(part.weights() @ answer.values) if answer.status == "Optimal" else None


def check_prices(seed: int) -> int:
    problem = random_problem(seed)
    decision = RESOLVE(problem).decision
    if len(problem.tiers) > 1:  # there a price holds under what higher priorities got
        return 0
    limits = binding_limits(problem, decision, LINEAR)
    for found in limits:
        values = [relaxed_value(problem, decision, found.limit, more) for more in (-0.5, 0, 0.5)]
        less, now, more = values
        assert found.price is not None
        assert now is not None
        assert more is not None
        price = found.price[problem.tiers[0]] / 2
        assert more - now <= price + 1e-6
        assert less is None or price <= now - less + 1e-6
    return len(limits)


@pytest.mark.parametrize(
    ("seeds", "least"),
    [(range(20), 5), pytest.param(range(4_000, 4_200), 100, marks=pytest.mark.exhaustive)],
)
def test_prices_are_slopes_of_the_relaxation(seeds: range, least: int) -> None:
    assert sum(map(check_prices, seeds)) > least


MOST = 40


def guide() -> Fleet:
    supplies = {name: [("2g.24gb", 3), ("3g.48gb", 2), ("all", 1)] for name in ("one", "two")}
    given = fleet(supplies, {"app01": 2, "app02": 2}, {})
    tables = {
        name: ScoreMatrix.of({(c, *key): value for c in supplies for key, value in table.items()})
        for name, table in (("performance", PERFORMANCE), ("power", POWER))
    }
    return Fleet(
        "default",
        given.clusters,
        given.workloads,
        tables,
        (Objective("performance"), Objective("power")),
    )


def points(found: ParetoSet) -> set[tuple[float, ...]]:
    return {tuple(point.values.values()) for point in found.points}


def undominated(given: MultiObjectiveProblem) -> dict[tuple[float, ...], set[tuple[float, ...]]]:
    """Try every decision; return the sums of published scores by what they are worth."""
    count = given.worth.shape[1]
    subsets = ((np.arange(2**count)[:, np.newaxis] >> np.arange(count)) & 1).astype(float)
    for rule in RULES:
        for row in rule(given.problem):
            subsets = subsets[subsets[:, row.columns] @ row.coefficients <= row.limit + 1e-9]
    values = dict[tuple[float, ...], set[tuple[float, ...]]]()
    sums = (np.round(subsets @ part.T, 6).tolist() for part in (given.worth, given.raw))
    for worth, raw in zip(*sums, strict=True):
        values.setdefault(tuple(worth), set()).add(tuple(raw))
    return {
        one: raw
        for one, raw in values.items()
        if not any(
            other != one and all(x >= y for x, y in zip(other, one, strict=True))
            for other in values
        )
    }


def test_the_guides_points_between_performance_and_power() -> None:
    given = guide()
    found = pareto_set(
        multi_objective(given, formulate(given), ["performance", "power"]), LINEAR, most=MOST
    )
    assert found.complete
    assert [tuple(point.values.values()) for point in found.points] == [
        (115.0, 85.0),
        (75.0, 120.0),
        (65.0, 135.0),
        (25.0, 170.0),
    ]
    assert found.points[0].policies[0].policy == "3g.48gb"


def test_a_score_of_which_less_is_better_is_summed_as_published() -> None:
    less = Objective("power", minimum=0, maximum=101, invert=True)
    given = replace(guide(), objectives=(Objective("performance"), less))
    names = ["performance", "power"]
    found = pareto_set(multi_objective(given, formulate(given), names), LINEAR, most=MOST)
    assert [tuple(point.values.values()) for point in found.points] == [(115.0, 85.0)]


def test_without_any_candidate_the_only_point_is_empty() -> None:
    given = fleet({"c": []}, {"a": 1}, {})
    found = pareto_set(multi_objective(given, formulate(given), ["score"]), LINEAR, most=9)
    assert (points(found), found.complete) == ({(0.0,)}, True)


def test_truncated_sets_say_so() -> None:
    given = guide()
    found = pareto_set(
        multi_objective(given, formulate(given), ["performance", "power"]), LINEAR, most=2
    )
    assert (len(found.points), found.complete) == (2, False)
    assert found.message == "no more than 2 points are looked for"


def test_without_time_no_point_is_claimed() -> None:
    def spent(weights: Floats, rows: Sequence[Row], relaxed: bool) -> SolverResult:
        return SolverResult("NotSolved", np.zeros(len(weights)), None, np.zeros(len(rows)))

    given = guide()
    found = pareto_set(
        multi_objective(given, formulate(given), ["performance", "power"]), spent, most=MOST
    )
    assert (found.points, found.complete) == ((), False)


def check_set(given: Fleet, names: list[str]) -> None:
    made = multi_objective(given, formulate(given), names)
    found = pareto_set(made, LINEAR, most=MOST)
    assert found.complete
    expected = undominated(made)
    assert len(found.points) == len(expected)
    assert all(sums & points(found) for sums in expected.values())
    assert len(points(found)) == len(found.points)


@pytest.mark.parametrize(("scale", "step"), [(1.0, 1.0), (0.01, 0.6 * FRACTIONAL_STEP)])
def test_a_step_of_fractional_scores_is_a_part_of_the_largest(scale: float, step: float) -> None:
    scaled = {key: scale * value for key, value in guide().scores["performance"].items()}
    given = replace(guide(), scores={**guide().scores, "performance": ScoreMatrix.of(scaled)})
    made = multi_objective(given, formulate(given), ["performance", "power"])
    assert made.steps.tolist() == pytest.approx([step, 1.0])


def three_scores(seed: int) -> Fleet:
    drawn = random_fleet(seed, most_variables=12)
    third = {key: float((value * 7 + 13) % 31) for key, value in drawn.scores["speed"].items()}
    scores = {**drawn.scores, "third": ScoreMatrix.of(third)}
    objectives = tuple(map(Objective, scores))
    return Fleet(drawn.namespace, drawn.clusters, drawn.workloads, scores, objectives, drawn.limits)


@pytest.mark.parametrize(
    ("twos", "threes"),
    [
        (range(6), range(3)),
        pytest.param(range(3_000, 3_100), range(3_000, 3_100), marks=pytest.mark.exhaustive),
    ],
)
def test_sets_are_those_of_all_decisions(twos: range, threes: range) -> None:
    for seed in twos:
        check_set(random_fleet(seed, most_variables=13), ["speed", "power"])
    for seed in threes:
        check_set(three_scores(seed), ["speed", "power", "third"])
