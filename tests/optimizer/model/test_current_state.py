"""The current state becomes a decision as far as the rules allow it."""

from dataclasses import replace

import pytest

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.current_state import (
    current_state,
    incumbent_from_current_state,
    with_enforced_candidates,
    with_surge,
)
from optimizer.model.formulate import formulate
from optimizer.model.rules import violations
from tests.optimizer.build import fleet
from tests.optimizer.random_problems import random_problem

ENFORCED = PolicyEnforcement("c", "d1")


def given(demands: dict[str, int], *, enforced: bool = True) -> Fleet:
    """One cluster with 3 of device d1, everything running on it."""
    scores = {("c", name, device): 10.0 for name in demands for device in ("d1", "d2")}
    made = fleet({"c": [("d1", 3), ("d2", 3)]}, demands, scores)
    (cluster,) = made.clusters
    candidates = tuple(
        replace(item, current=enforced and item.policy == "d1") for item in cluster.candidates
    )
    return replace(
        made,
        clusters=(replace(cluster, candidates=candidates),),
        workloads=tuple(replace(item, current=("c",)) for item in made.workloads),
    )


def test_what_fits_runs_and_the_rest_is_named() -> None:
    problem = formulate(given({"v": 2, "w": 2}))
    found = current_state(problem, Decision())
    assert found.decision == Decision((ENFORCED,), (Assignment("v", "c", "d1"),))
    assert found.infeasible == ("workload w on cluster c",)
    assert incumbent_from_current_state(problem) == found.decision


def test_nothing_runs_where_no_policy_is_enforced() -> None:
    problem = formulate(given({"v": 2}, enforced=False))
    assert current_state(problem, Decision()).decision == Decision()
    assert incumbent_from_current_state(problem) == Decision()


def test_a_policy_under_which_nothing_runs_is_no_part_of_the_incumbent() -> None:
    problem = formulate(given({"v": 2}))
    idle = replace(
        problem, workloads=tuple(replace(item, current=()) for item in problem.workloads)
    )
    assert incumbent_from_current_state(idle) == Decision()
    assert current_state(idle, Decision()).decision == Decision((ENFORCED,))


def test_the_request_knows_a_pool_better_than_what_is_in_force() -> None:
    known = given({"v": 2})
    assert with_enforced_candidates(known) is known
    old = replace(known.clusters[0].candidates[0], policy="old", current=True)
    unlisted = replace(known.clusters[0], enforced=(old,))
    assert with_enforced_candidates(replace(known, clusters=(unlisted,))).clusters == (unlisted,)
    idle = replace(unlisted, candidates=known.clusters[0].candidates[1:])
    (found,) = with_enforced_candidates(replace(known, clusters=(idle,))).clusters
    assert found.candidates == (*idle.candidates, old)


@pytest.mark.parametrize("seed", range(40))
def test_both_break_no_rule(seed: int) -> None:
    problem = random_problem(seed)
    found = current_state(problem, Decision())
    assert violations(with_surge(problem, 0), found.decision) == ()
    incumbent = incumbent_from_current_state(problem)
    assert incumbent is None or violations(problem, incumbent) == ()
