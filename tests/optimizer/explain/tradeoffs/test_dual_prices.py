"""Binding limits, and what one more unit is worth."""

from dataclasses import replace

import numpy as np
import pytest

from optimizer.domain.fleet import CandidatePolicy, FleetLimit, Supply
from optimizer.domain.solution import Decision
from optimizer.explain.tradeoffs.dual_prices import binding_limits
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES, Row
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import LINEAR, RESOLVE
from tests.optimizer.random_problems import random_problem

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


def check(seed: int) -> int:
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


def test_prices_are_slopes_of_the_relaxation() -> None:
    assert sum(check(seed) for seed in range(20)) > 5


@pytest.mark.exhaustive
def test_many_prices() -> None:
    assert sum(check(seed) for seed in range(4_000, 4_200)) > 100
