"""Runs a fleet until it is stopped: agents in this process, everything else as in a demo.

A process for each agent would take gigabytes. What happens to the fleet is on a schedule: a cluster
is lost and comes back, an agent has stopped, people start and stop Pods by hand.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from dsf.agent.run import AgentSettings
from dsf.agent.run import run as run_agent
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.changes import Change, Create, Delete
from dsf.kube.clock import utc_now
from dsf.kube.port import Object, find_object
from dsf.runtime.logs import set_up
from dsf.scorer_kit.prometheus_replay import Repeated, replaying, serving_samples
from dsf.sim.controllers.registration import report_availability
from dsf.sim.demo.clusters import WORKLOAD_NAMESPACE, DemoCluster, apply_or_fail
from dsf.sim.demo.output import DemoOutput
from dsf.sim.demo.running_demo import RunningDemo, get, post, running_demo, until
from dsf.sim.demo.scorers import DemoSetup
from dsf.sim.fleet.fleet_load import OBJECTIVES, PREDICTION_OPTIONS, recording, scorers
from dsf.sim.fleet.generated_fleet import (
    FleetCluster,
    fleet_apps,
    fleet_clusters,
    kept,
    request,
    strangers_pod,
    workload,
)
from dsf.sim.fleet.score_curves import ScoreCurves

EVENT_SECONDS = 60.0
"""Seconds between two things that happen to the fleet."""

STRANGERS = 4
"""On one in so many clusters somebody runs a Pod by hand."""


async def run_fleet(size: int, output: DemoOutput, work_dir: Path, *, port: int) -> None:
    """Run a fleet of `size` clusters until cancelled. Raises DemoError if it does not start."""
    began = asyncio.get_running_loop().time()
    fleet = {one.name: one for one in fleet_clusters(size)}
    sources, curves = dict[str, str](), ScoreCurves(fleet.values())
    setup = _setup(fleet, sources, curves)
    async with (
        AsyncExitStack() as stack,
        running_demo(setup, output, work_dir, port) as demo,
        asyncio.TaskGroup() as tasks,
    ):
        output.step(f"{size} agents in this process, and workloads")
        log = work_dir / "agents.log"
        set_up(stream=stack.enter_context(log.open("a", encoding="utf-8")))
        output.note(f"agents (log: {log})")
        await _create_workloads(demo, fleet)
        tasks.create_task(curves.follow(demo.clusters.hub.kube))
        agents = {
            cluster.name: tasks.create_task(
                _agent(demo, cluster, sources[cluster.name], curves.registries[cluster.name])
            )
            for cluster in demo.clusters.managed
        }
        await until(demo, lambda: _scored(demo, size), "scores of all clusters")
        await _place(demo, request(fleet, OBJECTIVES))
        took = asyncio.get_running_loop().time() - began
        output.finish({"url": demo.optimizer_url, "clusters": size, "seconds": round(took, 1)})
        output.note(f"ready after {took:.0f} s: open {demo.optimizer_url}/ - Ctrl-C ends it")
        tasks.create_task(_check(demo))
        await _happen(demo, fleet, agents)


def _setup(
    fleet: Mapping[str, FleetCluster], sources: dict[str, str], curves: ScoreCurves
) -> DemoSetup:
    options = list[str]()

    @asynccontextmanager
    async def prometheus() -> AsyncIterator[Mapping[str, str]]:
        async with AsyncExitStack() as stack:
            for name, cluster in fleet.items():
                replay = replaying(Repeated(recording(cluster)))
                sources[name] = await stack.enter_async_context(replay)
            history = await stack.enter_async_context(serving_samples(curves.samples, curves.told))
            options.append(f"--prometheus-url={history}")
            yield sources

    return DemoSetup(
        title=f"A hub and {len(fleet)} managed clusters, in memory and over HTTP",
        cluster_labels={name: cluster.labels for name, cluster in fleet.items()},
        scorers={"sample": (), "prediction.combination": PREDICTION_OPTIONS},
        registered=lambda urls: scorers(urls["sample"], urls["prediction.combination"]),
        prometheus=prometheus,
        policy_watchers=False,
        node=lambda name: _node(fleet[name]),
        agent_processes=False,
        optimizer_options=options,
    )


def _node(cluster: FleetCluster) -> list[Change]:
    """Return what makes the node of a cluster, and the Pod that somebody runs there by hand."""
    busy = cluster.number % STRANGERS == 1
    pods = [Create(kinds.POD, strangers_pod(cluster))] if busy else []
    return [*cluster.node(), *pods]


async def _create_workloads(demo: RunningDemo, fleet: Mapping[str, FleetCluster]) -> None:
    sets = [
        Create(kinds.MANIFEST_WORK_REPLICA_SET, workload(name, app))
        for name, app in fleet_apps(len(fleet))
    ]
    await apply_or_fail(demo.clusters.hub.kube, sets)


async def _agent(
    demo: RunningDemo, cluster: DemoCluster, prometheus: str, registry: CollectorRegistry
) -> None:
    settings = AgentSettings(
        cluster.name, metrics_bind_address="127.0.0.1:0", prometheus_url=prometheus, inventory=True
    )
    hub = demo.clusters.hub.kube
    await run_agent(settings, hub=hub, managed=cluster.kube, registry=registry)


async def _scored(demo: RunningDemo, size: int) -> bool:
    hub = demo.clusters.hub.kube
    scores = (await hub.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
    inventories = (await hub.list(kinds.NODE_INVENTORY)).items
    scored = {one["metadata"]["namespace"] for one in scores if "scores" in one.get("status", {})}
    return len(scored) == size == len(inventories)


async def _place(demo: RunningDemo, asked: Mapping[str, Any]) -> None:
    """Place the workloads at once, and keep them placed from now on."""
    hub = demo.clusters.hub.kube
    sets = (await hub.list(kinds.MANIFEST_WORK_REPLICA_SET)).items
    named = {"targetWorkloads": [{"name": one["metadata"]["name"]} for one in sets]}
    plan = await post(demo, "/optimize", {"namespace": WORKLOAD_NAMESPACE, **asked, **named})
    await until(demo, lambda: _landed(demo), "the workloads to run")
    demo.output.note(f"{len(plan['placements'])} of {len(sets)} workloads run")
    await apply_or_fail(hub, [Create(kinds.PLACEMENT_OPTIMIZATION, kept(asked))])


async def _landed(demo: RunningDemo) -> bool:
    found = (await get(demo, f"/placements/status?namespace={WORKLOAD_NAMESPACE}"))["workloads"]
    return all(item["state"] == "Landed" and item["pods"] for item in found)


async def _check(demo: RunningDemo) -> None:
    while True:
        demo.processes.check()
        await asyncio.sleep(1)


async def _happen(
    demo: RunningDemo, fleet: Mapping[str, FleetCluster], agents: Mapping[str, asyncio.Task[None]]
) -> None:
    """Let an agent stop for good, and then clusters and Pods of others come and go."""
    clusters = demo.clusters.managed
    agents[clusters[len(clusters) // 2].name].cancel()
    for turn in count():
        await asyncio.sleep(EVENT_SECONDS)
        lost = clusters[(len(clusters) // 3 + 7 * turn) % len(clusters)].name
        await _report(demo, lost, available=False)
        await asyncio.sleep(EVENT_SECONDS)
        busy = clusters[5 * turn % len(clusters)]
        await _start_or_stop(busy, strangers_pod(fleet[busy.name]))
        await asyncio.sleep(EVENT_SECONDS)
        await _report(demo, lost, available=True)


async def _start_or_stop(cluster: DemoCluster, pod: Object) -> None:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    running = await find_object(cluster.kube, kinds.POD, name, namespace)
    stop = Delete(kinds.POD, name, namespace)
    await apply_or_fail(cluster.kube, [stop if running else Create(kinds.POD, pod)])


async def _report(demo: RunningDemo, name: str, *, available: bool) -> None:
    """Let a cluster be lost, or come back."""
    lost, hub = demo.simulation.lost, demo.clusters.hub.kube
    (lost.discard if available else lost.add)(name)
    cluster = await hub.get(kinds.MANAGED_CLUSTER, name)
    now = rfc3339(utc_now())
    await apply_or_fail(hub, report_availability(cluster, available=available, now=now))
