"""The shell of explanations: runs them in a separate process, for a limited time."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import ProcessFailure, Solution
from optimizer.explain.case import (
    BudgetExceeded,
    Case,
    LinearSolver,
    ReportProgress,
    report_nothing,
)
from optimizer.model.problem import Problem
from optimizer.model.rules import Row
from optimizer.solve.supervised_process import SupervisedResult, run_supervised
from optimizer.wire.explanation import Explanation, WhyNotAnswer

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_REPORT_SECONDS = 1.0
"""Between two partial explanations that are sent: each is pickled whole."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ExplanationJob:
    """What to explain, with which solver, and for how long.

    `until`: the deadline by the monotonic clock, which all processes of a machine share.
    """

    case: Case
    solver: SolverName
    time_limit_seconds: float
    until: float = inf


Explained = tuple[Explanation, ProcessFailure | None]
"""An explanation, and why parts of it are missing if that is neither the time nor the size."""


async def explain(case: Case, *, solver: SolverName, time_limit_seconds: float) -> Explained:
    """Explain a solution; `not_computed` names what the time or a failure did not allow.

    The time limit includes the start of the process.
    """
    until = time.monotonic() + time_limit_seconds
    job = ExplanationJob(case, solver, time_limit_seconds, until)
    found, failure = explained(await run_supervised(run_job, job, seconds=time_limit_seconds))
    if failure:
        _log.warning(
            "an explanation failed", extra={"cause": failure.cause, "error": failure.message}
        )
    if len(found.why_not) < len(case.why_not):
        known = await asyncio.to_thread(_without_solving, case, found)
        found = found.model_copy(update={"why_not": known})
    return found, failure


def _without_solving(case: Case, found: Explanation) -> tuple[WhyNotAnswer, ...]:
    """Return the answers that were found, and those to the other questions that need no solver."""
    from optimizer.explain.why_not import why_not  # noqa: PLC0415

    def solve(_: Problem) -> Solution:
        raise BudgetExceeded

    known = list(found.why_not)
    for question in case.why_not[len(known) :]:
        with suppress(BudgetExceeded):
            known.append(why_not(case.fleet, case.problem, case.solution, question, solve))
    return tuple(known)


def explained(ended: SupervisedResult[Explained]) -> Explained:
    """Return what a process explained; `not_computed` names what its end cost, if anything."""
    found, failure = ended.last or (Explanation(), None)
    if ended.failure:
        message = f"its process {ended.failure.message}"
        failure = replace(ended.failure, message=message)
    if not ended.finished:
        what = "everything after that" if ended.last else "everything"
        why = failure.message if failure else "its process did not stop at its time limit"
        missing = (*found.not_computed, f"{what}: {why}")
        found = found.model_copy(update={"not_computed": missing})
    return found, failure


def run_job(job: ExplanationJob, answers: "Connection[Explained | None, None]") -> None:
    """Explain in this process, which does nothing else.

    Partial explanations are sent meanwhile; the last one counts if the process is killed.
    """
    sent = time.monotonic()

    def report(known: Explanation) -> None:
        nonlocal sent
        if time.monotonic() - sent >= _REPORT_SECONDS:
            answers.send((known, None))
            sent = time.monotonic()

    answers.send(explain_here(job, report))


def explain_here(job: ExplanationJob, report: ReportProgress = report_nothing) -> Explained:
    """Explain in this thread; each problem may take all the time that is left."""
    # The parent process imports this module, and needs neither PuLP nor the parts of explanations.
    from optimizer.explain.composition import compose  # noqa: PLC0415
    from optimizer.solve.solver_adapters import failed_calls, failure_of_calls  # noqa: PLC0415
    from optimizer.solve.strategy import solve_problem  # noqa: PLC0415

    until = min(job.until, time.monotonic() + job.time_limit_seconds)

    def left() -> float:
        return until - time.monotonic()

    def solve(problem: Problem) -> Solution:
        if left() <= 0:
            raise BudgetExceeded
        return solve_problem(problem, solver=job.solver, time_limit_seconds=left())

    linear = linear_solver(job.solver, left)
    with failed_calls() as errors:
        found = compose(job.case, solve, linear, report, lambda: left() > 0)
    failure = failure_of_calls(errors)
    if failure is None:
        return found, None
    missing = (*found.not_computed, f"a part: {failure.message}")
    return found.model_copy(update={"not_computed": missing}), failure


def linear_solver(solver: SolverName, left: Callable[[], float]) -> LinearSolver:
    """Return what solves the programs of dual prices and Pareto points in the seconds left."""
    from optimizer.solve.solver_adapters import SolverResult, maximise  # noqa: PLC0415

    def solve(weights: Floats, rows: Sequence[Row], relaxed: bool) -> SolverResult:
        if left() <= 0:
            raise BudgetExceeded
        if not len(weights):  # solvers refuse a program without variables
            return SolverResult("Optimal", np.zeros(0), None, np.zeros(len(rows)))
        plain = [(row.columns.tolist(), row.coefficients.tolist(), row.limit) for row in rows]
        return maximise(
            weights, plain, [1] * len(weights), solver=solver, seconds=left(), relaxed=relaxed
        )

    return solve
