"""What solving again costs after a change, as a share of solving the changed problem from nothing.

python -m benchmarks.optimizer.resolves [--draws 6] [--only "dist 1, 0.25%"] [--change anywhere]
python -m benchmarks.optimizer.resolves --memory 10000

A row is a change, drawn several times. `CPU` is the mean over draws of the re-solve's CPU seconds,
and `of cold` their sum divided by that of the cold solves of the same problems in the same run.
`at once` counts the draws that needed no search. `worst` is the largest gap of a re-solve and of a
cold solve; neither is above the gap asked for, unless a limit of 30 CPU s ended it. `--memory`
solves a small problem so often, with one score drawn anew each time, and prints the memory of this
process every tenth of the way.
"""

import argparse
import asyncio
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.optimizer.instances import instance, problem
from benchmarks.optimizer.priorities import tiered
from benchmarks.optimizer.tuning_cases import PLENTY, linked_fleet
from optimizer.domain.solution import Solution
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.solve.solver_process import solve
from optimizer.solve.strategy import solve_problem
from optimizer.solve.warm_start import SolvedProblem, kept_for_next, resolve

T = TypeVar("T")

Change = Callable[[Problem, Solution, np.random.Generator], Problem]
_SECONDS, _NOISE, _BEST = 30.0, 15, 100.0


def _with(given: Problem, at: tuple[int, int], by: float) -> Problem:
    values = given.values.copy()
    values[at] = np.clip(values[at] + by, 0.0, _BEST)
    return replace(given, values=values)


def _any(given: Problem, random: np.random.Generator) -> tuple[int, int]:
    usable = np.argwhere(~np.isnan(given.values))
    workload, place = usable[random.integers(len(usable))].tolist()
    return workload, place


def one_drawn_anew(given: Problem, _: Solution, random: np.random.Generator) -> Problem:
    """Change any score by up to 15 points."""
    return _with(given, _any(given, random), float(random.integers(-_NOISE, _NOISE + 1)))


def one_set_anywhere(given: Problem, _: Solution, random: np.random.Generator) -> Problem:
    """Give any score any value."""
    at = _any(given, random)
    return _with(given, at, float(random.integers(0, _BEST + 1)) - float(given.values[at]))


def one_used_falls(given: Problem, last: Solution, random: np.random.Generator) -> Problem:
    """Take 15 points from the score of an assignment that was chosen."""
    chosen = given.indexes_of(last.decision.assignments)
    return _with(given, chosen[random.integers(len(chosen))], -_NOISE)


def one_becomes_best(given: Problem, _: Solution, random: np.random.Generator) -> Problem:
    """Raise any score to the best one."""
    return _with(given, _any(given, random), _BEST)


def hundredth_drawn_anew(given: Problem, _: Solution, random: np.random.Generator) -> Problem:
    """Change one score of a hundred by up to 15 points."""
    hit = random.random(given.values.shape) < 0.01  # noqa: PLR2004 - a hundredth
    by = np.where(hit, random.integers(-_NOISE, _NOISE + 1, given.values.shape), 0)
    return replace(given, values=np.clip(given.values + by, 0.0, _BEST))


def cluster_lost(given: Problem, _: Solution, random: np.random.Generator) -> Problem:
    """Take a cluster away."""
    lost = int(random.integers(len(given.clusters)))
    stays = np.broadcast_to(given.resource_cluster[None, :] != lost, given.values.shape)
    return given.restricted(stays, np.array([item.cluster != lost for item in given.policies]))


def workload_added(given: Problem, _: Solution, random: np.random.Generator) -> Problem:
    """Add one that is like another."""
    like = int(random.integers(len(given.workloads)))
    limits = tuple(
        replace(item, workloads=np.append(item.workloads, item.workloads[like]))
        for item in given.limits
    )
    return replace(
        given,
        workloads=(*given.workloads, replace(given.workloads[like], name="added")),
        values=np.vstack([given.values, given.values[like]]),
        limits=limits,
    )


CHANGES: tuple[Change, ...] = (
    one_drawn_anew,
    one_set_anywhere,
    one_used_falls,
    one_becomes_best,
    hundredth_drawn_anew,
    cluster_lost,
    workload_added,
)


@dataclass(frozen=True, slots=True)
class Case:
    """A problem, and the gap that is asked for."""

    name: str
    problem: Problem
    gap: float


def cases() -> Iterator[Case]:
    """Yield 200 x 500 of three kinds, linking rows, two priorities, and a proof of the optimum."""
    for seed in (1, 2, 3):
        yield Case(
            f"200 x 500 dist {seed}, 0.25%", problem(instance(200, 500, "dist", seed)), 25e-4
        )
    yield Case("200 x 500 dist 2, 0.1%", problem(instance(200, 500, "dist", 2)), 1e-3)
    yield Case("200 x 500 prof 1, 0.25%", problem(instance(200, 500, "prof")), 25e-4)
    yield Case("200 x 500 prof 1, 0.1%", problem(instance(200, 500, "prof")), 1e-3)
    yield Case("200 x 500 rand 1, 0.25%", problem(instance(200, 500, "rand")), 25e-4)
    linked = formulate(linked_fleet(instance(30, 80, "dist"), PLENTY))
    yield Case("30 x 80 with limits, spread and replicas, 1%", linked, 1e-2)
    yield Case("60 x 120 two priorities, 1%", tiered(problem(instance(60, 120, "dist")), 2), 1e-2)
    yield Case("20 x 50 dist 2, proven", problem(instance(20, 50, "dist", 2)), 0.0)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    before = time.process_time()
    found = work()
    return found, time.process_time() - before


def _cold(given: Problem, gap: float) -> Solution:
    return solve_problem(
        given, solver="highs", time_limit_seconds=_SECONDS, gap=gap, clock=time.process_time
    )


def _again(given: Problem, previous: SolvedProblem, gap: float) -> tuple[Solution, bool]:
    """Solve as `solve` does, in this process; tell whether no search was needed."""
    found = resolve(given, previous, gap=gap, stop=lambda: False, clock=time.monotonic)
    start, is_enough = (previous.solution, False) if found is None else found
    if is_enough:
        return start, True
    return solve_problem(
        given,
        solver="highs",
        time_limit_seconds=_SECONDS,
        gap=gap,
        incumbent=start.decision,
        prices=start.prices,
        clock=time.process_time,
    ), False


def _row(case: Case, last: SolvedProblem, change: Change, draws: int) -> str:
    spent, cold, at_once, gaps = list[float](), list[float](), 0, list[tuple[float, float]]()
    for draw in range(draws):
        given = change(case.problem, last.solution, np.random.default_rng([5, draw]))
        (warm, is_enough), cpu = _timed(partial(_again, given, last, case.gap))
        reference, whole = _timed(partial(_cold, given, case.gap))
        spent.append(cpu)
        cold.append(whole)
        at_once += is_enough
        gaps.append((warm.gap or 0.0, reference.gap or 0.0))
    worst = [max(one) for one in zip(*gaps, strict=True)]
    name = change.__name__.replace("_", " ")
    return (
        f"  {name:<24}{sum(spent) / draws:>8.3f}{sum(spent) / sum(cold):>10.1%}"
        f"{at_once:>6} of {draws}{worst[0]:>10.3%}{worst[1]:>9.3%}"
    )


def _resident() -> float:
    """Return the MiB of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def _remember(times: int) -> None:
    """Solve 20 x 50 again and again, each time from the solution before."""
    random, given = np.random.default_rng(1), problem(instance(20, 50, "dist"))
    known: SolvedProblem | None = None
    for turn in range(times + 1):
        found = await solve(
            given, solver="highs", time_limit_seconds=_SECONDS, gap=0.05, previous=known
        )
        known = kept_for_next(given, found) or known
        if turn % max(1, times // 10) == 0:
            print(f"{turn:>8} re-solves {_resident():>8.1f} MiB, gap {found.gap:.2%}", flush=True)
        given = one_drawn_anew(given, found, random)


def main() -> None:
    """Print a table of each case, or the memory of many re-solves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--change", default="", help="changes whose names contain this")
    parser.add_argument("--memory", type=int, default=0, help="re-solves of a small problem")
    asked = parser.parse_args()
    if asked.memory:
        asyncio.run(_remember(asked.memory))
        return
    for case in cases():
        if asked.only in case.name:
            first, cpu = _timed(partial(_cold, case.problem, case.gap))
            last = kept_for_next(case.problem, first)
            print(f"{case.name}: {cpu:.2f} CPU s from nothing, gap {first.gap:.3%}", flush=True)
            header = f"{'CPU s':>8}{'of cold':>10}{'at once':>11}{'worst gap':>10}{'cold':>9}"
            print(f"  {'change':<24}{header}")
            for change in CHANGES:
                if last is not None and asked.change in change.__name__:
                    print(_row(case, last, change, asked.draws), flush=True)


if __name__ == "__main__":
    main()
