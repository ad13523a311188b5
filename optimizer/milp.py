"""The problem in PuLP, solved in this process by HiGHS or CBC.

PuLP's own `status` says Optimal at a time limit too, so only `sol_status` counts. Variables and
rows are named by index: PuLP maps several characters of a name to one.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pulp
from pulp import constants

from optimizer.problem import Problem, objective, upper_bound
from optimizer.results import Status
from optimizer.rules import RULES, Row, violations
from optimizer.settings import SolverName
from optimizer.solution import Choice, Decision, Place, Solution, Variable
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
    """Solve a problem; the status is never better than what has been proven.

    Deterministic for a problem and a solver unless the time limit is reached.
    """
    started = time.perf_counter()
    used = solver if available(solver) else "cbc"
    if not problem.values:
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, used)
    rows = [row for rule in RULES for row in rule(problem)]
    outcome = _solved(problem, rows, problem.values, used, time_limit_seconds)
    left = time_limit_seconds - (time.perf_counter() - started)
    if outcome.status == "Optimal" and len(problem.variables) <= _TIE_VARIABLES and left > 0:
        outcome = _untied(problem, rows, outcome, used, left)
    return _solution(problem, outcome, time.perf_counter() - started, used)


def _solved(
    problem: Problem,
    rows: Sequence[Row],
    weights: Mapping[Any, float],
    solver: SolverName,
    seconds: float,
) -> _Outcome:
    model, columns = _model(problem, rows, weights)
    engine = _solver(solver, seconds)
    try:
        model.solve(engine)
    except pulp.PulpSolverError:
        return _Outcome("NotSolved", Decision(), None)
    status = _status(model.sol_status)
    return _Outcome(
        status,
        _decision(columns) if status != "NotSolved" else Decision(),
        _dual_bound(model, solver),
    )


def _model(
    problem: Problem, rows: Sequence[Row], weights: Mapping[Any, float]
) -> tuple[Any, dict[Variable, Any]]:
    model = pulp.LpProblem("placement", constants.LpMaximize)
    columns: dict[Variable, Any] = {
        variable: model.add_variable(f"v{index}", cat=constants.LpBinary)
        for index, variable in enumerate(problem.variables)
    }
    model.setObjective(
        pulp.LpAffineExpression({columns[variable]: weight for variable, weight in weights.items()})
    )
    for index, row in enumerate(rows):
        terms = {columns[variable]: value for variable, value in row.coefficients.items()}
        expression = pulp.LpAffineExpression(terms)
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


def _decision(columns: Mapping[Variable, Any]) -> Decision:
    chosen = [variable for variable, column in columns.items() if (column.varValue or 0.0) > _HALF]
    return Decision(
        tuple(variable for variable in chosen if isinstance(variable, Choice)),
        tuple(variable for variable in chosen if isinstance(variable, Place)),
    )


def _dual_bound(model: Any, solver: SolverName) -> float | None:
    if solver != "highs":
        return None
    # PuLP hands HiGHS a minimisation of the negated objective.
    return -float(model.solverModel.getInfo().mip_dual_bound)


def _untied(
    problem: Problem, rows: Sequence[Row], found: _Outcome, solver: SolverName, seconds: float
) -> _Outcome:
    """Solve once more among decisions of equal value; keep the first where that fails."""
    weights = tie_weights(problem)
    if weights is None:
        return found
    best = objective(problem, found.decision)
    negated: dict[Variable, float] = {place: -value for place, value in problem.values.items()}
    same = Row("the value is the best one", negated, _SAME_VALUE - best)
    second = _solved(problem, [*rows, same], weights, solver, seconds)
    equal = (
        second.status == "Optimal"
        and abs(objective(problem, second.decision) - best) <= _SAME_VALUE
        and not violations(problem, second.decision)
    )
    return replace(found, decision=second.decision) if equal else found


def _solution(problem: Problem, outcome: _Outcome, seconds: float, solver: str) -> Solution:
    decision = trimmed(outcome.decision)
    if outcome.status == "NotSolved" or violations(problem, decision):
        return Solution("NotSolved", Decision(), 0.0, upper_bound(problem), seconds, solver)
    value = objective(problem, decision)
    if outcome.status == "Optimal":
        return Solution("Optimal", decision, value, value, seconds, solver)
    bounds = [upper_bound(problem), *([] if outcome.bound is None else [outcome.bound])]
    return Solution("Feasible", decision, value, max(value, min(bounds)), seconds, solver)
