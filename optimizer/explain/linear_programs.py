"""Solves the linear and small integer programs of dual prices and Pareto points in PuLP."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pulp
from pulp import constants

from optimizer.domain.arrays import Floats
from optimizer.domain.settings import SolverName
from optimizer.explain.case import BudgetExceeded, LinearSolution, LinearSolver
from optimizer.model.rules import Row
from optimizer.solve.solver_adapters import note_failed_call


def linear_solver(solver: SolverName, *, until: float) -> LinearSolver:
    """Return what solves until a time of `time.monotonic()`; then it raises BudgetExceeded."""

    def solve(weights: Floats, rows: Sequence[Row], relaxed: bool) -> LinearSolution:
        return _solved(weights, rows, relaxed, solver, until - time.monotonic())

    return solve


def _solved(
    weights: Floats, rows: Sequence[Row], relaxed: bool, solver: SolverName, seconds: float
) -> LinearSolution:
    nothing = LinearSolution("NotSolved", np.zeros(len(weights)), np.zeros(len(rows)))
    if seconds <= 0:
        raise BudgetExceeded
    model = pulp.LpProblem("explanation", constants.LpMaximize)
    kind = constants.LpContinuous if relaxed else constants.LpInteger
    columns = [model.add_variable(f"v{index}", 0, 1, kind) for index in range(len(weights))]
    model.setObjective(pulp.LpAffineExpression(dict(zip(columns, weights.tolist(), strict=True))))
    made = [_constraint(columns, row, f"r{index}") for index, row in enumerate(rows)]
    for constraint in made:
        model.addConstraint(constraint)
    try:
        model.solve(_engine(solver, seconds))
    except pulp.PulpSolverError as error:
        note_failed_call(error)
        return nothing
    # PuLP's `status` is Optimal at a time limit too; `sol_status` is not.
    if model.sol_status != constants.LpSolutionOptimal:
        return nothing
    values = np.array([column.varValue or 0.0 for column in columns])
    prices = [abs(constraint.pi or 0.0) for constraint in made] if relaxed else []
    return LinearSolution("Optimal", values, np.array(prices))


def _constraint(columns: Sequence[Any], row: Row, name: str) -> Any:
    terms = zip(row.columns.tolist(), row.coefficients.tolist(), strict=True)
    total = pulp.LpAffineExpression({columns[column]: value for column, value in terms})
    return pulp.LpConstraint(total, constants.LpConstraintLE, name, row.limit)


def _engine(solver: SolverName, seconds: float) -> Any:
    if solver == "highs" and pulp.HiGHS().available():
        return pulp.HiGHS(msg=False, timeLimit=seconds, gapRel=0.0, threads=1)
    return pulp.COIN_CMD(
        path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False, timeLimit=seconds, gapRel=0.0
    )
