"""Solving in another process."""

import asyncio
import multiprocessing
import os
import time
from typing import TYPE_CHECKING

import pytest

from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem, objective
from optimizer.model.rules import violations
from optimizer.solve.solver_process import run_supervised, solve
from tests.optimizer.build import fleet

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def _problem(clusters: int, workloads: int) -> Problem:
    names = [f"c{index}" for index in range(clusters)]
    demands = {f"w{index}": 1 + index % 3 for index in range(workloads)}
    scores = {
        (cluster, name, "d"): float((17 * i + 31 * j) % 101)
        for i, cluster in enumerate(names)
        for j, name in enumerate(demands)
    }
    return formulate(fleet({name: [("d", 4)] for name in names}, demands, scores))


async def test_the_answer_comes_back_from_the_process() -> None:
    solution = await solve(_problem(2, 2), solver="highs", time_limit_seconds=60)
    assert (solution.status, len(solution.decision.assignments)) == ("Optimal", 2)


async def test_the_event_loop_runs_on_while_solving() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await solve(_problem(4, 8), solver="highs", time_limit_seconds=60)
    ticking.cancel()
    assert ticks > 100


def _die_after(answers_given: tuple[str, ...], answers: "Connection[str, None]") -> None:
    for answer in answers_given:
        answers.send(answer)
    os._exit(1)


def _hang_after(answers_given: tuple[str, ...], answers: "Connection[str, None]") -> None:
    for answer in answers_given:
        answers.send(answer)
    time.sleep(3_000)


async def test_a_process_that_dies_leaves_the_best_that_it_found() -> None:
    assert await run_supervised(_die_after, ("good", "better"), seconds=60) == "better"
    assert await run_supervised(_die_after, (), seconds=60) is None


class Clock:
    """Time that passes by being looked at: after so many looks it is `then`."""

    def __init__(self, looks: int, then: float) -> None:
        self.looks, self.then = looks, then

    def __call__(self) -> float:
        self.looks -= 1
        return 0.0 if self.looks >= 0 else self.then


_LOOKS = 4  # at the start, when the caller begins to wait, and before each of two answers


@pytest.mark.parametrize("seconds", [60.0, 3_000.0])
async def test_a_process_that_does_not_end_leaves_the_best_that_it_found(seconds: float) -> None:
    """A tenth beyond the limit it is waited for no more."""
    clock = Clock(_LOOKS, 1.1 * seconds)
    given = ("good", "better")
    assert await run_supervised(_hang_after, given, seconds=seconds, clock=clock) == "better"
    assert await asyncio.to_thread(_no_process_is_left)


async def test_at_the_limit_itself_an_answer_still_counts() -> None:
    clock = Clock(_LOOKS, 60.0)
    given = ("good", "better", "best")
    assert await run_supervised(_die_after, given, seconds=60.0, clock=clock) == "best"


def _stuck(_: None, answers: "Connection[str, None]") -> None:
    time.sleep(3_000)


async def test_a_process_that_says_nothing_is_not_waited_for() -> None:
    assert await run_supervised(_stuck, None, seconds=0.1) is None
    assert await asyncio.to_thread(_no_process_is_left)


async def test_a_cancelled_caller_leaves_no_process_behind() -> None:
    running = asyncio.create_task(
        solve(_problem(60, 200), solver="highs", time_limit_seconds=3_000)
    )
    await asyncio.sleep(0.1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(_no_process_is_left)


def _no_process_is_left() -> bool:
    """Wait for a minute at most, so that a process left behind does not stop the suite."""
    for _ in range(6_000):
        if not multiprocessing.active_children():
            return True
        time.sleep(0.01)
    return False


async def test_nothing_to_place_needs_no_process() -> None:
    solution = await solve(formulate(fleet({}, {}, {})), solver="highs", time_limit_seconds=60)
    assert (solution.status, solution.bound) == ("Infeasible", 0.0)


async def test_a_process_that_needs_more_memory_than_allowed_leaves_a_hasty_decision() -> None:
    given = _problem(6, 20)
    hasty = await solve(given, solver="highs", time_limit_seconds=60, memory_mib=1)
    assert (hasty.status, violations(given, hasty.decision)) == ("Feasible", ())
    assert hasty.objective_value == objective(given, hasty.decision) > 0
    enough = await solve(given, solver="highs", time_limit_seconds=60, memory_mib=8_192)
    assert enough.status == "Optimal"
    assert hasty.objective_value < enough.objective_value
    assert hasty.bound is not None
    assert hasty.bound >= enough.objective_value
