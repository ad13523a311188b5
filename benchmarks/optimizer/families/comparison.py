"""The search against HiGHS and CP-SAT on every family, with the same limit of CPU seconds.

make benchmark-families ARGS="--seeds 1 2 --families level --sizes 40x100 --seconds 20"

Each solve has a process of its own, one after the other, and one worker. HiGHS and CP-SAT solve the
complete compact model, and the limit counts their solve alone; that of the search counts everything
but the instance. `best`: neither of the two has the larger value in the first tier that differs.
Above --most-variables variables the search is alone, because the compact model does not fit.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.optimizer.families.generators import FAMILIES, draw
from benchmarks.optimizer.families.yardsticks import (
    Outcome,
    TierOutcome,
    solve_by_cp_sat,
    solve_by_highs,
)
from optimizer.model.problem import Problem

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_CONTEXT = multiprocessing.get_context("spawn")
_SAME = 1e-6
"""Share of a value: values that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Case:
    """A drawn instance, and the CPU seconds and the gap that end its solve."""

    family: str
    clusters: int
    workloads: int
    seed: int
    seconds: float
    gap: float

    def problem(self) -> Problem:
        """Return the instance."""
        return draw(self.family, self.clusters, self.workloads, self.seed)


def solve_by_search(problem: Problem, cpu_limit: float, gap: float) -> Outcome:
    """Solve with the product's own search."""
    from optimizer.solve.strategy import solve_problem  # noqa: PLC0415 - it loads HiGHS

    started = time.process_time()
    solution = solve_problem(
        problem, solver="highs", time_limit_seconds=cpu_limit, gap=gap, clock=time.process_time
    )
    tiers = tuple(TierOutcome(tier.value, tier.bound) for tier in solution.tiers)
    return Outcome(tiers, time.process_time() - started)


YARDSTICKS: Mapping[str, Callable[[Problem, float], Outcome]] = {
    "HiGHS": solve_by_highs,
    "CP-SAT": solve_by_cp_sat,
}


def solved(solver: str, case: Case) -> Outcome:
    """Solve a case in a new process, because OR-tools and HiGHS can't be loaded together."""
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_solve, args=(solver, case, theirs))
    process.start()
    theirs.close()
    found: Outcome = ours.recv()
    process.join()
    return found


def _solve(solver: str, case: Case, answers: "Connection[Outcome, None]") -> None:
    given = case.problem()
    if solver in YARDSTICKS:
        answers.send(YARDSTICKS[solver](given, case.seconds))
    else:
        answers.send(solve_by_search(given, case.seconds, case.gap))


def is_no_worse(own: Outcome, others: Sequence[Outcome]) -> bool:
    """Tell whether no other outcome has the larger value in the first tier that differs."""
    for other in others:
        for mine, theirs in zip(own.tiers, other.tiers, strict=False):
            margin = _SAME * max(1.0, abs(mine.value))
            if theirs.value > mine.value + margin:
                return False
            if theirs.value < mine.value - margin:
                break
    return True


def _cases(given: argparse.Namespace) -> Iterator[Case]:
    for size in given.sizes:
        clusters, workloads = map(int, size.split("x"))
        for family in given.families:
            for seed in given.seeds:
                yield Case(family, clusters, workloads, seed, given.seconds, given.gap)


def _cell(outcome: Outcome) -> str:
    """Return the values and gaps of the tiers, and the CPU seconds."""
    values = ", ".join(f"{tier.value:.0f}" for tier in outcome.tiers)
    gaps = ", ".join(map(_gap, outcome.tiers))
    return f"{values} | {gaps} | {outcome.cpu:.0f}"


def _gap(tier: TierOutcome) -> str:
    if tier.bound - tier.value <= _SAME * max(1.0, abs(tier.value)):
        return "proven"
    return f"{(tier.bound - tier.value) / tier.value:.2%}" if tier.value else "no value"


def main() -> None:
    """Print the table, line by line, and how often the search is not worse."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--sizes", nargs="+", default=["40x100"], help="clusters x workloads")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds of each solve")
    parser.add_argument("--gap", type=float, default=0.0, help="gap that ends the search")
    parser.add_argument("--most-variables", type=int, default=200_000)
    given = parser.parse_args()
    print("| instance | search | gap | s | HiGHS | gap | s | CP-SAT | gap | s | best |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    every = []
    for case in _cases(given):
        name = f"{case.family} {case.clusters} x {case.workloads}, {case.seed}"
        own = solved("search", case)
        if case.problem().size > given.most_variables:
            print(f"| {name} | {_cell(own)} | | | | | | | |", flush=True)
            continue
        others = [solved(solver, case) for solver in YARDSTICKS]
        every.append(is_no_worse(own, others))
        cells = " | ".join(map(_cell, (own, *others)))
        print(f"| {name} | {cells} | {'yes' if every[-1] else 'no'} |", flush=True)
    print(f"\nnot worse than the better of HiGHS and CP-SAT: {sum(every)} of {len(every)}")


if __name__ == "__main__":
    main()
