"""One model of everything, solved tier by tier."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Decision
from optimizer.model.lexicographic import SAME_VALUE, better
from optimizer.model.problem import Problem, tier_values
from optimizer.model.rules import Row, violations
from optimizer.model.tie_breaking import tie_weights
from optimizer.solve.compact_model import CompactResult, all_rows, solve_compact_model
from optimizer.solve.progress import SolveContext

_TIE_VARIABLES = 200  # beyond that the second solve can cost ten times the first


def solve_single_model(
    problem: Problem, known: Decision | None, run: SolveContext
) -> tuple[Decision | None, list[float]]:
    """Return a decision no worse than `known`, and the bounds of the tiers solved."""
    rows, bounds = all_rows(problem), list[float]()
    outcome = CompactResult("NotSolved", Decision(), None)
    for tier in range(len(problem.tiers)):
        if is_zero_tier(problem, tier):
            bounds.append(0.0)
            continue
        weights = problem.weights(tier)
        outcome = solve_compact_model(
            problem,
            rows,
            weights,
            solver=run.solver,
            seconds=run.left(),
            start=known,
            gap=run.gap if len(problem.tiers) == 1 else 0.0,
        )
        if outcome.status == "NotSolved" or violations(problem, outcome.decision):
            outcome = CompactResult("NotSolved", Decision(), outcome.bound)
        else:
            known = better(problem, known, outcome.decision)
            run.know(known, bounds)
        if outcome.status != "Optimal":
            bounds += [] if outcome.bound is None else [outcome.bound]
            return known, bounds
        value = tier_values(problem, outcome.decision)[tier]
        bounds.append(value)
        rows.append(value_floor(weights, value))
    if problem.assignments.value.size <= _TIE_VARIABLES:
        outcome = _tie_broken(problem, rows, outcome, run)
    return better(problem, outcome.decision, known), bounds


def solve_tier(
    problem: Problem, tier: int, known: Decision | None, run: SolveContext
) -> tuple[Decision | None, float]:
    """Return a decision that keeps what earlier tiers have, and a bound of this tier."""
    rows = all_rows(problem)
    if known is not None:
        for earlier in range(tier):
            value = tier_values(problem, known)[earlier]
            rows.append(value_floor(problem.weights(earlier), value))
    weights = problem.weights(tier)
    outcome = solve_compact_model(
        problem, rows, weights, solver=run.solver, seconds=run.left(), start=known
    )
    trivial = float(np.maximum(weights, 0.0).sum())
    bound = trivial if outcome.bound is None else min(trivial, outcome.bound)
    return better(problem, known, outcome.decision), bound


def is_zero_tier(problem: Problem, tier: int) -> bool:
    """Tell whether every decision has 0 in a tier, as in parts that have no task of a priority."""
    costs = tier == len(problem.tiers) - 1 and any(option.value for option in problem.policies)
    return not costs and not (problem.workload_tier == tier).any()


def value_floor(weights: Floats, value: float) -> Row:
    """Return the row that what `weights` count has a value, but for rounding."""
    columns = np.nonzero(weights)[0]
    return Row("the value is the best one", columns, -weights[columns], SAME_VALUE - value)


def _tie_broken(
    problem: Problem, rows: Sequence[Row], found: CompactResult, run: SolveContext
) -> CompactResult:
    """Solve once more among decisions of equal value; keep the first where that fails."""
    weights = tie_weights(problem)
    if weights is None or run.over():
        return found
    second = solve_compact_model(problem, rows, weights, solver=run.solver, seconds=run.left())
    if second.status != "Optimal" or violations(problem, second.decision):
        return found
    both = zip(
        tier_values(problem, second.decision), tier_values(problem, found.decision), strict=True
    )
    equal = all(abs(one - other) <= SAME_VALUE for one, other in both)
    return replace(found, decision=second.decision) if equal else found
