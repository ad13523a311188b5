"""The optimizer's speed, as ratios to the straightforward model in the same run.

python -m benchmarks.optimizer.speed [--quick]

CPU seconds are those of a case and its child processes, without imports. 20 x 50 is measured on
several seeds, each against the reference model of the same instance; that is stopped after 150 s,
so the true ratio is even better. For larger cases, `ratio` is the CPU of the case divided by that
of the reference model at 20 x 50 (mean of both kinds). `gap` is the proven gap. `in PuLP` is the
share of a second, profiled solve in which PuLP writes models.
"""

import argparse
import cProfile
import multiprocessing
import pstats
import resource
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.optimizer import reference_model
from benchmarks.optimizer.instances import Kind, instance, problem
from benchmarks.optimizer.reference_model import cpu_seconds

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_YARDSTICK_LIMIT = 150.0
_SEEDS = (1, 2, 3, 4, 5, 6)
_AIMS = (
    50.0,
    5.0,
)  # target speed-ups over the reference model: for a gap of 0.25%, for the optimum
_HIGHS_RUN = "<built-in method highspy._core.run>"


class Case(NamedTuple):
    """One solve: size, kind, requested gap, and time limit in seconds."""

    clusters: int
    workloads: int
    kind: Kind
    gap: float
    seconds: float = 60.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """What a case cost and found; `building` is the CPU of writing models in PuLP."""

    cpu: float
    building: float
    mib: int
    value: float
    bound: float
    status: str
    wall: float


LADDER: tuple[Case, ...] = (
    Case(20, 50, "dist", 0.0),
    Case(20, 50, "prof", 0.0),
    Case(100, 200, "dist", 0.0025),
    Case(100, 200, "prof", 0.0025),
    Case(200, 500, "dist", 0.0025),
    Case(200, 500, "prof", 0.0025),
    Case(1_000, 5_000, "prof", 0.01),
)
LARGEST: tuple[Case, ...] = (
    Case(500, 1_000, "dist", 0.01, 120.0),
    Case(1_000, 5_000, "dist", 0.01, 300.0),
    Case(1_000, 5_000, "rand", 0.01, 300.0),
)
ALLOWED = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds allowed to 200 x 500, to see that more time never makes the answer worse."""


def measured(case: Case, *, profiled: bool = False) -> Measured:
    """Solve a case in a new process, so that its memory and CPU are its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_solve, args=(case, theirs, profiled))
    process.start()
    theirs.close()
    found: Measured = ours.recv()
    process.join()
    return found


def _solve(case: Case, answers: "Connection[Measured, None]", profiled: bool) -> None:
    import numpy.ma  # noqa: F401, PLC0415 - numpy imports it where unique() is called first

    from optimizer.solve.strategy import solve_problem  # noqa: PLC0415 - its CPU is the child's

    given = problem(instance(case.clusters, case.workloads, case.kind, case.seed))
    profile = cProfile.Profile(time.process_time)
    before = cpu_seconds()
    if profiled:
        profile.enable()
    solution = solve_problem(given, solver="highs", time_limit_seconds=case.seconds, gap=case.gap)
    profile.disable()
    cpu = cpu_seconds() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    answers.send(
        Measured(
            cpu,
            _building(profile) if profiled else 0.0,
            peak,
            solution.objective_value,
            solution.bound or 0.0,
            solution.status,
            solution.seconds,
        )
    )


def _building(profile: cProfile.Profile) -> float:
    """Return the seconds spent on writing models: in the model's function but not in HiGHS."""
    profile.create_stats()
    entries = pstats.Stats(profile).get_stats_profile().func_profiles
    names = ("maximise", "<method 'run' of 'highspy._core._Highs' objects>", _HIGHS_RUN)
    spent = [entries[name].cumtime if name in entries else 0.0 for name in names]
    return spent[0] - sum(spent[1:])


def _seeds() -> Iterator[float]:
    """Compare 20 x 50 with the straightforward model, seed by seed; yield its CPU for seed 1."""
    kinds: tuple[Kind, ...] = ("dist", "prof")
    ratios: list[tuple[float, float]] = []
    print(f"{'20 x 50, seed':<16}{'yardstick':>20}{'0.25% in':>22}{'optimum in':>28}")
    for kind in kinds:
        for seed in _SEEDS:
            own = reference_model.solve(instance(20, 50, kind, seed), _YARDSTICK_LIMIT)
            near = measured(Case(20, 50, kind, 0.0025, seed=seed))
            best = measured(Case(20, 50, kind, 0.0, seed=seed))
            ratios.append((own.cpu / near.cpu, own.cpu / best.cpu))
            state = "optimal" if own.optimal else "stopped"
            print(
                f"{kind} {seed:<11}{own.cpu:>9.1f} s {state:>9}"
                f"{near.cpu:>9.2f} s 1/{ratios[-1][0]:<4.0f} {_met(ratios[-1][0], _AIMS[0]):<6}"
                f"{best.cpu:>9.2f} s 1/{ratios[-1][1]:<4.0f} {_met(ratios[-1][1], _AIMS[1]):<6}"
                f" {best.status}",
                flush=True,
            )
            if seed == 1:
                yield own.cpu
    means = [statistics.geometric_mean(each) for each in zip(*ratios, strict=True)]
    print(f"geometric mean: 0.25% in 1/{means[0]:.0f}, optimum in 1/{means[1]:.0f}")


def _met(ratio: float, aim: float) -> str:
    return "met" if ratio >= aim else "missed"


def _share(case: Case) -> float:
    """Return the share of a profiled solve in which PuLP writes models."""
    found = measured(case, profiled=True)
    return found.building / found.cpu


def _row(name: str, found: Measured, unit: float, share: float | None = None) -> str:
    writing = "" if share is None else f"{share:.1%}"
    gap = (found.bound - found.value) / found.value if found.value else float("inf")
    return (
        f"{name:<28}{found.cpu:>9.2f}{found.cpu / unit:>9.4f}{writing:>9}"
        f"{found.mib:>7}{found.value:>10.0f}{found.bound:>10.0f}{gap:>9.3%}  {found.status}"
    )


def main() -> None:
    """Print the reference model, the ladder, and the objective by time limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the largest cases")
    quick = parser.parse_args().quick
    costs = list(_seeds())
    unit = sum(costs) / len(costs)
    print(
        f"{'case, gap asked for':<28}{'CPU s':>9}{'ratio':>9}{'in PuLP':>9}{'MiB':>7}"
        f"{'value':>10}{'bound':>10}{'gap':>9}"
    )
    for case in (*LADDER, *(() if quick else LARGEST)):
        name = f"{case.clusters} x {case.workloads} {case.kind} {case.gap:.2%}"
        share = _share(case) if case in LADDER else None
        print(_row(name, measured(case), unit, share), flush=True)
    for seconds in ALLOWED:
        found = measured(Case(200, 500, "dist", 0.0, seconds))
        print(_row(f"200 x 500 dist in {seconds:g} s", found, unit), f"{found.wall:.2f} s")


if __name__ == "__main__":
    main()
