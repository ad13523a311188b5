"""HiGHS and CP-SAT on the complete compact model, with a limit on CPU seconds and one worker.

Both take the rows of the product's own model, tier by tier: each tier has an equal share of the
time that is left, and the values of the higher tiers become rows. The limit counts the solver
alone, without writing the model. Each is imported by its own function, because OR-tools has symbols
of HiGHS and can't be loaded after it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from optimizer.model.problem import Problem
from optimizer.model.rules import RULES, Row

_POLL_SECONDS = 0.05
"""Seconds between two looks at the CPU time."""


class TierOutcome(NamedTuple):
    """The value and the bound of a tier."""

    value: float
    bound: float


class Outcome(NamedTuple):
    """What a solver reached, tier by tier, and the CPU seconds that it used."""

    tiers: tuple[TierOutcome, ...]
    cpu: float


def solve_by_highs(problem: Problem, cpu_limit: float) -> Outcome:
    """Solve with HiGHS as it comes, on one thread."""
    import highspy  # noqa: PLC0415 - see above

    solver: Any = highspy.Highs()
    rows = _rows(problem)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(problem.variables), len(rows)
    lp.col_cost_ = np.zeros(lp.num_col_)
    lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.ones(lp.num_col_)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
    lp.row_lower_ = np.full(lp.num_row_, -np.inf)
    lp.row_upper_ = np.array([row.limit for row in rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row.columns) for row in rows)])
    lp.a_matrix_.index_ = np.concatenate([row.columns for row in rows])
    lp.a_matrix_.value_ = np.concatenate([row.coefficients for row in rows])
    for name, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    solver.HandleUserInterrupt = True

    def tier(weights: np.ndarray[Any, Any], seconds: float) -> TierOutcome:
        every = np.arange(len(weights), dtype=np.int32)
        solver.changeColsCost(len(weights), every, weights)
        with _stopped_after(seconds, solver.cancelSolve):
            solver.joinSolve(solver.startSolve())
        info = solver.getInfo()
        value = float(info.objective_function_value)
        return TierOutcome(value if np.isfinite(value) else 0.0, float(info.mip_dual_bound))

    def keep(weights: np.ndarray[Any, Any], value: float) -> None:
        used = np.flatnonzero(weights).astype(np.int32)
        solver.addRow(value, np.inf, len(used), used, weights[used])

    return _by_tier(problem, cpu_limit, tier, keep)


def solve_by_cp_sat(problem: Problem, cpu_limit: float) -> Outcome:
    """Solve with CP-SAT on one worker; all coefficients and values have to be whole numbers."""
    from ortools.sat.python import cp_model  # noqa: PLC0415 - see above

    model = cp_model.CpModel()
    columns = [model.new_bool_var("") for _ in problem.variables]
    for row in _rows(problem):
        members = [columns[column] for column in row.columns.tolist()]
        if row.limit == 1 and (row.coefficients == 1).all():
            model.add_at_most_one(members)
        else:
            amounts = [_whole(amount) for amount in row.coefficients.tolist()]
            model.add(cp_model.LinearExpr.weighted_sum(members, amounts) <= _whole(row.limit))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1

    def objective(weights: np.ndarray[Any, Any]) -> Any:
        used = np.flatnonzero(weights).tolist()
        return cp_model.LinearExpr.weighted_sum(
            [columns[column] for column in used], [_whole(weights[column]) for column in used]
        )

    def tier(weights: np.ndarray[Any, Any], seconds: float) -> TierOutcome:
        model.maximize(objective(weights))
        with _stopped_after(seconds, solver.stop_search):
            status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return TierOutcome(0.0, float(solver.best_objective_bound))
        model.clear_hints()
        for column in columns:
            model.add_hint(column, solver.value(column))
        return TierOutcome(solver.objective_value, solver.best_objective_bound)

    def keep(weights: np.ndarray[Any, Any], value: float) -> None:
        model.add(objective(weights) >= _whole(value))

    return _by_tier(problem, cpu_limit, tier, keep)


def _by_tier(
    problem: Problem,
    cpu_limit: float,
    solve: Callable[[np.ndarray[Any, Any], float], TierOutcome],
    keep: Callable[[np.ndarray[Any, Any], float], None],
) -> Outcome:
    used, found = 0.0, list[TierOutcome]()
    for tier in range(len(problem.tiers)):
        weights = problem.weights(tier)
        if not weights.any():
            found.append(TierOutcome(0.0, 0.0))
            continue
        started = time.process_time()
        found.append(solve(weights, (cpu_limit - used) / (len(problem.tiers) - tier)))
        used += time.process_time() - started
        keep(weights, found[-1].value)
    return Outcome(tuple(found), used)


def _rows(problem: Problem) -> list[Row]:
    return [row for rule in RULES for row in rule(problem)]


def _whole(value: float) -> int:
    if value != round(value):
        raise ValueError(f"{value} is no whole number")
    return round(value)


@contextmanager
def _stopped_after(seconds: float, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` again and again once this process used so many CPU seconds."""
    done, until = threading.Event(), time.process_time() + seconds

    def watch() -> None:
        while not done.wait(_POLL_SECONDS):
            if time.process_time() >= until:
                stop()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()
