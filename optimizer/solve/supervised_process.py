"""Runs one function in a process of its own, with a deadline and a memory limit.

The process is forked, where the platform can fork, from a server that has loaded the solver
already, so a start costs milliseconds. A function that hangs, crashes or exhausts its memory is
killed with everything that it started, and the last result that it sent counts.
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
from concurrent.futures import Future
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import TypeVar

_KILL_AFTER = 0.05
"""Share of the time limit by which a process may be late before it is killed."""

_GIVE_UP_AFTER = 0.08
"""Share of the time limit after which the caller no longer waits, not even for a start."""

_HANDOVER_SECONDS = 0.004
"""Seconds to hand the result to the event loop, independent of the limit."""

_PRELOADED = ["optimizer.solve.strategy"]
"""Modules that the fork server imports once, instead of every process."""

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[T, "Connection[R, None]"], None]
"""Does a task and sends results, each better than the one before; importable by its name."""

_log = logging.getLogger(__name__)

_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_context: ForkServerContext | SpawnContext = (
    multiprocessing.get_context("forkserver") if _FORKS else multiprocessing.get_context("spawn")
)
_context.set_forkserver_preload(_PRELOADED)


def start_fork_server() -> None:
    """Start the server that processes are forked from, so that the first solve need not wait."""
    if _FORKS:
        forkserver.ensure_running()


async def run_supervised(
    work: "Work[T, R]",
    task: T,
    *,
    seconds: float,
    on_result: Callable[[R], None] = lambda _result: None,
    clock: Callable[[], float] = time.monotonic,
) -> R | None:
    """Run `work(task)` in a separate process; return its last result, None if it sent none.

    Returns within 1.1 times `seconds` by `clock`, also if the process hangs. The process is killed
    when it is late, and at once when the caller is cancelled. `on_result` is called with every
    result, in another thread.
    """
    started = clock()

    def left(late_by: float) -> float:
        return started + (1.0 + late_by) * seconds - _HANDOVER_SECONDS - clock()

    result: Future[R | None] = Future()
    waiting = asyncio.wrap_future(result)
    cancelled, cancel = _context.Pipe(duplex=False)
    with cancel:
        # Nothing waits for this call, so a slow start cannot delay the result.
        asyncio.get_running_loop().run_in_executor(
            None,
            _supervise,
            work,
            task,
            lambda: left(_KILL_AFTER),
            on_result,
            cancelled,
            result,
        )
        try:
            await asyncio.wait({waiting}, timeout=max(0.0, left(_GIVE_UP_AFTER)))
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()


def limit_memory(mib: int) -> None:
    """Limit the address space of this process to `mib` MiB; 0 or an unable platform: no limit."""
    if not mib or importlib.util.find_spec("resource") is None:
        return
    import resource  # noqa: PLC0415 - Windows has none

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = mib << 20
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _child_main(work: "Work[T, R]", task: T, results: "Connection[R, None]") -> None:
    """Do the task in a process group of its own; what solvers print goes to stderr."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    sys.stdout = sys.stderr
    with results:
        work(task, results)


def _supervise(
    work: "Work[T, R]",
    task: T,
    left: Callable[[], float],
    on_result: Callable[[R], None],
    cancelled: "Connection[None, None]",
    result: "Future[R | None]",
) -> None:
    """Run the process; set `result` to the last result in time, None if the caller is cancelled.

    The caller is cancelled when its end of `cancelled` closes. The result is set before the process
    is killed, because the process may take a while to give its memory back.
    """
    with cancelled:
        if not result.set_running_or_notify_cancel():
            return
        ours, theirs = _context.Pipe(duplex=False)
        process = _context.Process(target=_child_main, args=(work, task, theirs), daemon=True)
        with ours, theirs:
            try:
                process.start()
            except OSError as error:
                result.set_exception(error)
                return
            theirs.close()
            try:
                result.set_result(_last_result(ours, on_result, cancelled, left))
            finally:
                _kill(process)


def _last_result(
    results: "Connection[None, R]",
    on_result: Callable[[R], None],
    cancelled: "Connection[None, None]",
    left: Callable[[], float],
) -> R | None:
    """Return the last result that arrives in time; None if there is none, or on cancellation."""
    last: R | None = None
    while (seconds := left()) > 0:
        ready = wait([results, cancelled], timeout=seconds)
        if cancelled in ready:
            return None
        if results in ready:
            try:
                last = results.recv()
            except (EOFError, OSError):  # OSError: the process died while it was sending
                if last is None:
                    _log.error("the solver process died without a result: give it more memory?")
                return last
            on_result(last)
    _log.info("the solver process was killed at its time limit")
    return last


def _kill(process: BaseProcess) -> None:
    """Kill the process and everything that it started, and collect it."""
    if process.pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()
