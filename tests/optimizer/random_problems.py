"""Fleets drawn from a seed, small enough for brute force, in which every rule can be binding."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    FleetLimit,
    NodeLayout,
    Objective,
    Selector,
    Supply,
    TopologySpread,
    Workload,
)
from optimizer.domain.nodes import NodeGroup, PodGroup
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem

ZONES = ("a", "a", "b", "")
DEVICES = ("all", "3g", "2g")
FEWEST = 6


def random_problem(seed: int, *, most_variables: int = 15) -> Problem:
    """Draw a problem of at most so many variables."""
    return formulate(random_fleet(seed, most_variables=most_variables))


def random_fleet(seed: int, *, most_variables: int = 15) -> Fleet:
    """Draw fleets until the problem of one has several variables, and not too many."""
    rng = random.Random(seed)  # noqa: S311 - to repeat, not to guard
    while True:
        fleet = draw_fleet(rng, clusters=rng.randint(1, 3), workloads=rng.randint(1, 5))
        if FEWEST <= len(formulate(fleet).variables) <= most_variables:
            return fleet


def random_fleet_with_nodes(seed: int) -> Fleet:
    """Draw a fleet whose clusters have nodes, which hold what runs now, if any does."""
    rng = random.Random(seed)  # noqa: S311 - to repeat
    fleet = random_fleet(seed, most_variables=12)
    pods = {item.name: tuple(_pods(rng, item)) for item in fleet.workloads}
    workloads = tuple(replace(item, pods=pods[item.name]) for item in fleet.workloads)
    clusters = tuple(_with_nodes(rng, item, workloads) for item in fleet.clusters)
    return replace(fleet, clusters=clusters, workloads=workloads)


def _pods(rng: random.Random, workload: Workload) -> Iterator[PodGroup]:
    if rng.random() < 0.9:
        resource = rng.choice(("nvidia.com/gpu", "nvidia.com/mig-3g"))
        requests = {resource: float(workload.amount), "cpu": rng.choice((0.5, 1.0, 2.0))}
        yield PodGroup(1, requests)
    if rng.random() < 0.3:
        yield PodGroup(rng.randint(1, 2), {"cpu": 1.0})


def _with_nodes(rng: random.Random, cluster: Cluster, workloads: Sequence[Workload]) -> Cluster:
    if rng.random() < 0.1:
        return cluster
    names = [item.name for item in workloads if cluster.name in item.current]
    groups = tuple(
        NodeGroup(
            count=1 if names and at == 0 else rng.randint(1, 2),
            allocatable={
                "cpu": float(rng.choice((2, 4, 6))),
                "nvidia.com/gpu": float(rng.randint(0, 4)),
                "nvidia.com/mig-3g": float(rng.randint(0, 4)),
                "pods": float(rng.choice((2, 9))),
            },
            taken={"cpu": rng.choice((0.0, 0.5)), "pods": 1.0},
            held=tuple(
                (name, {"cpu": 1.0, "pods": 1.0})
                for name in names
                if at == 0 and rng.random() < 0.8
            ),
            names=(f"{cluster.name}-{at}",) if rng.random() < 0.7 else (),
        )
        for at in range(rng.randint(1, 2))
    )
    groups = tuple(item if len(item.names) != 1 else replace(item, count=1) for item in groups)
    layouts = tuple(
        NodeLayout(item.names[0], (None, (("3g", rng.randint(1, 2)),)))
        for item in groups
        if item.names
    )
    candidates = tuple(
        replace(item, declared_layouts=layouts if rng.random() < 0.4 else ())
        for item in cluster.candidates
    )
    packing = rng.choice(("AnyOrder", "BestFit"))
    return replace(cluster, nodes=groups, candidates=candidates, packing=packing)


def draw_fleet(rng: random.Random, *, clusters: int, workloads: int) -> Fleet:
    """Draw a fleet with every constraint that a workload, policy or request can have."""
    names = [f"c{index}" for index in range(clusters)]
    drawn = tuple(_cluster(rng, name) for name in names)
    return Fleet(
        namespace="default",
        clusters=drawn,
        workloads=tuple(_workload(rng, index, names) for index in range(workloads)),
        scores={"speed": _scores(rng, drawn, -20), "power": _scores(rng, drawn, 0)},
        objectives=_objectives(rng),
        limits=(*_limits(rng), *_limits_of_clusters(drawn)),
    )


def _cluster(rng: random.Random, name: str) -> Cluster:
    labels = {"zone": zone} if (zone := rng.choice(ZONES)) else {}
    candidates = [_candidate(rng, f"p{index}", "") for index in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        candidates += [_candidate(rng, f"q{index}", "second") for index in range(2)]
    base = [Supply("cpu", "", rng.randint(1, 6))] if rng.random() < 0.7 else []
    if rng.random() < 0.2:
        base.append(Supply("gpu", rng.choice(DEVICES), rng.randint(1, 2)))
    said = random.Random(repr(candidates))  # noqa: S311 - of its own, to repeat
    return Cluster(
        name,
        Selector(name),
        tuple(candidates),
        labels,
        tuple(base),
        drained="until noon" if said.random() < 0.05 else "",
        max_workloads=said.randint(0, 2) if said.random() < 0.1 else None,
    )


def _candidate(rng: random.Random, policy: str, pool: str) -> CandidatePolicy:
    devices = rng.sample(DEVICES, rng.choice((1, 1, 2)))
    supplies = [Supply("gpu", device, rng.randint(0, 4)) for device in devices]
    if rng.random() < 0.2:
        supplies.append(Supply("cpu", "", rng.randint(1, 3)))
    return CandidatePolicy(
        policy=policy,
        supplies=tuple(supplies),
        pool=pool,
        current=rng.random() < 0.2,
        cost=float(rng.choice((0, 0, 3))),
        uses=(("watts", float(rng.randint(1, 5))),) if rng.random() < 0.5 else (),
    )


def _workload(rng: random.Random, index: int, clusters: list[str]) -> Workload:
    app = f"app{rng.randint(0, 2)}"
    taints = random.Random(f"{index} {app} {clusters}")  # noqa: S311 - of its own, to repeat

    def sometimes(chance: float) -> bool:
        return rng.random() < chance

    return Workload(
        name=f"w{index}",
        app=app,
        kind="gpu",
        amount=rng.randint(0, 3),
        placement=f"w{index}-placement",
        labels={"app": app},
        requests=(("cpu", float(rng.randint(1, 3))),) if sometimes(0.3) else (),
        replicas=rng.choice((1, 1, 2, 3)),
        priority=rng.choice((0, 0, 5)),
        spread=tuple(_spreads(rng)),
        clusters=tuple(rng.sample(clusters, 1)) if sometimes(0.1) else (),
        excluded_clusters=tuple(rng.sample(clusters, 1)) if sometimes(0.1) else (),
        affinity="zone" if sometimes(0.1) else "",
        anti_affinity="zone=b" if sometimes(0.1) else "",
        workload_affinity=f"app=app{rng.randint(0, 2)}" if sometimes(0.2) else "",
        workload_anti_affinity=f"app=app{rng.randint(0, 2)}" if sometimes(0.2) else "",
        minimum_score=float(rng.randint(-10, 30)) if sometimes(0.2) else None,
        move_cost=float(rng.randint(1, 20)) if sometimes(0.5) else 0.0,
        current=tuple(rng.sample(clusters, 1)) if sometimes(0.5) else (),
        uses=(("watts", float(rng.randint(1, 4))),) if sometimes(0.4) else (),
        unselectable=tuple(name for name in clusters if taints.random() < 0.05),
        avoided=tuple(name for name in clusters if taints.random() < 0.1),
        pending=tuple(
            (name, taints.choice((0, 0.5))) for name in clusters if taints.random() < 0.1
        ),
        unseen=tuple(name for name in clusters if taints.random() < 0.05),
        devices=tuple(DEVICES[:1]) if taints.random() < 0.05 else (),
        apart_from=(f"w{taints.randint(0, 4)}",) if taints.random() < 0.1 else (),
        together_with=(f"w{taints.randint(0, 4)}",) if taints.random() < 0.1 else (),
    )


def _spreads(rng: random.Random) -> list[TopologySpread]:
    if rng.random() < 0.5:
        return []
    return [TopologySpread("zone", rng.choice((1, 1, 2)), rng.choice(("", "together")))]


def _scores(rng: random.Random, clusters: tuple[Cluster, ...], least: int) -> ScoreMatrix:
    drawn = {
        (cluster.name, f"app{app}", device): float(rng.randint(least, 60))
        for cluster in clusters
        for app in range(3)
        for device in DEVICES
        if rng.random() < 0.9
    }
    return ScoreMatrix.of(drawn)


def _objectives(rng: random.Random) -> tuple[Objective, ...]:
    if rng.random() < 0.6:
        return (Objective("speed"),)
    less = Objective("power", weight=0.5, minimum=0, maximum=50, invert=True)
    return (Objective("speed"), less)


def _limits_of_clusters(clusters: tuple[Cluster, ...]) -> list[FleetLimit]:
    return [
        FleetLimit(f"workloads on {item.name}", float(item.max_workloads), cluster=item.name)
        for item in clusters
        if item.max_workloads is not None
    ]


def _limits(rng: random.Random) -> list[FleetLimit]:
    possible = [
        FleetLimit("budget", float(rng.randint(20, 120)), score="power"),
        FleetLimit("site power", float(rng.randint(2, 12)), uses="watts", per="zone"),
        FleetLimit("watts in a", float(rng.randint(2, 8)), uses="watts", selector="zone=a"),
    ]
    return [limit for limit in possible if rng.random() < 0.3]
