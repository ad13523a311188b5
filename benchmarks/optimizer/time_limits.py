"""Whether time limits are kept: seconds allowed and used, and the solution found in them.

python -m benchmarks.optimizer.time_limits [--quick]

`service`: in a solver process, including its start. `here`: in the calling process.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.optimizer.instances import Kind, instance, problem
from optimizer.domain.solution import Solution
from optimizer.model.problem import Problem
from optimizer.solve.solver_process import solve
from optimizer.solve.strategy import solve_problem

_KINDS: tuple[Kind, ...] = ("dist", "prof")
_SIZES = ((20, 50), (100, 200), (200, 500))
_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
_LARGE = (1_000, 5_000)
_SECONDS_LARGE = (1.0, 2.0, 5.0, 10.0)
_ALLOWED = 1.1


class Kept(NamedTuple):
    """A solve: its time limit and the time it took, in seconds."""

    allowed: float
    taken: float
    solution: Solution


def in_service(given: Problem, seconds: float) -> Kept:
    """Solve in a solver process, as the service does."""
    return asyncio.run(_in_service(given, seconds))


async def _in_service(given: Problem, seconds: float) -> Kept:
    started = time.perf_counter()
    solution = await solve(given, solver="highs", time_limit_seconds=seconds)
    return Kept(seconds, time.perf_counter() - started, solution)


def here(given: Problem, seconds: float) -> Kept:
    """Solve in this process."""
    started = time.perf_counter()
    solution = solve_problem(given, solver="highs", time_limit_seconds=seconds)
    return Kept(seconds, time.perf_counter() - started, solution)


def _every(quick: bool) -> Iterator[tuple[str, Kept]]:
    cases: list[tuple[tuple[int, int], tuple[float, ...]]] = [(size, _SECONDS) for size in _SIZES]
    cases += [] if quick else [(_LARGE, _SECONDS_LARGE)]
    for (clusters, workloads), limits in cases:
        for kind in _KINDS:
            given = problem(instance(clusters, workloads, kind))
            for name, solved in (("service", in_service), ("here", here)):
                for seconds in limits:
                    yield f"{clusters} x {workloads} {kind} {name}", solved(given, seconds)


def main() -> None:
    """Print every case, and how many kept their limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the largest")
    quick = parser.parse_args().quick
    warm = problem(instance(2, 2, "dist"))  # a running service has solved something before
    in_service(warm, 60.0)
    here(warm, 60.0)
    print(f"{'case':<28}{'allowed':>9}{'taken':>9}{'over':>9}{'value':>10}{'bound':>10}")
    every = []
    for name, found in _every(quick):
        every.append(found)
        over, solution = found.taken / found.allowed - 1.0, found.solution
        print(
            f"{name:<28}{found.allowed:>9.2f}{found.taken:>9.3f}{over:>+9.1%}"
            f"{solution.objective_value:>10.0f}{solution.bound or 0.0:>10.0f}  {solution.status}",
            flush=True,
        )
    inside = sum(found.taken <= _ALLOWED * found.allowed for found in every)
    print(f"limit kept within 10%: {inside} of {len(every)}")


if __name__ == "__main__":
    main()
