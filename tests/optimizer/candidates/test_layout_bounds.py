"""Clusters that compete for workloads lose nothing by choosing among candidates alone."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.domain import score_matrix as scored
from optimizer.domain.fleet import Cluster, Fleet, Objective, Selector, Workload
from optimizer.mig.geometry import Geometry
from optimizer.mig.gpu_pools import Gpu, GpuPool, NodeGpus, ReconfigurationRules
from optimizer.mig.layouts import layouts
from tests.optimizer.mig.test_layouts import of

Supply = Mapping[str, float]
Scores = Mapping[tuple[str, str, str], float]


@cache
def every_supply(geometry: Geometry) -> tuple[dict[str, int], ...]:
    """What one idle GPU can supply, by every legal layout and without MIG."""
    devices = {item.name: item.device for item in geometry.profiles}
    distinct = {
        tuple(sorted(Counter(devices[item.profile] for item in layout).items()))
        for layout in layouts(geometry)
    }
    return ({"all": 1}, *map(dict, sorted(distinct)))


def best(
    supplies: Mapping[str, Iterable[Supply]], workloads: Iterable[Workload], scores: Scores
) -> float:
    """The best value over all choices of one supply per cluster and all placements."""
    wanted = list(workloads)
    return max(
        _placed(dict(zip(supplies, choice, strict=True)), wanted, scores)
        for choice in product(*supplies.values())
    )


def _placed(supply: Mapping[str, Supply], workloads: list[Workload], scores: Scores) -> float:
    if not workloads:
        return 0.0
    first, *rest = workloads
    top = _placed(supply, rest, scores)
    for cluster, held in supply.items():
        for device, amount in held.items():
            score = scores.get((cluster, first.app, device), 0.0)
            if score > 0 and amount >= first.amount:
                left = {**supply, cluster: {**held, device: amount - first.amount}}
                top = max(top, score + _placed(left, rest, scores))
    return top


def check_random_fleet(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a seeded case, not a secret
    geometry = of("A30")
    names = ["c1", "c2"]
    devices = rng.sample([*(item.device for item in geometry.profiles), "all"], 3)
    workloads = tuple(
        Workload(f"w{index}", f"app{index % 3}", "gpu", rng.randint(1, 3), f"p{index}")
        for index in range(4)
    )
    scores = {
        (cluster, f"app{app}", device): float(rng.randint(-20, 99))
        for cluster in names
        for app in range(3)
        for device in devices
        if rng.random() < 0.8
    }
    pools = {name: (GpuPool(name, (NodeGpus("n", (Gpu(geometry),)),)),) for name in names}
    clusters = tuple(Cluster(name, Selector(name), ()) for name in names)
    named = {"score": scored.ScoreMatrix.of(scores)}
    fleet = Fleet("default", clusters, workloads, named, (Objective("score"),))
    made = with_candidates(fleet, pools, ReconfigurationRules())
    assert not [issue for issue in made.issues if issue.reason == "FewerLayouts"]
    generated = {
        cluster.name: [{}, *({s.device: s.amount for s in c.supplies} for c in cluster.candidates)]
        for cluster in made.clusters
    }
    everything = {name: every_supply(geometry) for name in names}
    assert best(generated, workloads, scores) == best(everything, workloads, scores)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_a_fleet_is_worth_as_much_with_the_candidates_as_with_every_layout(seed: int) -> None:
    check_random_fleet(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100))
def test_many_fleets_are_worth_as_much_with_the_candidates(seed: int) -> None:
    check_random_fleet(seed)
