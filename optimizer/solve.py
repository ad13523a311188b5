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
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import TypeVar

import numpy as np

from optimizer.problem import Problem, upper_bound
from optimizer.settings import SolverName
from optimizer.solution import Decision, Solution

_LATE = 0.1  # of its time that a process may be late before it is killed
_START_SECONDS = 3.0  # that it may be late in any case: a machine can be busy

T = TypeVar("T")
A = TypeVar("A")
Work = Callable[[T, "Connection[A, None]"], None]
"""Does what a task says and sends answers, ever better; found by name in the new process."""

_log = logging.getLogger(__name__)

_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_context: ForkServerContext | SpawnContext = (
    multiprocessing.get_context("forkserver") if _FORKS else multiprocessing.get_context("spawn")
)
_context.set_forkserver_preload(["optimizer.milp"])


@dataclass(frozen=True, slots=True)
class Task:
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

    Status NotSolved if that is nothing. The time limit counts from here; a process that is a tenth
    of it late (3 seconds, if that is more) is killed, and at once where the caller is cancelled.
    `gap`: good enough is this share below the bound. `memory_mib`: the address space that the
    process may have, 0 for any.
    """
    if np.isnan(problem.values).all():
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, solver)
    started = time.perf_counter()
    until = time.monotonic() + time_limit_seconds
    task = Task(problem, solver, until, gap, seed, memory_mib)
    answer = await isolated(work, task, seconds=time_limit_seconds)
    if answer is not None:
        return answer
    seconds = time.perf_counter() - started
    return Solution("NotSolved", Decision(), 0.0, upper_bound(problem), seconds, solver)


async def isolated(work: "Work[T, A]", task: T, *, seconds: float) -> A | None:
    """Do work in a process of its own; return its last answer, None where there is none.

    The process is killed when it is a tenth of its time late, and at once where the caller is
    cancelled.
    """
    cancelled, cancel = _context.Pipe(duplex=False)
    with cancel:
        return await asyncio.to_thread(_supervise, work, task, seconds, cancelled)


def work(task: Task, answers: "Connection[Solution, None]") -> None:
    """Solve in the process that this is called in; runs there alone."""
    from optimizer.milp import solve_here  # noqa: PLC0415 - the parent never loads PuLP

    _limit_memory(task.memory_mib)
    answers.send(
        solve_here(
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


def _alone(work: "Work[T, A]", task: T, answers: "Connection[A, None]") -> None:
    """Work in a process group of its own; what solvers print goes to stderr."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    sys.stdout = sys.stderr
    with answers:
        work(task, answers)


def _supervise(
    work: "Work[T, A]", task: T, seconds: float, cancelled: "Connection[None, None]"
) -> A | None:
    """Wait for the last answer, the time limit, or the caller's end of `cancelled` to close."""
    until = time.monotonic() + seconds + max(_START_SECONDS, _LATE * seconds)
    answers, theirs = _context.Pipe(duplex=False)
    process = _context.Process(target=_alone, args=(work, task, theirs), daemon=True)
    with cancelled, answers:
        process.start()
        theirs.close()
        try:
            return _last(answers, cancelled, until)
        finally:
            _kill(process)


def _last(
    answers: "Connection[None, A]", cancelled: "Connection[None, None]", until: float
) -> A | None:
    """Return the last answer that arrives in time; None if there is none."""
    last: A | None = None
    while (left := until - time.monotonic()) > 0:
        ready = wait([answers, cancelled], timeout=left)
        if cancelled in ready:
            return None
        if answers in ready:
            try:
                last = answers.recv()
            except (EOFError, OSError):  # OSError: it died while it was sending
                if last is None:
                    _log.error("the solver's process died without an answer")
                return last
    _log.warning("the solver's process was killed, as it did not keep its time limit")
    return last


def _kill(process: BaseProcess) -> None:
    """Kill the process and what it started, and collect it."""
    if process.pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()
