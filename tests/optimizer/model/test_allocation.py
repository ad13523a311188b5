"""The allocation agrees with the rules after every change, on problems that use each rule."""

import random

import numpy as np
import pytest

from optimizer.domain.solution import Decision
from optimizer.model.allocation import Allocation
from optimizer.model.problem import Problem
from optimizer.model.rules import capacity, linking_rows, violations
from tests.optimizer.random_problems import random_problem


def random_state(problem: Problem, seed: int, steps: int) -> Allocation:
    """Return a feasible state, some random changes after the empty one."""
    rng = random.Random(seed)  # noqa: S311 - to repeat, not to guard
    found = Allocation(problem, rows=linking_rows(problem))
    for _ in range(steps):
        pairs = [pair for pair in candidates(problem) if found.fits(*pair)]
        policies = [p for p in range(len(problem.policies)) if p not in found.policies]
        if pairs and rng.random() < 0.6:
            found.assign(*rng.choice(pairs))
        elif policies and can_enforce(found, policy := rng.choice(policies)):
            found.enforce(policy)
        elif held := found.pairs:
            found.unassign(*rng.choice(held))
            if violations(problem, found.decision()):  # an affinity to it is broken
                found = Allocation(problem, rows=linking_rows(problem))
    return found


def can_enforce(state: Allocation, policy: int) -> bool:
    found = state.problem.policies[policy]
    pool = state.problem.pools[found.cluster, found.pool]
    return not state.policies & {*pool} and state.allows_policy(policy)


def candidates(problem: Problem) -> list[tuple[int, int]]:
    known = np.argwhere(~np.isnan(problem.values)).tolist()
    return [(workload, resource) for workload, resource in known]


@pytest.mark.parametrize(
    "seed",
    [*range(24), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(24, 60))],
)
def test_what_fits_is_what_breaks_no_rule(seed: int) -> None:
    problem = random_problem(seed)
    state = random_state(problem, seed, 1 + seed % 12)
    decision = state.decision()
    assert violations(problem, decision) == ()
    for workload, resource in candidates(problem):
        more = (*decision.assignments, problem.assignment(workload, resource))
        broken = violations(problem, Decision(decision.policies, more))
        once = resource not in state.resources_of[workload]
        assert state.fits(workload, resource) == (once and not broken), broken
    for policy in set(range(len(problem.policies))) - state.policies:
        policies = (*decision.policies, problem.enforcement(policy))
        broken = violations(problem, Decision(policies, decision.assignments))
        assert can_enforce(state, policy) == (not broken), broken


@pytest.mark.parametrize("seed", range(20))
def test_the_residual_is_what_the_capacity_rows_leave(seed: int) -> None:
    problem = random_problem(seed)
    state = random_state(problem, seed, 6)
    variables = {variable: number for number, variable in enumerate(problem.variables)}
    decision = state.decision()
    chosen = [variables[item] for item in (*decision.policies, *decision.assignments)]
    left = [
        row.limit - row.coefficients[np.isin(row.columns, chosen)].sum()
        for row in capacity(problem)
    ]
    demanded = np.unique(problem.demand.resource)
    assert state.residual[demanded].tolist() == pytest.approx(left)


def test_a_state_starts_from_a_decision_and_returns_to_nothing() -> None:
    problem = random_problem(7)
    state = random_state(problem, 7, 9)
    again = Allocation(problem, state.decision(), linking_rows(problem))
    assert again.decision() == state.decision()
    assert again.residual.tolist() == state.residual.tolist()
    assert again.row_residual.tolist() == pytest.approx(state.row_residual.tolist())
    for workload, own in enumerate(again.resources_of):
        for resource in tuple(own):
            again.unassign(workload, resource)
    for policy in sorted(again.policies):
        again.release(policy)
    assert again.decision() == Decision()
    assert again.residual.tolist() == problem.base.tolist()
    assert again.exists.tolist() == (problem.base > 0).tolist()
