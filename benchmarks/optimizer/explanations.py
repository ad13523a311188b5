"""The CPU time of explanations, as ratios to one plain solve of the same fleet in the same run.

python -m benchmarks.optimizer.explanations [--seconds 30]

Every kind of explanation is requested, within the given seconds. `bounds`, `margins` and
`conflicts` say how many of all were computed; a bound is an upper bound of a margin. `ratio` is
the CPU of the explanation divided by that of the plain solve. A `crowded` fleet lacks two thirds
of its clusters.
"""

import argparse
from dataclasses import replace
from typing import NamedTuple

from benchmarks.optimizer.instances import DEVICES, Instance, Kind, instance
from benchmarks.optimizer.reference_model import cpu_seconds
from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    Objective,
    Selector,
    Supply,
    Workload,
)
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.explain.case import Case
from optimizer.explain.explanation_process import ExplanationJob, explain_here
from optimizer.model.formulate import formulate
from optimizer.solve.strategy import solve_problem

CASES: tuple[tuple[int, int, Kind, bool], ...] = (
    (10, 30, "dist", False),
    (10, 30, "dist", True),
    (40, 120, "prof", False),
    (40, 120, "prof", True),
    (40, 120, "dist", True),
    (100, 200, "prof", False),
    (100, 200, "prof", True),
    (100, 200, "dist", True),
    (40, 120, "dist", False),
)
"""Clusters, workloads, kind of instance, and whether there is too little for all."""


class Cost(NamedTuple):
    """CPU seconds of the plain solve and of its explanation, and how much of it was computed."""

    solve: float
    explain: float
    bounds: tuple[int, int]
    margins: tuple[int, int]
    conflicts: tuple[int, int]


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
    named = {"score": ScoreMatrix.of(scores)}
    return Fleet("default", clusters, workloads, named, (Objective("score"),))


def _candidate(device: str, amount: int) -> CandidatePolicy:
    return CandidatePolicy(device, (Supply("gpu", device, float(amount)),))


def cost(given: Fleet, seconds: float) -> Cost:
    """Solve a fleet to the optimum, then explain everything."""
    problem = formulate(given)
    begun = cpu_seconds()
    solution = solve_problem(problem, solver="highs", time_limit_seconds=300.0)
    solved = cpu_seconds()
    found, _ = explain_here(ExplanationJob(Case(given, problem, solution), "highs", seconds))
    done = cpu_seconds()
    bounds = sum(item.at_most is not None for item in found.places)
    margins = sum(item.margin is not None for item in found.places)
    short = len(given.workloads) - len({item.workload for item in found.places})
    conflicts = sum("not computed in time" not in item.message for item in found.unplaced)
    return Cost(
        solved - begun,
        done - solved,
        (bounds, len(found.places)),
        (margins, len(found.places)),
        (conflicts, short),
    )


def main() -> None:
    """Print a line for each size and kind of instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="allowed for each explanation")
    seconds = parser.parse_args().seconds
    print(
        f"{'case':<24}{'bounds':>12}{'margins':>12}{'conflicts':>12}{'solve CPU s':>13}{'ratio':>8}"
    )
    for clusters, workloads, kind, few in CASES:
        given = (
            instance(3 * clusters, workloads, kind) if few else instance(clusters, workloads, kind)
        )
        found = cost(fleet(_third(given) if few else given), seconds)
        name = f"{clusters}x{workloads} {kind}{' crowded' if few else ''}"
        print(
            f"{name:<24}{_of(found.bounds):>12}{_of(found.margins):>12}{_of(found.conflicts):>12}"
            f"{found.solve:>13.2f}{found.explain / found.solve:>8.1f}",
            flush=True,
        )


def _third(given: Instance) -> Instance:
    """Return an instance with a third of the clusters."""
    left = len(given.gpus) // 3
    return replace(given, gpus=given.gpus[:left], scores=given.scores[:, :left])


def _of(part: tuple[int, int]) -> str:
    return f"{part[0]} of {part[1]}"


if __name__ == "__main__":
    main()
