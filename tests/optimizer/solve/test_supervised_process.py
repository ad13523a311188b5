"""Running a function in a process of its own: crashes, deadlines, processes left behind."""

import multiprocessing
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from optimizer.domain.solution import ProcessFailure
from optimizer.solve.supervised_process import SupervisedResult, run_supervised
from tests.eventually import eventually

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def _die_after(results: tuple[str, ...], connection: "Connection[str | None, None]") -> None:
    for result in results:
        connection.send(result)
    os._exit(1)


def _hang_after(results: tuple[str, ...], connection: "Connection[str | None, None]") -> None:
    for result in results:
        connection.send(result)
    time.sleep(3_000)


async def test_a_process_that_dies_leaves_the_best_that_it_found() -> None:
    ended = await run_supervised(_die_after, ("good", "better"), seconds=60)
    assert ended.last == "better"
    assert ended.failure == ProcessFailure(
        "Crashed", "ended with exit code 1 before its work was done"
    )
    ended = await run_supervised(_die_after, (), seconds=60)
    assert (ended.last, ended.finished) == (None, False)


async def test_a_process_that_ends_its_work_did_not_fail() -> None:
    ended = await run_supervised(_send, "good", seconds=60)
    assert ended == SupervisedResult("good", finished=True)


def _send(result: str, connection: "Connection[str | None, None]") -> None:
    connection.send(result)


def _signal_itself(number: int, _: "Connection[str | None, None]") -> None:
    os.kill(os.getpid(), number)


def _raise(error: Exception, _: "Connection[str | None, None]") -> None:
    raise error


@pytest.mark.parametrize(
    ("work", "task", "cause", "said"),
    [
        (_signal_itself, signal.SIGKILL, "Killed", "was killed by SIGKILL: by the kernel"),
        (_signal_itself, signal.SIGTERM, "Killed", "was killed by SIGTERM"),
        (_signal_itself, signal.SIGSEGV, "Crashed", "crashed with SIGSEGV"),
        (_raise, MemoryError(), "MemoryLimit", "reached its memory limit"),
        (_raise, ValueError(), "Crashed", "ended with exit code 1 before its work was done"),
        (_raise, lambda: None, "NotStarted", "could not be started: "),
    ],
)
async def test_it_is_told_what_a_process_died_of(
    work: Any, task: object, cause: str, said: str
) -> None:
    failure = (await run_supervised(work, task, seconds=60)).failure
    assert failure is not None
    assert failure.cause == cause
    assert failure.message.startswith(said)


def _die_with_the_fork_server(_: None, _results: "Connection[str | None, None]") -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


async def test_a_process_whose_fork_server_dies_too_is_told_and_the_next_one_starts() -> None:
    failure = (await run_supervised(_die_with_the_fork_server, None, seconds=60)).failure
    assert failure is not None
    assert (failure.cause, "the server that starts processes" in failure.message) == (
        "Killed",
        True,
    )
    assert (await run_supervised(_send, "good", seconds=60)).last == "good"


class Clock:
    """A clock that says 0 for the first `looks` calls and `then` afterwards."""

    def __init__(self, looks: int, then: float) -> None:
        self.looks, self.then = looks, then

    def __call__(self) -> float:
        self.looks -= 1
        return 0.0 if self.looks >= 0 else self.then


_LOOKS = 4  # at the start, when the caller begins to wait, and before each of two results


@pytest.mark.parametrize("seconds", [60.0, 3_000.0])
async def test_a_process_that_does_not_end_leaves_the_best_that_it_found(seconds: float) -> None:
    """The caller waits for it until a tenth beyond the limit."""
    clock = Clock(_LOOKS, 1.1 * seconds)
    given = ("good", "better")
    ended = await run_supervised(_hang_after, given, seconds=seconds, clock=clock)
    assert ended == SupervisedResult("better")
    await eventually(no_process_is_left)


async def test_at_the_limit_itself_a_result_still_counts() -> None:
    clock = Clock(_LOOKS, 60.0)
    given = ("good", "better", "best")
    ended = await run_supervised(_die_after, given, seconds=60.0, clock=clock)
    assert ended.last == "best"


def _stuck(_: None, connection: "Connection[str | None, None]") -> None:
    time.sleep(3_000)


async def test_a_process_that_says_nothing_is_not_waited_for() -> None:
    assert (await run_supervised(_stuck, None, seconds=0.1)).last is None
    await eventually(no_process_is_left)


async def no_process_is_left() -> bool:
    return not multiprocessing.active_children()
