"""Explaining in a process of its own, for a limited time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Solution
from optimizer.explain.composition import Case, ReportProgress, report_nothing
from optimizer.explain.solver_ports import BudgetExceeded
from optimizer.model.problem import Problem
from optimizer.solve.supervised_process import run_supervised
from optimizer.wire.explanation import Explanation

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_REPORT_SECONDS = 1.0

_UNTOLD = "everything: its process died, or the time limit was over before it had found anything"


@dataclass(frozen=True, slots=True, eq=False)
class ExplanationJob:
    """What to explain, by which solver, and for how long.

    `until`: when at the latest, by the monotonic clock that processes share.
    """

    case: Case
    solver: SolverName
    time_limit_seconds: float
    until: float = inf


async def explain(case: Case, *, solver: SolverName, time_limit_seconds: float) -> Explanation:
    """Explain a solution; what the time did not allow is named in the explanation."""
    until = time.monotonic() + time_limit_seconds  # it takes a while to start a process
    task = ExplanationJob(case, solver, time_limit_seconds, until)
    made = await run_supervised(run_job, task, seconds=time_limit_seconds)
    if made is None:
        return Explanation(not_computed=(_UNTOLD,))
    return made


def run_job(task: ExplanationJob, answers: "Connection[Explanation, None]") -> None:
    """Explain in the process that this is called in; runs there alone.

    What is known is sent now and then: it counts where the process does not come to its end.
    """
    sent = time.monotonic()

    def report(known: Callable[[], Explanation]) -> None:
        nonlocal sent
        if time.monotonic() - sent >= _REPORT_SECONDS:
            answers.send(known())
            sent = time.monotonic()

    answers.send(explain_here(task, report))


def explain_here(task: ExplanationJob, report: ReportProgress = report_nothing) -> Explanation:
    """Explain here and now; each problem is given the time that is left."""
    from optimizer.explain.composition import compose  # noqa: PLC0415 - the parent needs none
    from optimizer.explain.process.linear_programs import linear_solver  # noqa: PLC0415
    from optimizer.solve.search.near_optimal_columns import NearOptimalColumns  # noqa: PLC0415
    from optimizer.solve.strategy import solve_problem  # noqa: PLC0415 - the parent never loads PuLP

    until = min(task.until, time.monotonic() + task.time_limit_seconds)

    def left() -> float:
        return until - time.monotonic()

    def resolve(problem: Problem) -> Solution:
        if left() <= 0:
            raise BudgetExceeded
        return solve_problem(problem, solver=task.solver, time_limit_seconds=left())

    known = dict[Problem, NearOptimalColumns]()

    def nearby(problem: Problem, value: float) -> NearOptimalColumns:
        if problem not in known:
            known[problem] = NearOptimalColumns(
                problem, value, solver=task.solver, seconds_left=left
            )
        return known[problem]

    prices = linear_solver(task.solver, until=until)
    return compose(task.case, resolve, prices, report, lambda: left() > 0, nearby)
