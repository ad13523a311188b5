"""Pareto sets compared with brute force."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import Fleet, Objective
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.explain.solver_ports import LinearSolution
from optimizer.explain.tradeoffs.pareto_set import (
    FRACTIONAL_STEP,
    MultiObjectiveProblem,
    multi_objective,
    pareto_set,
)
from optimizer.model.formulate import formulate
from optimizer.model.rules import RULES, Row
from optimizer.wire.explanation import ParetoSet
from tests.optimizer.build import PERFORMANCE, POWER, fleet
from tests.optimizer.explain.solvers import LINEAR
from tests.optimizer.random_problems import random_fleet

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


def undominated(given: MultiObjectiveProblem) -> set[tuple[float, ...]]:
    """Try every decision."""
    count = given.worth.shape[1]
    subsets = ((np.arange(2**count)[:, np.newaxis] >> np.arange(count)) & 1).astype(float)
    for rule in RULES:
        for row in rule(given.problem):
            subsets = subsets[subsets[:, row.columns] @ row.coefficients <= row.limit + 1e-9]
    values = {tuple(row) for row in np.round(subsets @ given.worth.T, 6).tolist()}
    return {
        one
        for one in values
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


def test_truncated_sets_say_so() -> None:
    given = guide()
    found = pareto_set(
        multi_objective(given, formulate(given), ["performance", "power"]), LINEAR, most=2
    )
    assert (len(found.points), found.complete) == (2, False)
    assert found.message == "no more than 2 points are looked for"


def test_without_time_no_point_is_claimed() -> None:
    def spent(weights: Floats, rows: Sequence[Row], relaxed: bool) -> LinearSolution:
        return LinearSolution("NotSolved", np.zeros(len(weights)), np.zeros(len(rows)))

    given = guide()
    found = pareto_set(
        multi_objective(given, formulate(given), ["performance", "power"]), spent, most=MOST
    )
    assert (found.points, found.complete) == ((), False)


def check(given: Fleet, names: list[str]) -> None:
    made = multi_objective(given, formulate(given), names)
    found = pareto_set(made, LINEAR, most=MOST)
    assert found.complete
    assert points(found) == undominated(made)
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


@pytest.mark.parametrize("seed", range(6))
def test_sets_of_two_scores_are_those_of_all_decisions(seed: int) -> None:
    check(random_fleet(seed, most_variables=13), ["speed", "power"])


@pytest.mark.parametrize("seed", range(3))
def test_sets_of_three_scores_are_those_of_all_decisions(seed: int) -> None:
    check(three_scores(seed), ["speed", "power", "third"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3_000, 3_100))
def test_many_sets(seed: int) -> None:
    check(random_fleet(seed, most_variables=14), ["speed", "power"])
    check(three_scores(seed), ["speed", "power", "third"])
