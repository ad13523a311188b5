"""Running a function in a process of its own: crashes, deadlines, processes left behind."""

import multiprocessing
import os
import time
from typing import TYPE_CHECKING

import pytest

from optimizer.solve.supervised_process import run_supervised
from tests.eventually import eventually

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def _die_after(results: tuple[str, ...], connection: "Connection[str, None]") -> None:
    for result in results:
        connection.send(result)
    os._exit(1)


def _hang_after(results: tuple[str, ...], connection: "Connection[str, None]") -> None:
    for result in results:
        connection.send(result)
    time.sleep(3_000)


async def test_a_process_that_dies_leaves_the_best_that_it_found() -> None:
    assert await run_supervised(_die_after, ("good", "better"), seconds=60) == "better"
    assert await run_supervised(_die_after, (), seconds=60) is None


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
    assert await run_supervised(_hang_after, given, seconds=seconds, clock=clock) == "better"
    await eventually(no_process_is_left)


async def test_at_the_limit_itself_a_result_still_counts() -> None:
    clock = Clock(_LOOKS, 60.0)
    given = ("good", "better", "best")
    assert await run_supervised(_die_after, given, seconds=60.0, clock=clock) == "best"


def _stuck(_: None, connection: "Connection[str, None]") -> None:
    time.sleep(3_000)


async def test_a_process_that_says_nothing_is_not_waited_for() -> None:
    assert await run_supervised(_stuck, None, seconds=0.1) is None
    await eventually(no_process_is_left)


async def no_process_is_left() -> bool:
    return not multiprocessing.active_children()
