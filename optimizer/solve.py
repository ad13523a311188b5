"""Solving in a process of its own: the event loop stays free and a time limit can be enforced."""

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import sys
import time

from optimizer.problem import Problem, upper_bound
from optimizer.settings import SolverName
from optimizer.solution import Decision, Solution
from optimizer.worker import Task

GRACE_SECONDS = 10.0

_log = logging.getLogger(__name__)


async def solve(problem: Problem, *, solver: SolverName, time_limit_seconds: float) -> Solution:
    """Solve a problem; a solver that dies or ignores its limit gives status NotSolved.

    The time limit is the solver's; its process is killed GRACE_SECONDS later, and at once where
    the caller is cancelled.
    """
    if not problem.values:
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, solver)
    started = time.perf_counter()
    task = pickle.dumps(Task(problem, solver, time_limit_seconds))
    answer = await _run(task, time_limit_seconds + GRACE_SECONDS)
    if answer is None:
        seconds = time.perf_counter() - started
        return Solution("NotSolved", Decision(), 0.0, upper_bound(problem), seconds, solver)
    return answer


async def _run(task: bytes, seconds: float) -> Solution | None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "optimizer.worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate(task)
    except TimeoutError:
        _log.warning("the solver's process was stopped after %.0f s", seconds)
        return None
    finally:
        await _killed(process)
    if process.returncode:
        _log.error("the solver's process failed: %s", errors.decode(errors="replace")[-2000:])
        return None
    solution: Solution = pickle.loads(output)  # noqa: S301 - written by our own process
    return solution


async def _killed(process: asyncio.subprocess.Process) -> None:
    """Kill the process and what it started, and collect it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
