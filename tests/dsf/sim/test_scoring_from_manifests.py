"""Scores for each app and device without a table: hub controller, simulated OCM and two agents."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.run import AgentSettings
from dsf.agent.run import run as run_agent
from dsf.api import names
from dsf.hub.run import HubController, HubOptions
from dsf.kube import kinds
from dsf.kube.errors import NotFound
from tests.dsf import manifest_scorer
from tests.dsf.scorer_kit.scorers import TestApi, served
from tests.dsf.sim.builders import SimulatedFleet, create, make, simulated_fleet
from tests.eventually import eventually

TEAM = "team"


def workload(app: str, priority: int = 0) -> Any:
    labels = {"app": app, "resource-request-kind": "gpu", "resource-request-amount": "2"}
    annotations = {f"{names.GROUP}/priority": str(priority)}
    template: dict[str, Any] = {"workload": {"manifests": []}}
    return make(
        kinds.MANIFEST_WORK_REPLICA_SET,
        f"mwrs-{app}",
        TEAM,
        metadata={"labels": labels, "annotations": annotations},
        spec={"placementRefs": [{"name": f"placement-{app}"}], "manifestWorkTemplate": template},
    )


def policy(device: str) -> Any:
    labels = {
        "resource-supply-kind": "gpu",
        "resource-supply-device": device,
        "resource-supply-amount": "2",
    }
    spec = {"disabled": False, "policy-templates": []}
    name = f"policy-{device.partition('.')[0]}"
    return make(kinds.POLICY, name, TEAM, metadata={"labels": labels}, spec=spec)


async def registered(fleet: SimulatedFleet, config_url: str) -> None:
    hub = fleet.hub
    for namespace in (names.HUB_NAMESPACE, TEAM):
        await create(hub, kinds.NAMESPACE, make(kinds.NAMESPACE, namespace))
    await create(hub, kinds.MANIFEST_WORK_REPLICA_SET, workload("app01"))
    await create(hub, kinds.POLICY, policy("3g.48gb"))
    await hub.patch(kinds.MANAGED_CLUSTER, "worker02", {"metadata": {"labels": {"price": "5"}}})
    config = make(
        kinds.DYNAMIC_SCORING_CONFIG, names.SCORING_CONFIG, names.HUB_NAMESPACE, spec={"masks": []}
    )
    await create(hub, kinds.DYNAMIC_SCORING_CONFIG, config)
    spec = {
        "description": "slices",
        "configURL": config_url,
        "scoreDimensionFormat": "${app};${device}",
    }
    scorer = make(kinds.DYNAMIC_SCORER, "slices", names.HUB_NAMESPACE, spec=spec)
    await create(hub, kinds.DYNAMIC_SCORER, scorer)


def programs(fleet: SimulatedFleet) -> list[Coroutine[Any, Any, None]]:
    """Return OCM, the hub controller and the agent of each managed cluster."""
    options = HubOptions(resync_seconds=0.2, probe_seconds=0.2, manifest_namespaces=(TEAM,))
    controller = HubController(fleet.hub, options, registry=CollectorRegistry())
    agents = [
        run_agent(
            AgentSettings(cluster=name, metrics_bind_address="127.0.0.1:0", limits=CallLimits()),
            hub=fleet.hub,
            managed=managed,
        )
        for name, managed in fleet.clusters.items()
    ]
    return [fleet.simulation.run(), controller.run(), *agents]


@asynccontextmanager
async def running(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
        assert not [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def fleet() -> AsyncIterator[SimulatedFleet]:
    fleet = await simulated_fleet()
    async with AsyncExitStack() as stack:
        api = TestApi(manifest_scorer.respond, manifest_scorer.config)
        url = await stack.enter_async_context(served({"slices": api}))
        await registered(fleet, f"{url}/slices/config")
        await stack.enter_async_context(running(*programs(fleet)))
        yield fleet


async def values(fleet: SimulatedFleet, cluster: str) -> dict[str, int]:
    try:
        found = await fleet.hub.get(kinds.ADD_ON_PLACEMENT_SCORE, "slices", cluster)
    except NotFound:
        return {}
    return {each["name"]: each["value"] for each in found.get("status", {}).get("scores", [])}


async def scored(fleet: SimulatedFleet, **wanted: dict[str, int]) -> None:
    async def equal() -> bool:
        return {name: await values(fleet, name) for name in wanted} == wanted

    try:
        await eventually(equal)
    except TimeoutError:
        assert {name: await values(fleet, name) for name in wanted} == wanted


async def test_scores_follow_the_workloads_and_the_policies(fleet: SimulatedFleet) -> None:
    await scored(fleet, worker01={"app01;3g.48gb": 30}, worker02={"app01;3g.48gb": 25})
    await create(fleet.hub, kinds.MANIFEST_WORK_REPLICA_SET, workload("app02", priority=3))
    await create(fleet.hub, kinds.POLICY, policy("all"))
    await scored(
        fleet,
        worker01={"app01;3g.48gb": 30, "app01;all": 70, "app02;3g.48gb": 27, "app02;all": 67},
        worker02={"app01;3g.48gb": 25, "app01;all": 65, "app02;3g.48gb": 22, "app02;all": 62},
    )
