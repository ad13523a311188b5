"""Solves a problem in a process of its own: the event loop stays free, the time limit holds."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision, ProcessFailure, Solution
from optimizer.model.current_state import incumbent_from_current_state
from optimizer.model.decision_comparison import better
from optimizer.model.objective import upper_bounds
from optimizer.model.problem import Problem
from optimizer.solve.greedy import greedy
from optimizer.solve.node_rows import fitting, resolve_with_node_rows
from optimizer.solve.supervised_process import limit_memory, run_supervised
from optimizer.solve.time_limit import with_status
from optimizer.solve.warm_start import SolvedProblem

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_log = logging.getLogger(__name__)

_PATIENT_SECONDS = 5.0
"""Seconds of a time limit up to which the fallback decision is made at once."""

_SILENT_SHARE = 0.2
"""Share of the time limit beyond `_PATIENT_SECONDS` after which silence may mean failure.

The fallback needs much memory in large problems, so it is not made unless it is needed.
"""


@dataclass(frozen=True, slots=True)
class SolveTask:
    """What to solve and how; `until`: the deadline by the clock that all processes share.

    `start`: a solution of a similar problem.
    """

    problem: Problem
    solver: SolverName
    until: float
    gap: float
    seed: int
    memory_mib: int
    start: Solution | None = None


def ignored(_: Solution) -> None:
    """Ignore a report."""


Solve = Callable[..., Awaitable[Solution]]
"""Solves a problem; see `solve`."""


async def solve(
    problem: Problem,
    *,
    solver: SolverName,
    time_limit_seconds: float,
    gap: float = 0.0,
    seed: int = 0,
    memory_mib: int = 0,
    previous: SolvedProblem | None = None,
    report: Callable[[Solution], None] = ignored,
) -> Solution:
    """Return the solution of a problem; if the solver dies or is late, the best that it reported.

    If it reported nothing, the solution is the greedy or the current decision, else NotSolved. The
    `failure` of the solution says what the solver died of; a time limit is none. The
    time limit counts from this call and includes the start of the process, which is killed when it
    is late and when the caller is cancelled. `gap`: relative optimality gap that is good enough.
    `memory_mib`: MiB of address space that the process may have, 0 for any. `previous`: a similar
    problem and its solution, which the solve starts from; without a process where that decision,
    mended, is proven good enough. `report` is called in another thread with each better decision.
    """
    if np.isnan(problem.values).all():
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, solver)
    started = time.monotonic()
    until = started + time_limit_seconds
    loop, last = asyncio.get_running_loop(), list[Solution]()
    start = None if previous is None else previous.solution
    resolved = await _resolved(problem, previous, gap, until)
    if resolved is not None:
        start, is_enough = resolved
        if is_enough:
            return start
        last[:] = [start]
        await asyncio.to_thread(report, start)
        time_limit_seconds = max(0.0, until - time.monotonic())
    task = SolveTask(problem, solver, until, gap, seed, memory_mib, start)
    in_calls: ProcessFailure | None = None
    needed: asyncio.Future[bool] = loop.create_future()

    def decide(fallback_is_needed: bool) -> None:
        if not needed.done():
            needed.set_result(fallback_is_needed)

    def on_solution(solution: Solution) -> None:
        nonlocal in_calls
        in_calls = solution.failure
        if solution.status != "NotSolved" and not any(_proves_less(solution, one) for one in last):
            last[:] = [solution]
            report(solution)
            loop.call_soon_threadsafe(decide, False)

    patience = _SILENT_SHARE * max(0.0, time_limit_seconds - _PATIENT_SECONDS)
    silent = loop.call_later(patience, decide, True)
    fallback = asyncio.create_task(_fallback_when_needed(problem, until, needed))
    try:
        ended = await run_supervised(
            solve_task, task, seconds=time_limit_seconds, on_result=on_solution
        )
        if last:
            return _with_failure(last[0], ended.failure, "after it had reported this decision")
        decide(True)
        decision, limits = await fallback
        found = with_status(problem, decision, ([], limits), time.monotonic() - started, solver)
        found = replace(found, failure=in_calls)
        return _with_failure(found, ended.failure, "before it had reported a decision")
    finally:
        silent.cancel()
        fallback.cancel()


def _proves_less(one: Solution, other: Solution) -> bool:
    """Tell whether a solution is the same decision with a higher bound."""
    bounds = [np.inf if item.bound is None else item.bound for item in (one, other)]
    return one.decision == other.decision and bounds[0] > bounds[1]


async def _resolved(
    problem: Problem, previous: SolvedProblem | None, gap: float, until: float
) -> tuple[Solution, bool] | None:
    """Return what the previous solution gives, if anything, and whether that is good enough."""
    if previous is None:
        return None
    found = await asyncio.to_thread(
        resolve_with_node_rows,
        problem,
        previous,
        gap=gap,
        stop=lambda: time.monotonic() > until,
        clock=time.monotonic,
    )
    return None if found is None or found[0].status == "NotSolved" else found


def _with_failure(solution: Solution, failure: ProcessFailure | None, when: str) -> Solution:
    """Return a solution with what its solver died of, if it did; a warning names the cause."""
    if failure is not None:
        late = "" if failure.cause == "NotStarted" else f", {when}"
        failure = replace(failure, message=f"its process {failure.message}{late}")
        solution = replace(solution, failure=failure)
    if solution.failure is not None:
        _log.warning(
            "the solver failed",
            extra={"cause": solution.failure.cause, "error": solution.failure.message},
        )
    return solution


def solve_task(task: SolveTask, solutions: "Connection[Solution | None, None]") -> None:
    """Solve a task in the process that calls this; send every improvement and the result."""
    from optimizer.solve.strategy import solve_problem  # noqa: PLC0415 - the parent never loads PuLP

    limit_memory(task.memory_mib)
    solutions.send(
        solve_problem(
            task.problem,
            solver=task.solver,
            time_limit_seconds=max(0.0, task.until - time.monotonic()),
            gap=task.gap,
            seed=task.seed,
            incumbent=None if task.start is None else task.start.decision,
            prices=() if task.start is None else task.start.prices,
            node_rows=frozenset() if task.start is None else task.start.node_rows,
            report=solutions.send,
        )
    )


async def _fallback_when_needed(
    problem: Problem, until: float, needed: asyncio.Future[bool]
) -> tuple[Decision | None, Sequence[float]]:
    """Wait until it is known whether the fallback is needed; return it, or None and no bounds."""
    if not await needed:
        return None, ()
    return await asyncio.to_thread(_fallback_decision, problem, until)


def _fallback_decision(problem: Problem, until: float) -> tuple[Decision | None, tuple[float, ...]]:
    """Return the better of the current and the greedy decision, and the upper bound of each tier.

    Takes moments: no solver is called.
    """
    limits = upper_bounds(problem)
    known = better(problem, None, incumbent_from_current_state(problem))
    found = greedy(replace(problem, node_rows=frozenset()), lambda: time.monotonic() > until)
    return better(problem, known, fitting(problem, found)), limits
