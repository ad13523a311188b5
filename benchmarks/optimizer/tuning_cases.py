"""The cases that numbers and heuristics of the optimizer are measured on, by family.

`small`: up to some hundred variables. `dist`, `prof`, `rand`: up to 50 x 150 of the instances of
that kind. `linked`: two replicas, a further kind, a fleet-wide limit and spread; `scarce`: the same
with a quarter of that kind, so that linking rows bind. `tiers`: two priorities. `running`: a fleet
that is solved again; the value is the number of assignments and policies that stay. `large`: 200 x
500. `layouts`: MIG candidates. `moves`: transitions; the value is 0 less the interruptions, and the
bound the number of stages. `explained`: explanations; the value is the number of facts that were
computed, and the bound the size of all repairs.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.optimizer.explanations import fleet
from benchmarks.optimizer.instances import Instance, Kind, instance, problem
from benchmarks.optimizer.priorities import tiered
from benchmarks.optimizer.stability import changed
from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.candidates.layout_bounds import bounded_over_all_layouts
from optimizer.domain.fleet import (
    Cluster,
    Fleet,
    FleetLimit,
    Objective,
    Selector,
    Supply,
    TopologySpread,
    Workload,
)
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.domain.mig.gpu_pools import (
    Gpu,
    GpuPool,
    NodeGpus,
    ReconfigurationRules,
    possible_devices,
)
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Decision
from optimizer.explain import case as explained_case
from optimizer.explain.explanation_process import ExplanationJob, explain_here
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.solve.move_reduction import unchanged_count
from optimizer.solve.strategy import solve_problem
from optimizer.transition.transition import plan_transition

_KINDS: tuple[Kind, ...] = ("dist", "prof")
_LIMIT = 20.0
"""CPU seconds: a case that needs more ends there."""


class Found(NamedTuple):
    """What a case reached: the higher the value, and the lower the bound, the better."""

    value: float
    bound: float


class Case(NamedTuple):
    """A case of a family; `run` does what is measured."""

    family: str
    name: str
    run: Callable[[], Found]


Start = dict[str, Decision]
"""Decisions that cases start from, by name: the same ones for every number that is measured."""


def starts() -> Start:
    """Return the decisions that `cases` needs, by the numbers as they are."""
    made = {
        f"running {kind}": _decided(problem(instance(60, 120, kind)), gap=0.01) for kind in _KINDS
    }
    for clusters, workloads, kind, seed in _MOVES:
        for day in (0, 1):
            given = _moving(instance(clusters, workloads, kind, seed), day)
            made[f"{clusters}x{workloads} {kind} {seed}, day {day}"] = _decided(given, gap=0.01)
    return made


def cases(start: Start) -> Iterator[Case]:
    """Yield all cases."""
    for kind, sizes in _SIZES.items():
        for size, gap in sizes:
            family = "small" if size[0] < _MEDIUM else kind
            yield _solve(family, problem(instance(*size, kind)), _named(size, kind), gap)
    for kind in _KINDS:
        yield _running(kind, start)
    for clusters, workloads, kind, seed in _MOVES:
        yield _moved(instance(clusters, workloads, kind, seed), seed, start)
    yield _solve("linked", formulate(linked_fleet(instance(10, 30, "dist"), PLENTY)), "dist", 0.01)
    yield _solve("scarce", formulate(linked_fleet(instance(10, 30, "dist"), _SCARCE)), "dist", 0.01)
    yield _solve("tiers", tiered(problem(instance(20, 40, "dist")), 2), "dist", 0.01)
    yield _solve("large", problem(instance(200, 500, "dist")), "dist", 0.01)
    yield Case("explained", "rand", lambda: _explained(_crowded("rand")))
    for models, gpus, most in _LAYOUTS:
        named = f"{gpus} GPUs of {'+'.join(models)}, {most} candidates"
        yield Case("layouts", named, partial(_layouts, models, gpus, most))


PLENTY, _SCARCE = (10.5, 11.5, 12.5, 13.5, 14.5), (3.0,)
"""CPUs of clusters in turn."""

_LAYOUTS = ((("H100-96GB",), 4, 16), (("H100-96GB",), 6, 16), (("A30", "A100-40GB"), 5, 100))
"""Models of GPUs, GPUs of each cluster, and candidates at most."""

_MOVES: tuple[tuple[int, int, Kind, int], ...] = (
    (2, 4, "rand", 4),
    (2, 5, "rand", 4),
    (4, 6, "rand", 1),
    *((6, 12, "dist", seed) for seed in (1, 3)),
    (12, 30, "dist", 1),
    (12, 30, "prof", 1),
    (40, 160, "dist", 1),
)
"""Clusters, workloads, kind and seed: few moves and their shortest paths, then many moves."""

_MEDIUM = 10
"""Clusters: cases with fewer are small."""

_SIZES: dict[Kind, tuple[tuple[tuple[int, int], float], ...]] = {
    "dist": (((8, 20), 0.0), ((20, 50), 0.0), ((50, 150), 0.005)),
    "prof": (((6, 14), 0.0), ((12, 28), 0.0), ((50, 150), 0.0025)),
    "rand": (((6, 14), 0.0), ((20, 50), 0.0), ((30, 80), 0.0025)),
}
"""Sizes and gaps that take at most about a second each, by kind."""


def _named(size: tuple[int, int], kind: Kind) -> str:
    return f"{size[0]}x{size[1]} {kind}"


def _decided(given: Problem, gap: float) -> Decision:
    return solve_problem(given, solver="highs", time_limit_seconds=_LIMIT, gap=gap).decision


def _solve(
    family: str, given: Problem, name: str, gap: float = 0.0, seconds: float = _LIMIT
) -> Case:
    def run() -> Found:
        solution = solve_problem(
            given, solver="highs", time_limit_seconds=seconds, gap=gap, clock=time.process_time
        )
        return Found(solution.objective_value, solution.bound or 0.0)

    return Case(family, name, run)


def _running(kind: Kind, start: Start) -> Case:
    """Solve a fleet again after a few scores changed."""
    given = problem(instance(60, 120, kind))
    again = changed(given, start[f"running {kind}"])

    def run() -> Found:
        return Found(unchanged_count(again, _decided(again, gap=0.01)), 0.0)

    return Case("running", kind, run)


def linked_fleet(given: Instance, cpu: Sequence[float]) -> Fleet:
    """Return an instance with replicas, a further kind, a limit and spread over zones."""
    plain = fleet(given)
    clusters = tuple(
        replace(item, labels={"zone": "abc"[at % 3]}, base=(Supply("cpu", "", cpu[at % len(cpu)]),))
        for at, item in enumerate(plain.clusters)
    )
    workloads = tuple(
        replace(
            item,
            replicas=2 if at % 4 == 0 else 1,
            requests=(("cpu", 1.0 + 0.3 * (at % 7)),),
            spread=(TopologySpread("zone", 1),) if at % 4 == 0 else (),
            uses=(("watts", item.amount),),
        )
        for at, item in enumerate(plain.workloads)
    )
    most = 0.6 * sum(item.amount * item.replicas for item in workloads)
    return replace(
        plain,
        clusters=clusters,
        workloads=workloads,
        limits=(FleetLimit("power", most, uses="watts"),),
    )


def _moving(given: Instance, day: int) -> Problem:
    """Return a fleet whose workloads swap their scores from day to day."""
    return problem(replace(given, scores=np.roll(given.scores, day, axis=0)))


def _moved(given: Instance, seed: int, start: Start) -> Case:
    """Plan the transition between the decisions of two days."""
    name = f"{given.name} {seed}"
    before, after = start[f"{name}, day 0"], start[f"{name}, day 1"]

    def run() -> Found:
        found = plan_transition(_moving(given, 1), before, after)
        return Found(-sum(len(stage.uncovered) for stage in found.stages), len(found.stages))

    return Case("moves", name, run)


def _layouts(names: Sequence[str], gpus: int, most: int) -> Found:
    """Generate candidates for three clusters of these GPUs, solve, and bound over all layouts."""
    rng = random.Random(gpus)  # noqa: S311 - a stated seed
    models = [item for item in map(geometry, names) if isinstance(item, Geometry)]
    nodes = (NodeGpus("n", tuple(Gpu(models[at % len(models)]) for at in range(gpus))),)
    clusters = [f"c{number}" for number in range(3)]
    pools = {name: [GpuPool(name, nodes)] for name in clusters}
    devices = possible_devices(pools[clusters[0]][0])
    workloads = tuple(
        Workload(f"w{at}", f"w{at}", "gpu", float(rng.randint(1, 3)), "p") for at in range(gpus * 8)
    )
    scores = {
        (cluster, item.name, device): float(rng.randint(1, 100))
        for cluster in clusters
        for item in workloads
        for device in devices
    }
    given = Fleet(
        "default",
        tuple(Cluster(name, Selector(name), ()) for name in clusters),
        workloads,
        {"score": ScoreMatrix.of(scores)},
        (Objective("score"),),
    )
    wide = with_candidates(given, pools, ReconfigurationRules(most=most))
    solution = solve_problem(
        formulate(wide),
        solver="highs",
        time_limit_seconds=_LIMIT,
        gap=0.01,
        clock=time.process_time,
    )
    found = bounded_over_all_layouts(wide, solution)
    return Found(found.objective_value, found.bound or 0.0)


def _crowded(kind: Kind) -> Fleet:
    """Return a fleet with a third of the clusters that its workloads need."""
    given = instance(18, 24, kind)
    return fleet(replace(given, gpus=given.gpus[:6], scores=given.scores[:, :6]))


def _explained(given: Fleet) -> Found:
    """Solve to the optimum and explain everything."""
    made = formulate(given)
    solution = solve_problem(
        made, solver="highs", time_limit_seconds=_LIMIT, clock=time.process_time
    )
    found, _ = explain_here(
        ExplanationJob(explained_case.Case(given, made, solution), "highs", 300.0)
    )
    repairs = [item.remedy for item in found.unplaced if item.remedy is not None]
    facts = [item.margin is not None for item in found.places]
    facts += [item.at_most is not None for item in found.places]
    facts += ["not computed in time" not in item.message for item in found.unplaced]
    facts += [item.verified for item in repairs]
    return Found(sum(facts), sum(change.size for item in repairs for change in item.changes))
