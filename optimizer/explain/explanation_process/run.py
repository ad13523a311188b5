"""Runs explanations in a separate process, for a limited time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Solution
from optimizer.explain.case import Case
from optimizer.explain.solver_ports import (
    BudgetExceeded,
    NearOptimalDecisions,
    ReportProgress,
    find_none,
    report_nothing,
)
from optimizer.model.problem import Problem
from optimizer.solve.supervised_process import run_supervised
from optimizer.wire.explanation import Explanation

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_REPORT_SECONDS = 1.0
"""Between two partial explanations that are sent: each is pickled whole."""

_UNTOLD = "everything: its process died, or reached the time limit before its first result"


@dataclass(frozen=True, slots=True, eq=False)
class ExplanationJob:
    """What to explain, with which solver, and for how long.

    `until`: the deadline by the monotonic clock, which all processes of a machine share.
    """

    case: Case
    solver: SolverName
    time_limit_seconds: float
    until: float = inf


async def explain(case: Case, *, solver: SolverName, time_limit_seconds: float) -> Explanation:
    """Explain a solution; `not_computed` names what the time did not allow.

    The time limit includes the start of the process.
    """
    until = time.monotonic() + time_limit_seconds
    job = ExplanationJob(case, solver, time_limit_seconds, until)
    found = await run_supervised(run_job, job, seconds=time_limit_seconds)
    return Explanation(not_computed=(_UNTOLD,)) if found is None else found


def run_job(job: ExplanationJob, answers: "Connection[Explanation, None]") -> None:
    """Explain in this process, which does nothing else.

    Partial explanations are sent meanwhile; the last one counts if the process is killed.
    """
    sent = time.monotonic()

    def report(known: Callable[[], Explanation]) -> None:
        nonlocal sent
        if time.monotonic() - sent >= _REPORT_SECONDS:
            answers.send(known())
            sent = time.monotonic()

    answers.send(explain_here(job, report))


def explain_here(job: ExplanationJob, report: ReportProgress = report_nothing) -> Explanation:
    """Explain in this thread; each problem may take all the time that is left."""
    # The parent process imports this module, and needs neither PuLP nor the parts of explanations.
    from optimizer.explain.composition import compose  # noqa: PLC0415
    from optimizer.explain.explanation_process.linear_programs import linear_solver  # noqa: PLC0415
    from optimizer.solve.search.near_optimal_columns import near_optimal_columns  # noqa: PLC0415
    from optimizer.solve.strategy import solve_problem  # noqa: PLC0415

    until = min(job.until, time.monotonic() + job.time_limit_seconds)

    def left() -> float:
        return until - time.monotonic()

    def solve(problem: Problem) -> Solution:
        if left() <= 0:
            raise BudgetExceeded
        return solve_problem(problem, solver=job.solver, time_limit_seconds=left())

    known = dict[Problem, NearOptimalDecisions]()

    def find_near(problem: Problem, value: float) -> NearOptimalDecisions:
        if problem not in known:
            found = near_optimal_columns(problem, value, solver=job.solver, seconds_left=left)
            known[problem] = found or find_none(problem, value)
        return known[problem]

    linear = linear_solver(job.solver, until=until)
    return compose(job.case, solve, linear, report, lambda: left() > 0, find_near)
