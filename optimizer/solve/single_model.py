"""The compact model, one binary variable per policy and candidate assignment, all rules as rows.

Small problems are solved by it, tier by tier (lexicographically).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision, Status
from optimizer.model.decision_comparison import SAME_VALUE, better, equal, tie_weights
from optimizer.model.objective import tier_values
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES, Row, violations
from optimizer.solve.solver_adapters import maximise
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.tuning import TIE_BREAKING_ASSIGNMENTS


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What a solver found; `bound` is None where it returned none."""

    status: Status
    decision: Decision
    bound: float | None


def all_rows(problem: Problem) -> list[Row]:
    """Return the rows of all rules."""
    return [row for rule in RULES for row in rule(problem)]


def solve_compact_model(
    problem: Problem,
    rows: Sequence[Row],
    weights: Floats,
    *,
    solver: SolverName,
    seconds: float,
    start: Decision | None = None,
    gap: float = 0.0,
    nodes: int | None = None,
) -> CompactResult:
    """Maximise `weights` over the variables of a problem subject to rows.

    `weights` [policies + assignments]. `start`: a decision to begin with. `gap`: relative
    optimality gap that is good enough. `nodes`: branch-and-bound nodes at most.
    """
    answer = maximise(
        weights,
        [(row.columns.tolist(), row.coefficients.tolist(), row.limit) for row in rows],
        [1.0] * len(weights),
        solver=solver,
        seconds=seconds,
        start=None if start is None else variable_values(problem, start),
        gap=gap,
        nodes=nodes,
    )
    if answer.status == "NotSolved":
        return CompactResult("NotSolved", Decision(), answer.bound)
    chosen = np.flatnonzero(answer.values > 0.5).tolist()  # noqa: PLR2004 - binary
    return CompactResult(answer.status, problem.decision(chosen), answer.bound)


def variable_values(problem: Problem, decision: Decision) -> Floats | None:
    """Return a decision as values of the variables; None if one of them does not exist."""
    values = np.zeros(len(problem.policies) + len(problem.assignments.workload))
    found = [problem.policy_index.get(choice) for choice in decision.policies]
    pairs = map(problem.indexes, decision.assignments)
    found += [None if pair is None else problem.column(*pair) for pair in pairs]
    chosen = [column for column in found if column is not None]
    values[chosen] = 1.0
    return values if len(chosen) == len(found) else None


def solve_single_model(
    problem: Problem, known: Decision | None, context: SolveContext
) -> tuple[Decision | None, list[float]]:
    """Return a decision no worse than `known`, and the bounds of the tiers solved.

    Each tier is solved with the values of the higher ones as rows; a last solve breaks ties.
    """
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
            solver=context.solver,
            seconds=context.seconds_left(),
            start=known,
            gap=context.gap if len(problem.tiers) == 1 else 0.0,
        )
        if outcome.status == "NotSolved" or violations(problem, outcome.decision):
            outcome = CompactResult("NotSolved", Decision(), outcome.bound)
        else:
            known = better(problem, known, outcome.decision)
            context.report_decision(known, bounds)
        if outcome.status != "Optimal":
            bounds += [] if outcome.bound is None else [outcome.bound]
            return known, bounds
        value = tier_values(problem, outcome.decision)[tier]
        bounds.append(value)
        rows.append(value_floor(weights, value))
    if problem.assignments.value.size <= TIE_BREAKING_ASSIGNMENTS:
        outcome = _tie_broken(problem, rows, outcome, context)
    return better(problem, outcome.decision, known), bounds


def solve_tier(
    problem: Problem, tier: int, known: Decision | None, context: SolveContext
) -> tuple[Decision | None, float]:
    """Return a decision that keeps the values of the higher tiers, and a bound of this tier."""
    values = () if known is None else tier_values(problem, known)[:tier]
    rows, weights = [*all_rows(problem), *value_floors(problem, values)], problem.weights(tier)
    outcome = solve_compact_model(
        problem, rows, weights, solver=context.solver, seconds=context.seconds_left(), start=known
    )
    trivial = float(np.maximum(weights, 0.0).sum())
    bound = trivial if outcome.bound is None else min(trivial, outcome.bound)
    return better(problem, known, outcome.decision), bound


def is_zero_tier(problem: Problem, tier: int) -> bool:
    """Tell whether a tier is 0 in every decision: it has no workload and no cost of a policy."""
    costs = tier == len(problem.tiers) - 1 and any(policy.value for policy in problem.policies)
    return not costs and not (problem.workload_tier == tier).any()


def value_floor(weights: Floats, value: float) -> Row:
    """Return the row that keeps a value: weights . variables >= value - SAME_VALUE."""
    columns = np.nonzero(weights)[0]
    return Row("the value is the best one", columns, -weights[columns], SAME_VALUE - value)


def value_floors(problem: Problem, values: Iterable[float]) -> list[Row]:
    """Return the rows that keep the values of the first tiers."""
    return [value_floor(problem.weights(tier), value) for tier, value in enumerate(values)]


def _tie_broken(
    problem: Problem, rows: Sequence[Row], found: CompactResult, context: SolveContext
) -> CompactResult:
    """Solve once more among decisions of equal value; return the first result if that fails."""
    weights = tie_weights(problem)
    if weights is None or context.is_over():
        return found
    second = solve_compact_model(
        problem, rows, weights, solver=context.solver, seconds=context.seconds_left()
    )
    ties = second.status == "Optimal" and equal(problem, found.decision, second.decision)
    return replace(found, decision=second.decision) if ties else found
