"""Bounds over all layouts are valid for every fleet, and tight where many are omitted."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.candidates.fleet_candidates import rounded, with_candidates
from optimizer.candidates.layout_bounds import (
    DemandSubproblem,
    bounded_over_all_layouts,
    omitted_layout_issues,
    value_bounds,
    with_wider_bounds,
)
from optimizer.domain import score_matrix as scored
from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    FleetLimit,
    Objective,
    OmittedLayouts,
    Selector,
    Supply,
    Workload,
)
from optimizer.domain.mig.geometry import Geometry
from optimizer.domain.mig.gpu_pools import (
    Gpu,
    GpuPool,
    GpuPools,
    NodeGpus,
    ReconfigurationCosts,
    ReconfigurationRules,
    device_counts,
)
from optimizer.domain.mig.layouts import layouts
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Decision, PolicyEnforcement, Solution, Tier
from optimizer.model.formulate import formulate
from optimizer.model.parameters import ClusterResource, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.solve.strategy import solve_problem
from tests.optimizer.domain.mig.test_layouts import of

ALL = 1000
SIX = ("1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb")


def draw(rng: random.Random) -> tuple[Fleet, GpuPools, ReconfigurationCosts]:
    """Draw clusters of several GPUs, and workloads with constraints that affect a bound."""
    model = of(rng.choice(("A30", "H100-96GB")))
    names = [f"c{index}" for index in range(rng.randint(1, 3))]
    some = rng.sample([*(item.device for item in model.profiles), "all"], 4)
    pools = {
        name: (GpuPool(name, (NodeGpus("n", (Gpu(model),) * rng.randint(2, 3)),)),)
        for name in names
    }
    listed = CandidatePolicy(
        "listed", (Supply("gpu", some[0], rng.randint(1, 9)),), uses=(("w", 4.0),)
    )
    clusters = tuple(
        Cluster(
            name,
            Selector(name),
            (listed,) if rng.random() < 0.3 else (),
            base=(Supply("cpu", "", rng.randint(2, 9)),),
        )
        for name in names
    )
    workloads = tuple(
        Workload(
            f"w{index}",
            f"app{index % 3}",
            "gpu",
            rng.randint(1, 3),
            f"p{index}",
            requests=(("cpu", 1.0),) if rng.random() < 0.3 else (),
            replicas=rng.choice((1, 1, 2)),
            priority=rng.choice((0, 0, 0, 5)),
            current=(rng.choice(names),) if rng.random() < 0.3 else (),
            move_cost=rng.choice((0.0, 7.0)),
            uses=(("w", float(rng.randint(1, 3))),),
        )
        for index in range(rng.randint(4, 12))
    )
    scores = {
        (cluster, f"app{app}", device): float(rng.randint(-20, 99))
        for cluster in names
        for app in range(3)
        for device in some
        if rng.random() < 0.8
    }
    limits = (FleetLimit("watts", float(rng.randint(5, 30)), uses="w"),)
    fleet = Fleet(
        "default",
        tuple(clusters),
        workloads,
        {"score": ScoreMatrix.of(scores)},
        (Objective("score"),),
        limits if rng.random() < 0.5 else (),
    )
    return fleet, pools, ReconfigurationCosts(reconfigure=rng.choice((0.0, 3.0)))


def solved(fleet: Fleet) -> Solution:
    return solve_problem(formulate(fleet), solver="highs", time_limit_seconds=60)


def check(seed: int) -> bool:
    """Compare the bounds where one candidate is kept with the best over all of them."""
    fleet, pools, costs = draw(random.Random(seed))  # noqa: S311 - a seeded case, not a secret
    every = with_candidates(fleet, pools, ReconfigurationRules(costs=costs, most=ALL))
    few = with_candidates(fleet, pools, ReconfigurationRules(costs=costs, most=1))
    if every.omitted_layouts or not few.omitted_layouts:
        return False
    best, found = solved(every), solved(few)
    wide = bounded_over_all_layouts(few, found)
    assert best.status == "Optimal"
    bounds = {tier.priority: tier.bound for tier in wide.tiers}
    for tier in best.tiers:
        assert tier.value <= bounds[tier.priority] + 1e-6
    assert wide.bound is not None
    assert best.objective_value <= wide.bound + 1e-6
    alone = value_bounds(few, {})
    assert all(alone[tier.priority] >= tier.value - 1e-6 for tier in best.tiers)
    return True


def test_no_decision_over_all_layouts_is_worth_more_than_the_bound() -> None:
    assert sum(check(seed) for seed in range(6)) > 1


@pytest.mark.long
@pytest.mark.parametrize("start", range(100, 300, 20))
def test_bounds_hold_for_many_fleets(start: int) -> None:
    assert sum(check(seed) for seed in range(start, start + 20)) > 3


def test_the_bound_counts_what_is_asked_for_and_not_what_any_demand_could_lose() -> None:
    fleet = competing(clusters=1, gpus=8, workloads=40, most=64)
    found = solved(fleet)
    wide = bounded_over_all_layouts(fleet, found)
    assert wide.gap is not None
    assert wide.gap < 0.05
    (unplaced,) = fleet.omitted_layouts
    assert unplaced.bound > 0.2 * found.objective_value


def test_whole_numbers_of_gpus_are_near_to_their_shares_and_as_many_in_all() -> None:
    rng = np.random.default_rng(1)
    for gpus in (1, 5, 8):
        groups = [gpus * rng.dirichlet(np.ones(4)), np.array([0.0, float(gpus)])]
        found = list(rounded(groups, 6))
        assert len(set(found)) == len(found) <= 6
        for first, second in found:
            assert sum(first) == sum(second) == gpus
            assert all(abs(n - share) < 1 for n, share in zip(first, groups[0], strict=True))


def test_candidates_made_by_prices_supply_what_their_layouts_do() -> None:
    fleet = competing(clusters=2, gpus=4, workloads=20, most=16)
    kept = [len(cluster.candidates) for cluster in fleet.clusters]
    assert kept == [item.kept for item in fleet.omitted_layouts]
    assert max(kept) > 16
    for cluster in fleet.clusters:
        for item in cluster.candidates:
            found = Counter[str]()
            for node in item.layouts:
                for gpu in node.gpus:
                    found.update(dict(device_counts(gpu)))
            assert {supply.device: supply.amount for supply in item.supplies} == found


@pytest.mark.long
def test_clusters_that_compete_lose_little_by_choosing_among_candidates() -> None:
    fleet = competing(clusters=5, gpus=8, workloads=60, most=60)
    gap = bounded_over_all_layouts(fleet, solved(fleet)).gap
    assert gap is not None
    assert gap < 0.01


def competing(*, clusters: int, gpus: int, workloads: int, most: int) -> Fleet:
    """A fleet in which each cluster alone would serve the same workloads as the others."""
    fleet, pools = contested(clusters=clusters, gpus=gpus, workloads=workloads)
    return with_candidates(fleet, pools, ReconfigurationRules(most=most))


def contested(*, clusters: int, gpus: int, workloads: int) -> tuple[Fleet, GpuPools]:
    rng = random.Random(1)  # noqa: S311 - a seeded case, not a secret
    model = of("H100-96GB")
    names = [f"c{index}" for index in range(clusters)]
    pools = {name: (GpuPool(name, (NodeGpus("n", (Gpu(model),) * gpus),)),) for name in names}
    asked = tuple(
        Workload(f"w{index}", f"app{index % 20}", "gpu", rng.randint(1, 3), f"p{index}")
        for index in range(workloads)
    )
    scores = {
        (name, f"app{app}", device): float(rng.randint(1, 100))
        for name in names
        for app in range(20)
        for device in SIX
    }
    given = tuple(Cluster(name, Selector(name), ()) for name in names)
    named = {"score": ScoreMatrix.of(scores)}
    return Fleet("default", given, asked, named, (Objective("score"),)), pools


def test_leaving_out_what_is_worth_nothing_is_no_gap() -> None:
    pool = OmittedLayouts("c", "", 3, 10.0, (), ())
    solution = Solution("Optimal", Decision(), 50.0, 50.0, 0.0, "highs", (Tier(0, 50.0, 50.0),))
    exact = with_wider_bounds(solution, (pool,), {0: 50.0})
    assert (exact.status, exact.bound) == ("Optimal", 50.0)
    loose = with_wider_bounds(solution, (pool,), {0: 90.0})
    assert (loose.status, loose.bound) == ("Feasible", 60.0)
    nothing = Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, "highs")
    assert with_wider_bounds(nothing, (pool,), {0: 0.0}).status == "Infeasible"
    assert with_wider_bounds(nothing, (pool,), {0: 9.0}).status == "NotSolved"
    assert list(omitted_layout_issues((pool,), 0.0)) == []
    (issue,) = omitted_layout_issues((pool,), 4.0)
    assert "up to 4 more" in issue.message


def test_lower_priorities_are_bound_by_themselves_and_none_is_forgotten() -> None:
    """A lower priority can gain from workloads that a higher one leaves out."""
    pool = OmittedLayouts("c", "", 3, 10.0, (), ())
    tiers = (Tier(5, 50.0, 50.0), Tier(0, 20.0, 20.0))
    solution = Solution("Optimal", Decision(), 70.0, 70.0, 0.0, "highs", tiers)
    found = with_wider_bounds(solution, (pool,), {0: 45.0, 5: 70.0, 9: 8.0})
    assert found.tiers == (Tier(9, 0.0, 8.0), Tier(5, 50.0, 70.0), Tier(0, 20.0, 45.0))
    assert (found.bound, found.status) == (123.0, "Feasible")


def test_a_cost_that_is_saved_never_makes_up_for_what_a_higher_priority_loses() -> None:
    """Costs count in the last priority: a candidate that is dearer than its value still matters."""
    model = of("A30")
    pools = {"c": (GpuPool("c", (NodeGpus("n", (Gpu(model, mig_disabled=True),)),)),)}
    asked = (
        Workload("high", "high", "gpu", 2, "high", priority=5),
        Workload("low", "low", "gpu", 1, "low"),
    )
    scores = {("c", "high", "2g.12gb"): 10.0, ("c", "low", "all"): 10.0}
    named = {"score": ScoreMatrix.of(scores)}
    cluster = Cluster("c", Selector("c"), ())
    fleet = Fleet("default", (cluster,), asked, named, (Objective("score"),))
    few = with_candidates(
        fleet, pools, ReconfigurationRules(costs=ReconfigurationCosts(reconfigure=40.0), most=1)
    )
    found = bounded_over_all_layouts(few, solved(few))
    every = solved(
        with_candidates(
            fleet, pools, ReconfigurationRules(costs=ReconfigurationCosts(reconfigure=40.0))
        )
    )
    assert [(tier.priority, tier.value) for tier in every.tiers] == [(5, 10.0), (0, -40.0)]
    assert found.status == "Feasible"
    assert found.tiers[0] == Tier(5, 0.0, 10.0)


@pytest.mark.parametrize("host", [10.0, -5.0])
def test_what_a_workload_is_worth_counts_those_that_run_only_near_it(host: float) -> None:
    pools = {"c": (GpuPool("c", (NodeGpus("n", (Gpu(of("A30"), mig_disabled=True),)),)),)}
    asked = (
        Workload("big", "big", "gpu", 1, "big"),
        Workload("host", "host", "gpu", 1, "host", labels={"app": "host"}),
        Workload("guest", "guest", "cpu", 1, "guest", workload_affinity="app=host"),
    )
    scores = {("c", "big", "all"): 60.0, ("c", "host", "2g.12gb"): host, ("c", "guest", ""): 100.0}
    cluster = Cluster("c", Selector("c"), (), base=(Supply("cpu", "", 4),))
    named = {"score": ScoreMatrix.of(scores)}
    fleet = Fleet("default", (cluster,), asked, named, (Objective("score"),))
    few = with_candidates(fleet, pools, ReconfigurationRules(most=1))
    every = with_candidates(fleet, pools, ReconfigurationRules())
    assert solved(few).objective_value == solved(every).objective_value == host + 100
    assert [item.bound for item in few.omitted_layouts] == [60.0]


def test_the_policy_in_force_stays_a_candidate_though_few_are_kept() -> None:
    """Its layout is not known to be there, but as it is in force it costs nothing."""
    dear = ReconfigurationCosts(reconfigure=40.0)
    fleet, pools = contested(clusters=1, gpus=4, workloads=20)
    (cluster,) = with_candidates(fleet, pools, ReconfigurationRules(costs=dear, most=64)).clusters
    for old in cluster.candidates[::9]:
        given = replace(fleet.clusters[0], enforced=(replace(old, declared_layouts=old.layouts),))
        running = [PolicyEnforcement(cluster.name, old.policy)]
        after = with_candidates(
            replace(fleet, clusters=(given,)),
            pools,
            ReconfigurationRules(costs=dear, most=1),
            running,
        )
        (found,) = after.clusters
        assert [item.policy for item in found.candidates if item.current] == [old.policy]
        assert [item.kept for item in after.omitted_layouts] == [len(found.candidates)]


Supplied = Mapping[str, float]
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
    supplies: Mapping[str, Iterable[Supplied]], workloads: Iterable[Workload], scores: Scores
) -> float:
    """The best value over all choices of one supply per cluster and all placements."""
    wanted = list(workloads)
    return max(
        _placed(dict(zip(supplies, choice, strict=True)), wanted, scores)
        for choice in product(*supplies.values())
    )


def _placed(supply: Mapping[str, Supplied], workloads: list[Workload], scores: Scores) -> float:
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


def test_the_most_that_is_taken_of_a_resource_may_be_less_than_1() -> None:
    given = Problem(
        ("c",),
        tuple(ClusterResource(0, "gpu", device) for device in "abd"),
        (),
        tuple(ProblemWorkload(f"w{amount}", "w", "gpu", amount) for amount in (0.25, 0.5, 3.0)),
        np.array([[1.0, 1.0, np.nan], [1.0, np.nan, np.nan], [np.nan, 1.0, np.nan]]),
        np.ones(3),
    )
    found = DemandSubproblem(given, given.assignments.value)
    assert found.largest().tolist() == [0.5, 3.0, 1.0]
