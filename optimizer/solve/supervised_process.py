"""Runs one function in a process of its own, with a deadline and a memory limit.

The process is forked, where the platform can fork, from a server that has loaded the solver
already, so a start costs milliseconds. A function that hangs, crashes or exhausts its memory is
killed with everything that it started. The last result that it sent counts, with the reason why no
further one came.
"""

import asyncio
import contextlib
import errno
import importlib.util
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from optimizer.domain.solution import ProcessFailure

_KILL_AFTER = 0.05
"""Share of the time limit by which a process may be late before it is killed."""

_GIVE_UP_AFTER = 0.08
"""Share of the time limit after which the caller no longer waits, not even for a start."""

_HANDOVER_SECONDS = 0.004
"""Seconds to hand the result to the event loop, independent of the limit."""

_PRELOADED = ["optimizer.solve.strategy"]
"""Modules that the fork server imports once, instead of every process."""

_START_RETRIES = 100
"""How often a start is tried again while the fork server refuses connections."""

_RETRY_SECONDS = 0.01
"""Pause before it is tried again. The kernel collects a killed process within milliseconds."""

_MEMORY_EXIT_CODE = 71
"""Exit code of a process that got no more memory; sending a message would need some."""

_UNKNOWN_EXIT_CODE = 255
"""What multiprocessing says of a process whose fork server is gone too."""

_CRASHES = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"})
"""Signals that a process gets for its own fault; others are sent by somebody."""

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[T, "Connection[R | None, None]"], None]
"""Does a task and sends results, each better than the one before; importable by its name."""

_log = logging.getLogger(__name__)

_FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_context: ForkServerContext | SpawnContext = (
    multiprocessing.get_context("forkserver") if _FORKS else multiprocessing.get_context("spawn")
)
_context.set_forkserver_preload(_PRELOADED)


@dataclass(frozen=True, slots=True)
class SupervisedResult(Generic[R]):
    """The last result of a process, None if it sent none, and whether it came to its end.

    `failure`: why it ended before that; with neither, the time limit ended it.
    """

    last: R | None = None
    finished: bool = False
    failure: ProcessFailure | None = None


def start_fork_server() -> None:
    """Start the server that processes are forked from, so that the first solve need not wait."""
    if _FORKS:
        with contextlib.suppress(OSError):  # the process that can't be started tells it
            forkserver.ensure_running()


async def run_supervised(
    work: "Work[T, R]",
    task: T,
    *,
    seconds: float,
    on_result: Callable[[R], None] = lambda _result: None,
    clock: Callable[[], float] = time.monotonic,
) -> SupervisedResult[R]:
    """Run `work(task)` in a separate process; return its last result and how it ended.

    Returns within 1.1 times `seconds` by `clock`, also if the process hangs. The process is killed
    when it is late, and at once when the caller is cancelled. `on_result` is called with every
    result, in another thread.
    """
    started = clock()

    def left(late_by: float) -> float:
        return started + (1.0 + late_by) * seconds - _HANDOVER_SECONDS - clock()

    result: Future[SupervisedResult[R]] = Future()
    waiting, started_up = asyncio.wrap_future(result), threading.Event()
    try:
        cancelled, cancel = _context.Pipe(duplex=False)
    except OSError as error:
        return SupervisedResult(failure=_not_started(f"{type(error).__name__}: {error}"))
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
            started_up,
            result,
        )
        try:
            await asyncio.wait({waiting}, timeout=max(0.0, left(_GIVE_UP_AFTER)))
            if waiting.done():
                return waiting.result()
            if started_up.is_set():
                return SupervisedResult()
            late = f"it took longer than the time limit of {seconds:g} s"
            return SupervisedResult(failure=_not_started(late))
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


def _child_main(work: "Work[T, R]", task: T, results: "Connection[R | None, None]") -> None:
    """Do the task in a process group of its own, then send None; solvers print to stderr."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    sys.stdout = sys.stderr
    with results:
        try:
            work(task, results)
        except Exception as error:
            if _is_out_of_memory(error):
                os._exit(_MEMORY_EXIT_CODE)
            raise
        results.send(None)


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one that it followed, came from a lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _supervise(
    work: "Work[T, R]",
    task: T,
    left: Callable[[], float],
    on_result: Callable[[R], None],
    cancelled: "Connection[None, None]",
    started_up: threading.Event,
    result: "Future[SupervisedResult[R]]",
) -> None:
    """Run the process; set `result` to what it sent in time and how it ended.

    The caller is cancelled when its end of `cancelled` closes. The result is set before the process
    is killed, because the process may take a while to give its memory back.
    """
    with cancelled:
        if not result.set_running_or_notify_cancel():
            return
        try:
            ours, theirs = _context.Pipe(duplex=False)
            with theirs:
                process = _start(work, task, theirs)
        except Exception as error:  # noqa: BLE001 - whatever prevents the start is reported
            result.set_result(
                SupervisedResult(failure=_not_started(f"{type(error).__name__}: {error}"))
            )
            return
        started_up.set()
        with ours:
            try:
                result.set_result(_collected(process, ours, on_result, cancelled, left))
            finally:
                _kill(process)


def _start(work: "Work[T, R]", task: T, results: "Connection[R | None, None]") -> BaseProcess:
    """Start the process; raises OSError where that can't be done.

    A fork server that was killed refuses connections for a moment before the kernel lets another
    one be started in its place.
    """
    for retries_left in range(_START_RETRIES, -1, -1):
        process = _context.Process(target=_child_main, args=(work, task, results), daemon=True)
        try:
            process.start()
            break
        except ConnectionError:
            if not retries_left:
                raise
            time.sleep(_RETRY_SECONDS)
    return process


def _collected(
    process: BaseProcess,
    results: "Connection[None, R | None]",
    on_result: Callable[[R], None],
    cancelled: "Connection[None, None]",
    left: Callable[[], float],
) -> SupervisedResult[R]:
    """Return the last result that arrives in time, and how the process ended."""
    last: R | None = None
    while (seconds := left()) > 0:
        ready = wait([results, cancelled], timeout=seconds)
        if cancelled in ready:
            return SupervisedResult(last)
        if results in ready:
            try:
                received = results.recv()
            except (EOFError, OSError):  # OSError: the process died while it was sending
                wait([process.sentinel, cancelled], timeout=max(0.0, left()))
                return SupervisedResult(last, failure=_failure(process.exitcode))
            if received is None:
                return SupervisedResult(last, finished=True)
            last = received
            on_result(last)
    _log.info("the solver process was killed at its time limit")
    return SupervisedResult(last)


def _not_started(why: str) -> ProcessFailure:
    return ProcessFailure("NotStarted", f"could not be started: {why}")


def _failure(exit_code: int | None) -> ProcessFailure:
    """Return why a process ended that did not finish; `exit_code` as multiprocessing tells it."""
    if exit_code == _MEMORY_EXIT_CODE:
        return ProcessFailure("MemoryLimit", "reached its memory limit")
    if exit_code == _UNKNOWN_EXIT_CODE:
        gone = "ended, and so did the server that starts processes, so nobody can tell why"
        return ProcessFailure("Killed", gone)
    if exit_code is None or exit_code >= 0:
        code = "" if exit_code is None else f" with exit code {exit_code}"
        return ProcessFailure("Crashed", f"ended{code} before its work was done")
    name = _signal_name(-exit_code)
    if name in _CRASHES:
        return ProcessFailure("Crashed", f"crashed with {name}")
    return ProcessFailure(
        "Killed", f"was killed by {name}: by the kernel because memory ran out, or by hand"
    )


def _signal_name(number: int) -> str:
    known = {item.value: item.name for item in signal.Signals}
    return known.get(number, f"signal {number}")


def _kill(process: BaseProcess) -> None:
    """Kill the process and everything that it started, and collect it."""
    if process.pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()
