"""The compact model: one binary variable per policy and candidate assignment, all rules as rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision
from optimizer.domain.status import Status
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES, Row
from optimizer.solve.solver_adapters import maximise


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
