"""The problem in PuLP, solved in this process by HiGHS or CBC.

PuLP's own `status` says Optimal at a time limit too, so only `sol_status` counts. Variables and
rows are named by index: PuLP maps several characters of a name to one.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pulp
from pulp import constants

from optimizer.problem import Floats, Problem, objective, tier_values, upper_bound
from optimizer.results import Status
from optimizer.rules import RULES, Row, violations
from optimizer.settings import SolverName
from optimizer.solution import Decision, Solution, Tier
from optimizer.ties import tie_weights, trimmed

_HALF = 0.5
_TIE_VARIABLES = 200  # beyond that the second solve can cost ten times the first
_SAME_VALUE = 1e-6


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: Status
    decision: Decision
    bound: float | None


def available(solver: SolverName) -> bool:
    """Tell whether a solver is installed."""
    return bool(_solver(solver, seconds=1.0).available())


def solve_here(problem: Problem, *, solver: SolverName, time_limit_seconds: float) -> Solution:
    """Solve a problem, priority by priority; the status is never better than what was proven.

    Deterministic for a problem and a solver unless the time limit is reached.
    """
    started = time.perf_counter()
    used = solver if available(solver) else "cbc"
    if not len(problem.places.task):
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, used)
    rows = [row for rule in RULES for row in rule(problem)]
    ends = started + time_limit_seconds
    outcome, bounds = _Outcome("NotSolved", Decision(), None), list[float]()
    for tier in range(len(problem.tiers)):
        outcome = _solved(problem, rows, problem.weights(tier), used, ends - time.perf_counter())
        if outcome.status != "Optimal":
            break
        value = tier_values(problem, outcome.decision)[tier]
        bounds.append(value)
        rows.append(_at_least(problem.weights(tier), value))
    if outcome.status == "Optimal" and problem.places.value.size <= _TIE_VARIABLES:
        outcome = _untied(problem, rows, outcome, used, ends - time.perf_counter())
    return _solution(problem, outcome, bounds, time.perf_counter() - started, used)


def _solved(
    problem: Problem, rows: Sequence[Row], weights: Floats, solver: SolverName, seconds: float
) -> _Outcome:
    if seconds <= 0:
        return _Outcome("NotSolved", Decision(), None)
    model, columns = _model(rows, weights)
    engine = _solver(solver, seconds)
    try:
        model.solve(engine)
    except pulp.PulpSolverError:
        return _Outcome("NotSolved", Decision(), None)
    status = _status(model.sol_status)
    return _Outcome(
        status,
        _decision(problem, columns) if status != "NotSolved" else Decision(),
        _dual_bound(model, solver),
    )


def _model(rows: Sequence[Row], weights: Floats) -> tuple[Any, list[Any]]:
    model = pulp.LpProblem("placement", constants.LpMaximize)
    columns = [
        model.add_variable(f"v{index}", cat=constants.LpBinary) for index in range(len(weights))
    ]
    model.setObjective(pulp.LpAffineExpression(dict(zip(columns, weights.tolist(), strict=True))))
    for index, row in enumerate(rows):
        terms = zip(row.columns.tolist(), row.coefficients.tolist(), strict=True)
        expression = pulp.LpAffineExpression({columns[column]: value for column, value in terms})
        model.addConstraint(
            pulp.LpConstraint(expression, constants.LpConstraintLE, f"r{index}", row.limit)
        )
    return model, columns


def _solver(solver: SolverName, seconds: float) -> Any:
    if solver == "highs":
        return pulp.HiGHS(msg=False, timeLimit=seconds, gapRel=0.0, threads=1)
    return pulp.COIN_CMD(
        path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False, timeLimit=seconds, gapRel=0.0
    )


def _status(sol_status: int) -> Status:
    if sol_status == constants.LpSolutionOptimal:
        return "Optimal"
    return "Feasible" if sol_status == constants.LpSolutionIntegerFeasible else "NotSolved"


def _decision(problem: Problem, columns: Sequence[Any]) -> Decision:
    return problem.decision(
        index for index, column in enumerate(columns) if (column.varValue or 0.0) > _HALF
    )


def _dual_bound(model: Any, solver: SolverName) -> float | None:
    if solver != "highs":
        return None
    # PuLP hands HiGHS a minimisation of the negated objective.
    return -float(model.solverModel.getInfo().mip_dual_bound)


def _at_least(weights: Floats, value: float) -> Row:
    columns = np.nonzero(weights)[0]
    return Row("the value is the best one", columns, -weights[columns], _SAME_VALUE - value)


def _untied(
    problem: Problem, rows: Sequence[Row], found: _Outcome, solver: SolverName, seconds: float
) -> _Outcome:
    """Solve once more among decisions of equal value; keep the first where that fails."""
    weights = tie_weights(problem)
    if weights is None or seconds <= 0:
        return found
    second = _solved(problem, rows, weights, solver, seconds)
    if second.status != "Optimal" or violations(problem, second.decision):
        return found
    both = zip(
        tier_values(problem, second.decision), tier_values(problem, found.decision), strict=True
    )
    equal = all(abs(one - other) <= _SAME_VALUE for one, other in both)
    return replace(found, decision=second.decision) if equal else found


def _solution(
    problem: Problem, outcome: _Outcome, bounds: Sequence[float], seconds: float, solver: str
) -> Solution:
    if outcome.status == "NotSolved" or violations(problem, outcome.decision):
        return Solution("NotSolved", Decision(), 0.0, upper_bound(problem), seconds, solver)
    decision = trimmed(problem, outcome.decision)
    value = objective(problem, decision)
    if outcome.status == "Optimal":
        tiers = tuple(map(Tier, problem.tiers, tier_values(problem, decision), bounds))
        return Solution("Optimal", decision, value, value, seconds, solver, tiers)
    known = [] if outcome.bound is None or bounds else [outcome.bound]
    bound = max(value, min([upper_bound(problem), *known]))
    return Solution("Feasible", decision, value, bound, seconds, solver)
