"""When a solve ends, by a ticking clock: by proof, gap or limit; and what it finds."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.optimizer.families.generators import FAMILIES, draw
from benchmarks.optimizer.instances import instance, problem
from benchmarks.optimizer.priorities import tiered
from optimizer.domain.solution import Solution
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve import decomposition, tuning
from optimizer.solve.strategy import solve_problem


class Ticking:
    """A clock that ticks whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def solved(given: Problem, limit: float) -> tuple[Solution, float]:
    """Return the solution over blocks, and the time at its end."""
    clock = Ticking()
    solution = solve_problem(given, solver="highs", time_limit_seconds=limit, small=0, clock=clock)
    return solution, clock.now


@pytest.mark.parametrize("limit", [60.0, 120.0, 180.0])
def test_the_search_asks_for_the_time_and_ends_when_it_is_up(limit: float) -> None:
    _, ended = solved(problem(instance(10, 24, "dist")), limit)
    assert 0.8 * limit <= ended <= 1.1 * limit


def stubborn() -> Problem:
    """Return a problem whose proof takes longer than one pass of the search."""
    return problem(instance(20, 50, "prof", 2))


def stubborn_component() -> Problem:
    """Return the like in a component that comes first, and another that is solved at once."""
    given = problem(instance(24, 54, "prof", 2))
    values = given.values.copy()
    last = given.resource_cluster >= 20
    values[:50, last] = np.nan
    values[50:, ~last] = np.nan
    return replace(given, values=values)


def stubborn_priority() -> Problem:
    return tiered(problem(instance(15, 36, "prof", 3)), 2)


@pytest.mark.parametrize(
    "make",
    [
        stubborn,
        *(
            pytest.param(make, marks=pytest.mark.exhaustive)
            for make in (stubborn_component, stubborn_priority)
        ),
    ],
)
def test_without_a_proof_only_the_limit_ends_a_search(
    make: Callable[[], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where too much is unfixed to leave the rest to a solver, as in large problems."""
    monkeypatch.setattr(decomposition, "RESTRICTED_CORE_VARIABLES", 0)
    limit = 1_200.0
    solution, ended = solved(make(), limit)
    assert solution.status == "Optimal" or ended >= 0.95 * limit


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_the_same_optimum_over_blocks_and_in_one_model(family: str) -> None:
    given = draw(family, 4, 9, 1)
    blocks, model = (
        solve_problem(given, solver="highs", time_limit_seconds=60.0, small=small)
        for small in (0, 10**9)
    )
    assert blocks.status == model.status == "Optimal"
    assert [tier.value for tier in blocks.tiers] == [tier.value for tier in model.tiers]
    assert violations(given, blocks.decision) == ()


@pytest.mark.parametrize(
    "family", ["cluster", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in FAMILIES)]
)
def test_bounds_over_sifted_items_hold_and_decisions_get_ever_better(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the largest problems: no bound that is reported on the way is below the optimum."""
    given = draw(family, 4, 9, 2)
    best = solve_problem(given, solver="highs", time_limit_seconds=60.0, small=10**9)
    monkeypatch.setattr(tuning, "ALL_ITEMS_ASSIGNMENTS", 0)
    reported: list[Solution] = []
    found = solve_problem(
        given, solver="highs", time_limit_seconds=60.0, small=0, report=reported.append
    )
    assert found.status == best.status == "Optimal"
    decided = [one for one in (*reported, found) if one.tiers]
    values = [[tier.value for tier in one.tiers] for one in decided]
    assert values == sorted(values)
    assert values[-1] == [tier.value for tier in best.tiers]
    assert all(one.tiers[0].bound >= best.tiers[0].value for one in decided)
