"""Solving in a process of its own."""

import asyncio

import pytest

from optimizer.model.formulate import formulate
from optimizer.model.objective import objective
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.solve.solver_process import solve
from tests.eventually import eventually
from tests.optimizer.build import fleet
from tests.optimizer.solve.test_supervised_process import no_process_is_left


def _problem(clusters: int, workloads: int) -> Problem:
    names = [f"c{index}" for index in range(clusters)]
    demands = {f"w{index}": 1 + index % 3 for index in range(workloads)}
    scores = {
        (cluster, name, "d"): float((17 * i + 31 * j) % 101)
        for i, cluster in enumerate(names)
        for j, name in enumerate(demands)
    }
    return formulate(fleet({name: [("d", 4)] for name in names}, demands, scores))


async def test_the_solution_comes_back_from_the_process() -> None:
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


async def test_a_cancelled_caller_leaves_no_process_behind() -> None:
    running = asyncio.create_task(
        solve(_problem(60, 200), solver="highs", time_limit_seconds=3_000)
    )
    await asyncio.sleep(0.1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(no_process_is_left)


async def test_nothing_to_assignment_needs_no_process() -> None:
    solution = await solve(formulate(fleet({}, {}, {})), solver="highs", time_limit_seconds=60)
    assert (solution.status, solution.bound) == ("Infeasible", 0.0)


async def test_a_process_that_needs_more_memory_than_allowed_leaves_the_fallback_decision() -> None:
    given = _problem(6, 20)
    fallback = await solve(given, solver="highs", time_limit_seconds=60, memory_mib=1)
    assert (fallback.status, violations(given, fallback.decision)) == ("Feasible", ())
    assert fallback.objective_value == objective(given, fallback.decision) > 0
    enough = await solve(given, solver="highs", time_limit_seconds=60, memory_mib=8_192)
    assert enough.status == "Optimal"
    assert fallback.objective_value < enough.objective_value
    assert fallback.bound is not None
    assert fallback.bound >= enough.objective_value
