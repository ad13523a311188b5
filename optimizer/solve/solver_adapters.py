"""HiGHS and CBC through PuLP, called so that their statuses can be believed.

PuLP's `status` is Optimal at a time limit too, so only `sol_status` counts. HiGHS runs in this
process and starts from the values of variables; CBC is a process, and its start is a file. CBC 2.10
calls a start of negative value optimal, so it gets none.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pulp
from pulp import constants

from dsf.api.untrusted_text import counted, one_line
from optimizer.domain.arrays import Floats
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import ProcessFailure, Status
from optimizer.model.decision_comparison import SAME_VALUE

_HIGHS_OPTIONS = {
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_allow_restart": False,
}
"""HiGHS looks for no neighbourhoods: the search does, and they would take most of a solve."""

_failed_calls: ContextVar[tuple[list[str], ...]] = ContextVar("failed_calls", default=())
"""What went wrong in calls of a solver, for everyone who asked `failed_calls`."""


@contextmanager
def failed_calls() -> Iterator[list[str]]:
    """Collect what went wrong in calls of a solver meanwhile; each call returned NotSolved."""
    found = list[str]()
    token = _failed_calls.set((*_failed_calls.get(), found))
    try:
        yield found
    finally:
        _failed_calls.reset(token)


def note_failed_call(error: Exception | str) -> None:
    """Tell those who asked `failed_calls` of a call that failed."""
    for found in _failed_calls.get():
        found.append(str(error))


def failure_of_calls(errors: Sequence[str]) -> ProcessFailure | None:
    """Return the failure of the calls with these errors; None if there is none."""
    if not errors:
        return None
    message = f"{counted(len(errors), 'call')} of the solver failed, first: {one_line(errors[0])}"
    return ProcessFailure("CallFailed", message)


_HIGHS_FAILURES = frozenset(
    {
        "kLoadError",
        "kModelError",
        "kPresolveError",
        "kSolveError",
        "kPostsolveError",
        "kMemoryLimit",
    }
)
"""Statuses by which HiGHS says that it failed; a limit or no solution is none."""


@dataclass(frozen=True, slots=True)
class SolverResult:
    """What a solver returned: `bound` None if there is none; `duals` of a relaxation."""

    status: Status
    values: Floats
    bound: float | None
    duals: Floats


class _PulpModel(pulp.LpProblem):  # type: ignore[misc] # pulp has no types
    """A model that knows its columns; PuLP would collect them from every row, each time anew."""

    columns: Sequence[Any] = ()

    def variables(self) -> Sequence[Any]:
        return self.columns


class _WarmHighs(pulp.HiGHS):  # type: ignore[misc] # pulp has no types
    """HiGHS that starts from a given solution."""

    def __init__(self, start: Floats | None, **options: Any) -> None:
        super().__init__(**options)
        self._start = start

    def buildSolverModel(self, lp: Any) -> None:  # noqa: N802 - PuLP's name
        """Pass all columns and rows at once; PuLP passes them one by one, which takes longer."""
        variables, rows = lp.variables(), lp.constraints()
        for index, variable in enumerate(variables):
            variable.index = index
        entries = []
        for index, row in enumerate(rows):
            row.index = index
            entries.append([(variable.index, value) for variable, value in row.items() if value])
        highspy = pulp.apis.highs_api.highspy
        whole, any_value = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(variables), len(rows)
        model.col_cost_ = [-lp.objective.get(variable, 0.0) for variable in variables]
        model.col_lower_ = [_or(variable.lowBound, -np.inf) for variable in variables]
        model.col_upper_ = [_or(variable.upBound, np.inf) for variable in variables]
        model.row_lower_ = [_or(row.getLb(), -np.inf) for row in rows]
        model.row_upper_ = [_or(row.getUb(), np.inf) for row in rows]
        model.integrality_ = [
            whole if variable.cat == constants.LpInteger and self.mip else any_value
            for variable in variables
        ]
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.cumsum([0, *map(len, entries)])
        model.a_matrix_.index_ = [column for row in entries for column, _ in row]
        model.a_matrix_.value_ = [value for row in entries for _, value in row]
        lp.solverModel.passModel(model)

    def callSolver(self, lp: Any) -> None:  # noqa: N802 - PuLP's name
        if self._start is not None:
            solution = pulp.apis.highs_api.highspy.HighsSolution()
            solution.col_value = self._start.tolist()
            lp.solverModel.setSolution(solution)
        super().callSolver(lp)

    def findSolutionValues(self, lp: Any) -> tuple[int, int]:  # noqa: N802 - PuLP's name
        status = lp.solverModel.getModelStatus()
        if status.name in _HIGHS_FAILURES:
            note_failed_call(f"HiGHS ended with {status.name}")
        try:
            found: tuple[int, int] = super().findSolutionValues(lp)
        except KeyError:  # PuLP has no status for a node limit; the values are set by then
            feasible = np.isfinite(lp.solverModel.getInfo().objective_function_value)
            found = (
                (constants.LpStatusOptimal, constants.LpSolutionIntegerFeasible)
                if feasible
                else (constants.LpStatusNotSolved, constants.LpSolutionNoSolutionFound)
            )
        return found


def maximise(
    objective: Floats,
    rows: Sequence[tuple[Sequence[int], Sequence[float], float]],
    upper: Sequence[float | None],
    *,
    solver: SolverName,
    seconds: float,
    relaxed: bool = False,
    start: Floats | None = None,
    gap: float = 0.0,
    nodes: int | None = None,
    target: float | None = None,
    cutoff: float | None = None,
) -> SolverResult:
    """Maximise over integers from 0 to `upper` (reals if relaxed), subject to rows <= limits.

    `objective` and `upper` [columns]; rows are (columns, coefficients, limit). HiGHS ends at
    `target`, or when its bound is within `gap`, with the status Feasible unless the bound is
    reached. Both solvers end after `nodes`. `cutoff`: solutions that are worth no more are not
    wanted; Optimal then means that none is worth more than the cutoff and the result, whose value
    is that of the zero solution if HiGHS finds none at all.
    """
    model = _PulpModel("placement", constants.LpMaximize)
    kind = constants.LpContinuous if relaxed else constants.LpInteger
    # PuLP sorts by name. Padded numbers keep the order, which a start relies on.
    names = (f"v{index:08}" for index in range(len(upper)))
    columns = [
        model.add_variable(name, 0, most, kind) for name, most in zip(names, upper, strict=True)
    ]
    model.columns = columns
    model.setObjective(pulp.LpAffineExpression(dict(zip(columns, objective.tolist(), strict=True))))
    constraints = []
    for index, (members, coefficients, limit) in enumerate(rows):
        terms: Mapping[Any, float] = {
            columns[column]: value for column, value in zip(members, coefficients, strict=True)
        }
        expression = pulp.LpAffineExpression(terms)
        constraints.append(
            pulp.LpConstraint(expression, constants.LpConstraintLE, f"r{index}", limit)
        )
        model.addConstraint(constraints[-1])
    if solver == "cbc" and start is not None and objective @ start <= 0:
        start = None
    engine = None if seconds <= 0 else _engine(solver, seconds, start, gap, nodes, target, cutoff)
    answer = _run_solver(model, columns, constraints if relaxed else (), engine, start)
    if cutoff is not None and model.sol_status == constants.LpSolutionInfeasible:
        answer = replace(answer, status="Optimal", bound=cutoff)
    short = (
        gap and answer.bound is not None and answer.bound - objective @ answer.values > SAME_VALUE
    )
    return replace(answer, status="Feasible") if short and answer.status == "Optimal" else answer


def is_available(solver: SolverName) -> bool:
    """Tell whether a solver is installed."""
    return bool(_engine(solver, 1.0, None, 0.0, None, None, None).available())


def _run_solver(
    model: Any, columns: Sequence[Any], rows: Sequence[Any], engine: Any, start: Floats | None
) -> SolverResult:
    """Run a solver on a model; `rows`: the rows of a relaxation, whose duals are wanted."""
    nothing = SolverResult("NotSolved", np.zeros(len(columns)), None, np.zeros(0))
    if engine is None:
        return nothing
    if start is not None:
        for column, value in zip(columns, start.tolist(), strict=True):
            column.setInitialValue(value)
    try:
        model.solve(engine)
    except pulp.PulpSolverError as error:
        note_failed_call(error)
        return nothing
    status = _status(model.sol_status)
    if status == "NotSolved":
        return SolverResult(status, nothing.values, _bound(model), nothing.duals)
    values = np.array([column.varValue or 0.0 for column in columns])
    # The price of a <= row is not negative in a maximisation; solvers differ in the sign.
    duals = np.abs(np.array([row.pi or 0.0 for row in rows]))
    return SolverResult(status, values, _bound(model), duals)


def _engine(
    solver: SolverName,
    seconds: float,
    start: Floats | None,
    gap: float,
    nodes: int | None,
    target: float | None,
    cutoff: float | None,
) -> Any:
    if solver == "highs":
        limits = {
            "mip_max_nodes": nodes,
            # PuLP negates the objective.
            "objective_bound": None if cutoff is None else -cutoff,
            "objective_target": None if target is None else -target,
        }
        set_ones = {name: limit for name, limit in limits.items() if limit is not None}
        options = {**_HIGHS_OPTIONS, **set_ones}
        return _WarmHighs(start, msg=False, timeLimit=seconds, gapRel=gap, threads=1, **options)
    return pulp.COIN_CMD(
        path=pulp.PULP_CBC_CMD.pulp_cbc_path,
        msg=False,
        timeLimit=seconds,
        gapRel=0.0,  # with a gap CBC calls the result optimal, and returns no bound
        threads=1,
        warmStart=start is not None,
        maxNodes=nodes,
    )


def _or(bound: float | None, infinite: float) -> float:
    return infinite if bound is None else bound


def _status(sol_status: int) -> Status:
    if sol_status == constants.LpSolutionOptimal:
        return "Optimal"
    return "Feasible" if sol_status == constants.LpSolutionIntegerFeasible else "NotSolved"


def _bound(model: Any) -> float | None:
    if getattr(model, "solverModel", None) is None:
        return None
    # PuLP makes HiGHS minimise the negated objective.
    return -float(model.solverModel.getInfo().mip_dual_bound)
