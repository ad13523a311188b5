"""CPU time of a look at a PlacementOptimization, by what has changed since the last look.

`python -m benchmarks.optimizer.looks [--clusters 100 1000] [--workloads 40] [--groups 20]` prints a
row for each fleet, on an embedded hub: milliseconds to read its request and its fleet anew, as a
first look does before it plans; of a look after which nothing changed; of one after a fifth of the
scores did, by too little for a plan; and of one after each NodeInventory, of so many groups of
nodes, was renewed. The shares are of the first.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np

from dsf.api.times import rfc3339
from dsf.kube.apply import apply
from dsf.kube.changes import Create
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANIFEST_WORK_REPLICA_SET,
    NODE_INVENTORY,
    PLACEMENT_OPTIMIZATION,
)
from dsf.sim.controllers.registration import default_sets
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import KeptRequest, kept_request
from optimizer.service.observe import observe_namespace
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from optimizer.twin.fleet_objects import NAME, hub_objects, kept_optimization, workload
from optimizer.twin.scenario import NAMESPACE, Scenario
from optimizer.wire.placement_optimization import read_spec
from optimizer.wire.placement_status import PlacementStatus

SCORE = "fit"
VALID = timedelta(seconds=180)
UNREAD = PlacementStatus(
    namespace=NAMESPACE, landed=False, workloads=(), policies=(), drift=(), unbound_policies=()
)


def fleet(clusters: int, workloads: int) -> Scenario:
    """Return a fleet with a score for each workload on each cluster."""
    return Scenario.model_validate(
        {
            "clusters": [{"name": "site", "count": clusters, "allocatable": "gpu/all=2"}],
            "workloads": [{"name": f"app{number:02}"} for number in range(workloads)],
            "scores": [{"name": SCORE, "signals": [{"type": "Constant", "least": 50}]}],
            "optimization": {"mode": "Plan", "preference": {"addonPlacementScore": SCORE}},
        }
    )


async def publish(
    hub: EmbeddedHub, clusters: Iterable[str], apps: Iterable[str], drawn: np.random.Generator
) -> None:
    """Write the scores of clusters: about 50, so that nothing is worth a move."""
    for cluster in clusters:
        entries = [{"name": f"{app};all", "value": int(drawn.integers(49, 52))} for app in apps]
        status = {"status": {"scores": entries}}
        await hub.patch(ADD_ON_PLACEMENT_SCORE, SCORE, status, cluster, subresource="status")


def inventoried(groups: int) -> list[dict[str, Any]]:
    """Return groups of nodes with GPUs, as NodeInventories list them."""
    return [
        {
            "count": 2,
            "names": [f"node-{group}-{number}" for number in range(2)],
            "ready": True,
            "labels": {"nvidia.com/gpu.product": "NVIDIA-L4", "topology.kubernetes.io/zone": "a"},
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"},
            "requested": {"cpu": f"{group}", "memory": "8Gi", "pods": "9", "nvidia.com/gpu": "1"},
        }
        for group in range(groups)
    ]


async def renew(hub: EmbeddedHub, clusters: Iterable[str]) -> None:
    """Write the NodeInventories of clusters with the time of now, as agents do."""
    times = {"observedTime": rfc3339(utc_now()), "validUntil": rfc3339(utc_now() + VALID)}
    for cluster in clusters:
        await hub.patch(NODE_INVENTORY, cluster, {"status": times}, cluster, subresource="status")


async def milliseconds(
    work: Callable[[], Awaitable[object]], before: Callable[[], Awaitable[None]], times: int
) -> float:
    """Return the median CPU time of some work, with something else done before each time."""
    used = list[float]()
    for _ in range(times):
        await before()
        began = time.process_time()
        await work()
        used.append(time.process_time() - began)
    return 1000 * float(np.median(used))


async def row(clusters: int, workloads: int, groups: int, times: int) -> str:
    """Return the row of a fleet."""
    scenario, drawn = fleet(clusters, workloads), np.random.default_rng(7)
    names, apps = sorted(scenario.cluster_names), [group.name for group in scenario.workloads]
    hub, optimization = EmbeddedHub(), kept_optimization(scenario)
    await apply(hub, default_sets([]))
    await apply(hub, hub_objects(scenario, now=rfc3339(utc_now())))
    workload_sets = [workload(tenure) for tenure in scenario.tenures()]
    await apply(hub, [Create(MANIFEST_WORK_REPLICA_SET, obj) for obj in workload_sets])
    for name in names:
        score = {"metadata": {"name": SCORE, "namespace": name}}
        await hub.create(ADD_ON_PLACEMENT_SCORE, score)
    await publish(hub, names, apps, drawn)
    for name in names if groups else ():
        metadata = {"name": name, "namespace": name}
        await hub.create(NODE_INVENTORY, {"metadata": metadata})
        nodes = {"status": {"nodes": inventoried(groups)}}
        await hub.patch(NODE_INVENTORY, name, nodes, name, subresource="status")
    await renew(hub, names if groups else ())
    await hub.create(PLACEMENT_OPTIMIZATION, optimization)
    optimizer = Optimizer(hub, now=utc_now)
    watching = asyncio.create_task(optimizer.hub.run())
    await asyncio.sleep(0)
    controller = OptimizationController(optimizer, read_only=True)

    async def look() -> object:
        return await controller.look(NAMESPACE, NAME)

    async def anew() -> object:
        obj = await hub.get(PLACEMENT_OPTIMIZATION, NAME, NAMESPACE)
        seen = await observe_namespace(optimizer.hub, NAMESPACE, utc_now())
        asked = kept_request(obj, [obj], FleetFacts(NAMESPACE, seen, UNREAD))
        if not isinstance(asked, KeptRequest):
            raise TypeError(asked)
        return read_spec(obj), await optimizer.read_fleet(asked.request)

    async def nothing() -> None:
        await asyncio.sleep(0.01)  # watches tell of what was written

    async def a_fifth() -> None:
        await publish(hub, drawn.choice(names, clusters // 5, replace=False).tolist(), apps, drawn)
        await nothing()

    async def renewed() -> None:
        await renew(hub, names if groups else ())
        await nothing()

    await nothing()
    await look()  # it plans
    first = await milliseconds(anew, nothing, times)
    same = await milliseconds(look, nothing, times)
    changed = await milliseconds(look, a_fifth, times)
    again = await milliseconds(look, renewed, times)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    return (
        f"{clusters:8} {workloads:9} {first:8.1f} ms {same:8.1f} ms {same / first:5.0%}"
        f" {changed:8.1f} ms {changed / first:5.0%} {again:8.1f} ms {again / first:5.0%}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.optimizer.looks", description=__doc__
    )
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--workloads", type=int, default=40)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--times", type=int, default=9)
    asked = parser.parse_args()
    shares = " ".join(f"{name:>17}" for name in ("nothing", "a fifth", "renewed"))
    print(f"{'clusters':>8} {'workloads':>9} {'anew':>11} {shares}")
    for clusters in asked.clusters:
        print(asyncio.run(row(clusters, asked.workloads, asked.groups, asked.times)), flush=True)


if __name__ == "__main__":
    main()
