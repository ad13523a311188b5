"""What explanations cost, as ratios to one plain solve of the same fleet measured in the same run.

python -m benchmarks.explanations [--seconds 30]

Everything is asked for, and at most so many seconds are given. `margins` and `conflicts`: how many
were computed of how many there are. `ratio`: their CPU to that of the plain solve; `each`: that
for each margin and conflict computed.
"""

import argparse
from typing import NamedTuple

from benchmarks.instances import DEVICES, Instance, Kind, instance
from benchmarks.yardstick import cpu_seconds
from optimizer.explanation.compose import Case
from optimizer.explanation.run import Task, explained
from optimizer.fleet import Candidate, Cluster, Fleet, Objective, Selector, Supply, Workload
from optimizer.formulate import formulate
from optimizer.milp import solve_here

CASES: tuple[tuple[int, int, Kind], ...] = (
    (10, 30, "dist"),
    (10, 30, "prof"),
    (40, 120, "dist"),
    (40, 120, "prof"),
)


class Cost(NamedTuple):
    """CPU seconds of the plain solve and of its explanation, and what that computed of what."""

    solve: float
    explain: float
    margins: tuple[int, int]
    conflicts: tuple[int, int]
    missing: tuple[str, ...]


def fleet(given: Instance) -> Fleet:
    """Return an instance as a fleet."""
    clusters = tuple(
        Cluster(f"c{number}", Selector(f"c{number}"), tuple(map(_candidate, DEVICES, supplies)))
        for number, supplies in enumerate(given.supplies.tolist())
    )
    workloads = tuple(
        Workload(f"w{number}", f"w{number}", "gpu", float(size), "p")
        for number, size in enumerate(given.sizes.tolist())
    )
    scores = {
        (clusters[c].name, workloads[w].name, DEVICES[d]): value
        for w, of_workload in enumerate(given.scores.tolist())
        for c, of_cluster in enumerate(of_workload)
        for d, value in enumerate(of_cluster)
    }
    return Fleet("default", clusters, workloads, {"score": scores}, (Objective("score"),))


def _candidate(device: str, amount: int) -> Candidate:
    return Candidate(device, (Supply("gpu", device, float(amount)),))


def cost(given: Fleet, seconds: float) -> Cost:
    """Solve a fleet to the optimum, then explain everything."""
    problem = formulate(given)
    begun = cpu_seconds()
    solution = solve_here(problem, solver="highs", time_limit_seconds=300.0)
    solved = cpu_seconds()
    found = explained(Task(Case(given, problem, solution), "highs", seconds))
    done = cpu_seconds()
    margins = sum(item.margin is not None for item in found.places)
    short = len(given.workloads) - len({item.workload for item in found.places})
    conflicts = sum(item.message != "not computed in time" for item in found.unplaced)
    return Cost(
        solved - begun,
        done - solved,
        (margins, len(found.places)),
        (conflicts, short),
        found.not_computed,
    )


def main() -> None:
    """Print a line for each size and kind of instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="allowed for each explanation")
    seconds = parser.parse_args().seconds
    print(f"{'case':<16}{'margins':>11}{'conflicts':>11}{'solve CPU s':>13}{'ratio':>9}{'each':>9}")
    for clusters, workloads, kind in CASES:
        given = instance(clusters, workloads, kind)
        found = cost(fleet(given), seconds)
        ratio, count = found.explain / found.solve, found.margins[0] + found.conflicts[0]
        print(
            f"{given.name:<16}{_of(found.margins):>11}{_of(found.conflicts):>11}{found.solve:>13.2f}"
            f"{ratio:>9.1f}{ratio / max(count, 1):>9.3f}",
            flush=True,
        )


def _of(part: tuple[int, int]) -> str:
    return f"{part[0]} of {part[1]}"


if __name__ == "__main__":
    main()
