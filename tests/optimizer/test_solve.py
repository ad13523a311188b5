"""Solving in another process."""

import asyncio
import multiprocessing
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from optimizer.formulate import formulate
from optimizer.problem import Problem, Spread
from optimizer.solution import Decision
from optimizer.solve import isolated, solve
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
    assert (solution.status, len(solution.decision.places)) == ("Optimal", 2)


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


async def test_a_process_that_dies_is_not_solved() -> None:
    sound = _problem(1, 1)
    impossible = replace(sound, tasks=(replace(sound.tasks[0], spread=(Spread("unread", 1),)),))
    solution = await solve(impossible, solver="highs", time_limit_seconds=60)
    assert (solution.status, solution.decision) == ("NotSolved", Decision())
    assert solution.bound == 0.0


def _die_after(answers_given: tuple[str, ...], answers: "Connection[str, None]") -> None:
    for answer in answers_given:
        answers.send(answer)
    os._exit(1)


def _hang_after(answers_given: tuple[str, ...], answers: "Connection[str, None]") -> None:
    for answer in answers_given:
        answers.send(answer)
    time.sleep(3_000)


async def test_a_process_that_dies_leaves_the_best_that_it_found() -> None:
    assert await isolated(_die_after, ("good", "better"), seconds=60) == "better"
    assert await isolated(_die_after, (), seconds=60) is None


async def test_a_process_that_does_not_end_leaves_the_best_that_it_found() -> None:
    assert await isolated(_hang_after, ("good", "better"), seconds=0) == "better"
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


async def test_a_process_that_needs_more_memory_than_allowed_is_not_solved() -> None:
    solution = await solve(_problem(2, 2), solver="highs", time_limit_seconds=60, memory_mib=1)
    assert (solution.status, solution.decision) == ("NotSolved", Decision())
    enough = await solve(_problem(2, 2), solver="highs", time_limit_seconds=60, memory_mib=8_192)
    assert enough.status == "Optimal"
