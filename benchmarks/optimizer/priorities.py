"""The value of lower priorities, and their proven gap.

python -m benchmarks.optimizer.priorities [--quick]

A seed gives each workload one of two or three priorities. The bound of a tier is valid for every
decision that is as good for the tiers before it.
"""

import argparse
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.optimizer.instances import Kind, instance, problem
from optimizer.domain.solution import Tier
from optimizer.model.problem import Problem
from optimizer.solve.strategy import solve_problem


class Case(NamedTuple):
    """Size, kind, how many priorities, and the CPU seconds allowed."""

    clusters: int
    workloads: int
    kind: Kind
    priorities: int
    seconds: float


CASES = (
    Case(100, 200, "dist", 2, 10.0),
    Case(100, 200, "dist", 3, 10.0),
    Case(100, 200, "prof", 2, 10.0),
    Case(100, 200, "prof", 3, 10.0),
    Case(200, 500, "dist", 2, 20.0),
    Case(200, 500, "dist", 3, 20.0),
    Case(200, 500, "prof", 2, 20.0),
    Case(200, 500, "prof", 3, 20.0),
)


def tiered(given: Problem, priorities: int, seed: int = 1) -> Problem:
    """Return the same problem whose tasks have priorities drawn from a seed."""
    drawn = np.random.default_rng(seed).integers(0, priorities, len(given.workloads)).tolist()
    tasks = zip(given.workloads, drawn, strict=True)
    return replace(given, workloads=tuple(replace(task, priority=own) for task, own in tasks))


def solved(case: Case) -> tuple[tuple[Tier, ...], float]:
    """Return the tiers of a solution and its CPU seconds."""
    given = tiered(problem(instance(case.clusters, case.workloads, case.kind)), case.priorities)
    before = time.process_time()
    solution = solve_problem(
        given, solver="highs", time_limit_seconds=case.seconds, clock=time.process_time
    )
    return solution.tiers, time.process_time() - before


def main() -> None:
    """Print each case, tier by tier."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smaller fleet alone")
    quick = parser.parse_args().quick
    for case in CASES:
        if quick and case.clusters > CASES[0].clusters:
            continue
        tiers, cpu = solved(case)
        name = f"{case.clusters} x {case.workloads} {case.kind} {case.priorities} priorities"
        each = ", then ".join(map(_served, tiers))
        print(f"{name:<34}{cpu:>7.1f} CPU s  {each}", flush=True)


def _served(tier: Tier) -> str:
    gap = (tier.bound - tier.value) / tier.value if tier.value else float("inf")
    return f"{tier.value:.0f} of {tier.bound:.0f} ({gap:.2%})"


if __name__ == "__main__":
    main()
