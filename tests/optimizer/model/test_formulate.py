"""From a fleet to a problem: eligibility, values, and the reasons of ineligibility."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optimizer.domain.fleet import (
    CandidatePolicy,
    Fleet,
    FleetLimit,
    Objective,
    Supply,
    TopologySpread,
)
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.formulate import formulate, too_large
from optimizer.model.objective import objective, tier_values
from optimizer.model.predicates import PREDICATES, ResourceIndex, ineligible
from tests.optimizer.build import fleet

C1, C2 = "c1", "c2"


def plain(**constraints: Any) -> Fleet:
    """Workloads `w` and `v` request 2 of `d` each; both clusters supply 3 of it."""
    scores = {(c, w, "d"): 10.0 + 5 * (c == C2) for c in (C1, C2) for w in ("v", "w")}
    found = fleet({C1: [("d", 3)], C2: [("d", 3)]}, {"w": 2, "v": 2}, scores)
    zones = {C1: "a", C2: "b"}
    first, second = found.workloads
    return replace(
        found,
        clusters=tuple(replace(c, labels={"zone": zones[c.name]}) for c in found.clusters),
        workloads=(replace(first, **constraints), second),
    )


def assignments(given: Fleet) -> list[str]:
    """The clusters where `w` may run."""
    variables = formulate(given).variables
    return [v.cluster for v in variables if isinstance(v, Assignment) and v.workload == "w"]


@pytest.mark.parametrize(
    ("constraints", "reason", "left"),
    [
        ({}, "", [C1, C2]),
        ({"clusters": (C2,)}, "NotPinned", [C2]),
        ({"excluded_clusters": (C2,)}, "Excluded", [C1]),
        ({"unseen": (C2,)}, "NotSeen", [C1]),
        ({"devices": ("e",)}, "OtherDevice", []),
        ({"affinity": "zone in (b)"}, "Affinity", [C2]),
        ({"anti_affinity": "zone=b"}, "AntiAffinity", [C1]),
        ({"minimum_score": 12.0}, "BelowMinimumScore", [C2]),
        ({"amount": 4}, "NoSupply", []),
        ({"requests": (("cpu", 1.0),)}, "NoExtraSupply", []),
        ({"app": "unknown"}, "NoUsableScore", []),
    ],
)
def test_what_is_in_the_way_has_a_name(
    constraints: dict[str, Any], reason: str, left: list[str]
) -> None:
    given = plain(**constraints)
    assert assignments(given) == left
    found = ineligible(ResourceIndex(given), given.workloads[0])
    assert {name for name, resources in found.items() if resources.any()} == (
        {reason} if reason else set()
    )
    assert (~np.any(list(found.values()), axis=0)).sum() == len(left)


def test_an_assignment_without_a_cost_is_none_where_a_limit_counts_it() -> None:
    given = plain()
    costs = {(C1, "w", "d"): 1.0, (C1, "v", "d"): 1.0}
    scores = {**given.scores, "cost": ScoreMatrix.of(costs)}
    budget = FleetLimit("budget", 9.0, score="cost")
    assert assignments(replace(given, scores=scores, limits=(budget,))) == [C1]
    elsewhere = replace(budget, selector="zone=a")
    assert assignments(replace(given, scores=scores, limits=(elsewhere,))) == [C1, C2]


def test_every_obstacle_says_what_it_is() -> None:
    assert all(found.rules_out.__doc__ for found in PREDICATES.values())


def test_values_are_weighted_sums_of_normalised_scores() -> None:
    given = plain()
    watts = {(c, w, "d"): 300.0 for c in (C1, C2) for w in ("v", "w")}
    less = Objective("watts", weight=0.5, minimum=200, maximum=400, invert=True)
    given = replace(
        given,
        scores={**given.scores, "watts": ScoreMatrix.of(watts)},
        objectives=(Objective("score", weight=2.0), less),
    )
    problem = formulate(given)
    assert problem.score(Assignment("w", C1, "d")) == 2 * 10 + 0.5 * 50


@pytest.mark.parametrize(
    ("objective_", "score", "value"),
    [
        (Objective("s"), -7.0, -7.0),
        (Objective("s", invert=True), 7.0, -7.0),
        (Objective("s", minimum=0, maximum=50), 25.0, 50.0),
        (Objective("s", minimum=0, maximum=50), 60.0, 100.0),
        (Objective("s", minimum=0, maximum=50), -1.0, 0.0),
        (Objective("s", minimum=0, maximum=50, invert=True), 10.0, 80.0),
        (Objective("s", weight=3, minimum=0, maximum=50), 25.0, 150.0),
    ],
)
def test_normalisation(objective_: Objective, score: float, value: float) -> None:
    assert objective_.value(score) == value


def test_staying_saves_the_cost_of_moving() -> None:
    problem = formulate(plain(current=(C1,), move_cost=6.0))
    stay = Decision((PolicyEnforcement(C1, "d"),), (Assignment("w", C1, "d"),))
    move = Decision((PolicyEnforcement(C2, "d"),), (Assignment("w", C2, "d"),))
    assert objective(problem, stay) - objective(problem, move) == 10.0 - (15.0 - 6.0)
    assert problem.score(Assignment("w", C1, "d")) == 10.0


def test_changing_to_a_policy_costs_unless_it_is_enforced_now() -> None:
    given = plain()
    priced = tuple(
        replace(
            c, candidates=tuple(replace(p, cost=4.0, current=c.name == C1) for p in c.candidates)
        )
        for c in given.clusters
    )
    problem = formulate(replace(given, clusters=priced))
    assert [policy.value for policy in problem.policies] == [0.0, -4.0]
    assert (
        objective(problem, Decision((PolicyEnforcement(C2, "d"),), (Assignment("w", C2, "d"),)))
        == 15.0 - 4.0
    )


def test_tiers_are_priorities_highest_first() -> None:
    problem = formulate(plain(priority=7))
    both = Decision((), (Assignment("w", C1, "d"), Assignment("v", C2, "d")))
    assert problem.tiers == (7, 0)
    assert tier_values(problem, both) == (10.0, 15.0)
    assert (problem.weights(0) + problem.weights(1) == problem.weights()).all()


def test_a_policy_that_supplies_nothing_asked_for_is_no_candidate() -> None:
    given = plain()
    useless = CandidatePolicy("useless", (Supply("gpu", "other", 9),))
    first, second = given.clusters
    given = replace(
        given, clusters=(replace(first, candidates=(*first.candidates, useless)), second)
    )
    assert PolicyEnforcement(C1, "useless") not in formulate(given).variables


def test_a_policy_may_supply_a_further_kind() -> None:
    given = plain(requests=(("cpu", 2.0),))
    cores = CandidatePolicy("cores", (Supply("cpu", "", 2),), "cpu")
    first, second = given.clusters
    given = replace(given, clusters=(replace(first, candidates=(*first.candidates, cores)), second))
    assert assignments(given) == [C1]
    assert PolicyEnforcement(C1, "cores") in formulate(given).variables


def test_a_part_is_the_same_problem_on_fewer_assignments() -> None:
    problem = formulate(plain(requests=()))
    assignments_kept = np.zeros(problem.values.shape, dtype=np.bool_)
    assignments_kept[0, problem.resource_cluster == 1] = True
    part = problem.restricted(assignments_kept, np.array([False, True]))
    assert part.variables == (PolicyEnforcement(C2, "d"), Assignment("w", C2, "d"))
    assert part.clusters == problem.clusters
    decision = Decision((PolicyEnforcement(C2, "d"),), (Assignment("w", C2, "d"),))
    assert objective(part, decision) == objective(problem, decision)


def test_a_fleet_of_nothing_is_a_problem_of_nothing() -> None:
    limits = (FleetLimit("budget", 1.0, score="score"), FleetLimit("watts", 1.0, uses="watts"))
    empty = replace(plain(), workloads=(), limits=limits)
    for given in (empty, replace(empty, clusters=()), replace(plain(), clusters=(), limits=limits)):
        assert formulate(given).variables == ()


def test_limits_of_one_score_share_what_assignments_use_also_in_a_part() -> None:
    given = plain()
    costs = ScoreMatrix.of({(c, w, "d"): 1.0 for c in (C1, C2) for w in ("v", "w")})
    limits = tuple(FleetLimit(name, 9.0, score="cost") for name in ("one", "two"))
    scores = {**given.scores, "cost": costs}
    first, second = formulate(replace(given, scores=scores, limits=limits)).limits
    assert first.assignments is not None
    assert first.assignments is second.assignments


PLAIN = fleet({"c": [("d", 2)], "e": [("d", 2)]}, {"w": 1}, {("c", "w", "d"): 1.0})
"""One workload, two resources."""


@pytest.mark.parametrize(
    ("changed", "counted"),
    [
        ({}, 2),
        ({"replicas": 2}, 10),
        ({"replicas": 3, "requests": (("cpu", 1.0),)}, 18),
        ({"spread": (TopologySpread("zone", 1),)}, 10),
        ({"uses": (("watts", 3.0),)}, 10),
        ({"uses": (("watts", 0.0),)}, 2),
    ],
)
def test_each_row_beyond_capacity_counts_as_four_assignments(
    changed: dict[str, Any], counted: int
) -> None:
    workloads = (replace(PLAIN.workloads[0], **changed),)
    given = replace(PLAIN, workloads=workloads, limits=(FleetLimit("power", 9.0, uses="watts"),))
    assert too_large(given, counted) is None
    refused = too_large(given, counted - 1)
    assert refused is not None
    assert (f"count as {counted}" in refused.detail) is (counted > 2)
