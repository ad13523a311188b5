"""Solving in a process of its own: the event loop stays free and a time limit can be enforced.

The process is forked from a server that has loaded PuLP already, where the platform can fork: a
solve then costs milliseconds to start, and a solver that hangs or crashes takes nothing with it.
"""

import asyncio
import contextlib
import importlib.util
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import TypeVar

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision, Solution
from optimizer.model.lexicographic import better
from optimizer.model.problem import Problem, upper_bounds
from optimizer.solve.heuristics.current_incumbent import incumbent_from_current_state
from optimizer.solve.heuristics.greedy import greedy
from optimizer.solve.solution_status import with_status

_LATE = 0.05  # of its time that a process may be late before it is killed
_GONE = 0.08  # of the time after which not even its start is waited for
_HANDING = 0.004  # seconds that handing over the answer takes, whatever the limit
_SILENT = 0.2  # of the time beyond _SHORT after which the process may have no decision in time
_SHORT = 5.0  # seconds up to which none is waited for

T = TypeVar("T")
A = TypeVar("A")
Work = Callable[[T, "Connection[A, None]"], None]
"""Does what a task says and sends answers, ever better; found by name in the new process."""

_log = logging.getLogger(__name__)

_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_context: ForkServerContext | SpawnContext = (
    multiprocessing.get_context("forkserver") if _FORKS else multiprocessing.get_context("spawn")
)
_context.set_forkserver_preload(["optimizer.solve.strategy"])


def start_fork_server() -> None:
    """Start the server that processes are forked from, so that the first one need not wait."""
    if _FORKS:
        forkserver.ensure_running()


@dataclass(frozen=True, slots=True)
class SolveTask:
    """What to solve and how; `until` is when, by the monotonic clock that processes share."""

    problem: Problem
    solver: SolverName
    until: float
    gap: float
    seed: int
    memory_mib: int


async def solve(
    problem: Problem,
    *,
    solver: SolverName,
    time_limit_seconds: float,
    gap: float = 0.0,
    seed: int = 0,
    memory_mib: int = 0,
) -> Solution:
    """Solve a problem; a solver that dies or ignores its limits leaves the best that it found.

    If that is nothing, a hasty decision is what is left, NotSolved where there is none. The time
    limit counts from here, the start of the process included: one that is late is killed, and at
    once where the caller is cancelled.
    `gap`: good enough is this share below the bound. `memory_mib`: the address space that the
    process may have, 0 for any.
    """
    if np.isnan(problem.values).all():
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, solver)
    started = time.monotonic()
    until = started + time_limit_seconds
    task = SolveTask(problem, solver, until, gap, seed, memory_mib)
    loop, last = asyncio.get_running_loop(), list[Solution]()
    needed: asyncio.Future[bool] = loop.create_future()

    def need(hasty: bool) -> None:
        if not needed.done():
            needed.set_result(hasty)

    def heard(answer: Solution) -> None:
        if answer.status != "NotSolved":
            last[:] = [answer]
            loop.call_soon_threadsafe(need, False)

    patience = _SILENT * max(0.0, time_limit_seconds - _SHORT)
    silent = loop.call_later(patience, need, True)
    beside = asyncio.create_task(_fallback_when_needed(problem, until, needed))
    try:
        await run_supervised(solve_task, task, seconds=time_limit_seconds, heard=heard)
        if last:
            return last[0]
        need(True)
        decision, limits = await beside
        return with_status(problem, decision, ([], limits), time.monotonic() - started, solver)
    finally:
        silent.cancel()
        beside.cancel()


async def _fallback_when_needed(
    problem: Problem, until: float, needed: asyncio.Future[bool]
) -> tuple[Decision | None, Sequence[float]]:
    """Return a hasty decision once it is needed: large problems take much memory for it."""
    if not await needed:
        return None, ()
    return await asyncio.to_thread(_fallback_decision, problem, until)


def _fallback_decision(problem: Problem, until: float) -> tuple[Decision | None, tuple[float, ...]]:
    """Return a decision that takes moments to find, and what no decision exceeds in each tier."""
    limits = upper_bounds(problem)
    known = better(problem, None, incumbent_from_current_state(problem))
    return better(problem, known, greedy(problem, lambda: time.monotonic() > until)), limits


async def run_supervised(
    solve_task: "Work[T, A]",
    task: T,
    *,
    seconds: float,
    heard: Callable[[A], None] = lambda _answer: None,
    clock: Callable[[], float] = time.monotonic,
) -> A | None:
    """Do work in a process of its own; return its last answer, None where there is none.

    The answer comes in time, to a tenth of `seconds` by `clock`, whatever the process does. It is
    killed when it is late, and at once where the caller is cancelled. `heard` is told every answer,
    in another thread.
    """
    started = clock()

    def late(share: float) -> float:
        return started + (1.0 + share) * seconds - _HANDING - clock()

    answer: Future[A | None] = Future()
    waiting = asyncio.wrap_future(answer)
    cancelled, cancel = _context.Pipe(duplex=False)
    with cancel:
        # Nothing waits for this call: a start that takes too long must not hold up the answer.
        asyncio.get_running_loop().run_in_executor(
            None, _supervise, solve_task, task, lambda: late(_LATE), heard, cancelled, answer
        )
        try:
            await asyncio.wait({waiting}, timeout=max(0.0, late(_GONE)))
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()


def solve_task(task: SolveTask, answers: "Connection[Solution, None]") -> None:
    """Solve in the process that this is called in; runs there alone."""
    from optimizer.solve.strategy import solve_problem  # noqa: PLC0415 - the parent never loads PuLP

    _limit_memory(task.memory_mib)
    answers.send(
        solve_problem(
            task.problem,
            solver=task.solver,
            time_limit_seconds=max(0.0, task.until - time.monotonic()),
            gap=task.gap,
            seed=task.seed,
            report=answers.send,
        )
    )


def _limit_memory(mib: int) -> None:
    """Limit the address space of this process, where the platform can."""
    if not mib or importlib.util.find_spec("resource") is None:
        return
    import resource  # noqa: PLC0415 - there is none on Windows

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = mib << 20
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _child_main(solve_task: "Work[T, A]", task: T, answers: "Connection[A, None]") -> None:
    """Work in a process group of its own; what solvers print goes to stderr."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    sys.stdout = sys.stderr
    with answers:
        solve_task(task, answers)


def _supervise(
    solve_task: "Work[T, A]",
    task: T,
    left: Callable[[], float],
    heard: Callable[[A], None],
    cancelled: "Connection[None, None]",
    answer: "Future[A | None]",
) -> None:
    """Answer with the last answer in time; None where the caller's end of `cancelled` closes.

    The process is killed once that is told: it may take a while to give its memory back.
    """
    with cancelled:
        if not answer.set_running_or_notify_cancel():
            return
        answers, theirs = _context.Pipe(duplex=False)
        process = _context.Process(target=_child_main, args=(solve_task, task, theirs), daemon=True)
        with answers, theirs:
            try:
                process.start()
            except OSError as error:
                answer.set_exception(error)
                return
            theirs.close()
            try:
                answer.set_result(_receive_until(answers, heard, cancelled, left))
            finally:
                _kill(process)


def _receive_until(
    answers: "Connection[None, A]",
    heard: Callable[[A], None],
    cancelled: "Connection[None, None]",
    left: Callable[[], float],
) -> A | None:
    """Return the last answer that arrives in time; None if there is none."""
    last: A | None = None
    while (seconds := left()) > 0:
        ready = wait([answers, cancelled], timeout=seconds)
        if cancelled in ready:
            return None
        if answers in ready:
            try:
                last = answers.recv()
            except (EOFError, OSError):  # OSError: it died while it was sending
                if last is None:
                    _log.error("the solver's process died without an answer: give it more memory?")
                return last
            heard(last)
    _log.info("the solver's process was stopped at its time limit")
    return last


def _kill(process: BaseProcess) -> None:
    """Kill the process and what it started, and collect it."""
    if process.pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()
