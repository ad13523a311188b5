"""Repairs that give GPUs another layout, applied as an administrator applies them."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest

from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.candidates.further_layouts import further_layouts
from optimizer.domain.fleet import Fleet, gpu_name
from optimizer.domain.mig.geometry import GEOMETRIES
from optimizer.domain.mig.gpu_pools import Gpu, GpuPool, GpuPools, NodeGpus, ReconfigurationRules
from optimizer.domain.mig.layouts import Layout, layouts
from optimizer.explain.conflicts.feasibility import replica_counts
from optimizer.explain.conflicts.unplaced_conflicts import UnplacedReasons, short_of_replicas
from optimizer.model.formulate import formulate
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.explanation import UnplacedReason
from optimizer.wire.request import OptimizeRequest
from tests.optimizer.build import NOW, body, fleet
from tests.optimizer.explain.solvers import CBC, RESOLVE
from tests.optimizer.hubs import hub_of

A30 = next(item for item in GEOMETRIES if item.model == "A30-24GB")
DEVICES = [*(item.device for item in A30.profiles if not item.media), "all"]
QUARTERS = next(item for item in layouts(A30) if len(item) == 4)
RULES = ReconfigurationRules()
QUICK, EXHAUSTIVE = range(3), range(3, 120)


def pools(clusters: Mapping[str, Iterable[Gpu]]) -> GpuPools:
    """One node with these GPUs on each cluster; each GPU knows whether another one is in use."""
    found = {}
    for cluster, gpus in clusters.items():
        every = list(gpus)
        known = (
            replace(gpu, node_busy=any(i.busy or i.in_use for i in [*every[:at], *every[at + 1 :]]))
            for at, gpu in enumerate(every)
        )
        found[cluster] = (GpuPool(cluster, (NodeGpus("n", tuple(known)),)),)
    return found


def in_use(layout: Layout, count: int, mine: int = 0) -> Gpu:
    """A GPU with `count` instances in use: `mine` by our workloads, the rest by others."""
    return Gpu(A30, layout, layout[:count], layout[mine:count])


def explained(
    given: Fleet, gpus: GpuPools, name: str, rules: ReconfigurationRules = RULES
) -> UnplacedReason:
    problem = formulate(given)
    found = further_layouts(given, gpus, rules)
    return UnplacedReasons(given, problem, RESOLVE(problem), RESOLVE, layouts=found).of(name)


def changes(found: UnplacedReason) -> list[str]:
    assert found.remedy is not None
    assert found.remedy.verified
    return [item.message for item in found.remedy.changes]


def halves_on(*gpus: Gpu, rules: ReconfigurationRules = RULES) -> tuple[Fleet, GpuPools]:
    """A workload that asks for two halves of a GPU, and one that asks for a quarter."""
    found = pools({"c": gpus})
    given = fleet({"c": []}, {"w": 2, "q": 1}, {("c", "w", "2g.12gb"): 50, ("c", "q", "1g.6gb"): 9})
    return with_candidates(given, found, rules), found


def test_a_gpu_in_use_is_freed_for_another_layout() -> None:
    found = explained(*halves_on(in_use(QUARTERS, 1), in_use(QUARTERS, 1)), "w")
    assert found.limits[0].rule == "layouts"
    assert found.limits[0].message == "cluster c keeps the layout of GPUs in use: n/1"
    (change,) = changes(found)
    assert change == (
        "free GPU n/1 of cluster c, so that a policy can be enforced with GPU n/1 divided into"
        " 2 x 2g.12gb"
    )


def test_all_gpus_of_a_node_are_freed_where_mig_is_turned_on() -> None:
    whole = Gpu(A30, mig_disabled=True, in_use=True, foreign_use=True)
    (change,) = changes(explained(*halves_on(in_use(QUARTERS, 1), whole), "w"))
    assert change.startswith("free GPUs n/0, n/1 of cluster c, so that")


def test_where_too_few_candidates_were_generated_one_is_added() -> None:
    few = ReconfigurationRules(most=1)
    gpus = pools({"c": [Gpu(A30)], "d": [Gpu(A30)]})
    scores = {(c, "v", "all"): 60.0 for c in gpus} | {(c, "w", "2g.12gb"): 50.0 for c in gpus}
    given = with_candidates(fleet({"c": [], "d": []}, {"v": 1, "w": 2}, scores), gpus, few)
    found = explained(given, gpus, "w", few)
    assert "layouts" in {item.rule for item in found.limits}
    assert changes(found) == [
        "add a candidate policy to cluster c, with GPU n/0 divided into 2 x 2g.12gb"
    ]


async def test_the_service_offers_it_for_gpus_that_a_request_describes() -> None:
    """Two H100 in use, divided into seven, where app01 asks for two halves."""
    hub = await hub_of()
    held = [{"profile": "1g.12gb", "busy": at == 0} for at in range(7)]
    asked = body(clusters=["worker01"], workloads=["mwrs-app01"])
    del asked["clusters"][0]["availablePolicies"]
    asked["clusters"][0]["gpus"] = [{"model": "H100-96GB", "instances": held}]
    request = OptimizeRequest.model_validate({**asked, "explain": True})
    plan = await Optimizer(hub, now=lambda: NOW).plan(request)
    assert isinstance(plan, Plan)
    assert plan.explanation is not None
    (found,) = plan.explanation.unplaced
    assert changes(found)[0].startswith("free GPU 0 of cluster worker01, so that")


def test_without_a_better_layout_there_is_no_such_repair() -> None:
    """One GPU has no room for both workloads, however it is divided."""
    found = explained(*halves_on(in_use(QUARTERS, 1)), "w")
    assert not any("divided" in item for item in changes(found))


def draw(rng: random.Random) -> tuple[Fleet, GpuPools]:
    """One or two clusters with one or two GPUs, some in use, and up to four workloads."""
    described = {
        cluster: [draw_gpu(rng) for _ in range(rng.randint(1, 2))]
        for cluster in ("c", "d")[: rng.randint(1, 2)]
    }
    demands = {name: rng.randint(1, 2) for name in "vwxy"[: rng.randint(2, 4)]}
    scores = {
        (cluster, name, device): float(rng.randint(1, 90))
        for cluster in described
        for name in demands
        for device in DEVICES
        if rng.random() < 0.6
    }
    found = pools(described)
    return with_candidates(
        fleet(dict.fromkeys(described, ()), demands, scores), found, RULES
    ), found


def draw_gpu(rng: random.Random) -> Gpu:
    if rng.random() < 0.2:
        used = rng.random() < 0.8
        return Gpu(A30, mig_disabled=True, in_use=used, foreign_use=used)
    layout = rng.choice([item for item in layouts(A30) if item])
    count = rng.randint(0, len(layout))
    return in_use(layout, count, rng.randint(0, count))


def freed_in(messages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield cluster and GPUs of each change that frees GPUs."""
    for text in messages:
        found = re.match(r"free GPUs? (.*) of cluster (\w), so that", text)
        if found:
            yield found[2], found[1]


def once_free(gpus: GpuPools, cluster: str, freed: str) -> GpuPools:
    """The GPUs as an administrator describes them after freeing some of a cluster."""
    names = freed.split(", ")
    every = {name: found[0].nodes[0].gpus for name, found in gpus.items()}
    every[cluster] = tuple(
        replace(gpu, busy=(), foreign=(), in_use=False, foreign_use=False)
        if gpu_name("n", at) in names
        else gpu
        for at, gpu in enumerate(every[cluster])
    )
    return pools(every)


@pytest.mark.parametrize(
    ("seeds", "least"), [(QUICK, 1), pytest.param(EXHAUSTIVE, 60, marks=pytest.mark.long)]
)
def test_once_the_gpus_are_free_the_next_plan_places_the_workload(
    seeds: Iterable[int], least: int
) -> None:
    """The plan is made from the new description alone, and by another solver."""
    tried = 0
    for seed in seeds:
        given, gpus = draw(random.Random(seed))  # noqa: S311 - a test case
        for name in short_of_replicas(given, RESOLVE(formulate(given))):
            remedy = explained(given, gpus, name).remedy
            messages = [item.message for item in remedy.changes] if remedy else []
            freed = list(freed_in(messages))
            if len(freed) < len(messages) or not freed:
                continue
            tried += 1
            assert remedy is not None
            assert remedy.verified
            described = gpus
            for cluster, names in freed:
                described = once_free(described, cluster, names)
            bare = replace(
                given, clusters=tuple(replace(item, candidates=()) for item in given.clusters)
            )
            again = with_candidates(bare, described, RULES)
            decision = CBC(formulate(again)).decision
            assert name in replica_counts(decision), (seed, name, messages)
    assert tried >= least
