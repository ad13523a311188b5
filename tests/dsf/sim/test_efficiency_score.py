"""An efficiency score that joins GPU use and power: hub controller, OCM and two agents, real HTTP.

worker02 has no GPU: its source answers without a series.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dsf.api import names
from dsf.kube import kinds
from tests.dsf.agent.servers import Server, matrix, replying, serving
from tests.dsf.efficiency_scorer import SCORE, Json, config, respond, source
from tests.dsf.scorer_kit.scorers import TestApi, served
from tests.dsf.sim.builders import SimulatedFleet, create, make, simulated_fleet
from tests.dsf.sim.test_scoring_from_manifests import programs, running
from tests.eventually import eventually


class World:
    """A fleet, and the three servers of its sources."""

    def __init__(self, fleet: SimulatedFleet, power: Server) -> None:
        self.fleet = fleet
        self.power = power

    async def status(self, cluster: str) -> Json:
        obj = await self.fleet.hub.get(kinds.ADD_ON_PLACEMENT_SCORE, SCORE, cluster)
        return dict(obj.get("status") or {})

    async def entries(self, cluster: str) -> dict[str, int]:
        scores = (await self.status(cluster)).get("scores", [])
        return {each["name"]: each["value"] for each in scores}

    async def scorer(self) -> Json:
        obj = await self.fleet.hub.get(kinds.DYNAMIC_SCORER, SCORE, names.HUB_NAMESPACE)
        return dict(obj.get("status") or {})


@pytest.fixture
async def world() -> AsyncIterator[World]:
    def use(*nodes: str) -> Any:
        return replying(matrix(*(({"node": node}, [[1, "50"]]) for node in nodes)))

    fleet = await simulated_fleet()
    async with AsyncExitStack() as stack:
        gpu = await stack.enter_async_context(serving(use("n1", "n2")))
        none = await stack.enter_async_context(serving(use()))
        power = await stack.enter_async_context(serving(use("n1", "n2")))
        sources = [source("gpu", gpu.url), source("power", power.url)]
        api = TestApi(respond, lambda path: config(path, sources))
        url = await stack.enter_async_context(served({SCORE: api}))
        await register(fleet, f"{url}/{SCORE}/config", none.url)
        await stack.enter_async_context(running(*programs(fleet)))
        yield World(fleet, power)


async def register(fleet: SimulatedFleet, config_url: str, no_gpu: str) -> None:
    namespace = names.HUB_NAMESPACE
    await create(fleet.hub, kinds.NAMESPACE, make(kinds.NAMESPACE, namespace))
    overrides = [
        {"clusterName": "worker02", "scoreName": SCORE, "sourceName": name, "sourceHost": no_gpu}
        for name in ("gpu", "power")
    ]
    scoring_config = make(
        kinds.DYNAMIC_SCORING_CONFIG,
        names.SCORING_CONFIG,
        namespace,
        spec={"sourceOverrides": overrides},
    )
    await create(fleet.hub, kinds.DYNAMIC_SCORING_CONFIG, scoring_config)
    spec = {
        "description": "efficiency",
        "configURL": config_url,
        "scoreDimensionFormat": "${node}",
        "scoreDimensionFormats": ["${scoreName}"],
    }
    scorer = make(kinds.DYNAMIC_SCORER, SCORE, namespace, spec=spec)
    await create(fleet.hub, kinds.DYNAMIC_SCORER, scorer)


async def test_sources_are_joined_and_a_cluster_without_the_hardware_has_the_default(
    world: World,
) -> None:
    async def counted() -> bool:
        status = await world.scorer()
        return bool(status.get("clusters", {}).get("scoring") == 2)

    await eventually(counted)
    status = await world.scorer()
    assert await world.entries("worker01") == {SCORE: 40, "n1": 40, "n2": 40}
    assert await world.entries("worker02") == {SCORE: -100}
    assert status["clusters"]["defaulted"] == 1
    assert status["clusters"]["failing"] == 0
    assert "failingClusters" not in status
    conditions = {one["type"]: one for one in status["conditions"]}
    assert conditions["Scoring"]["message"] == (
        "fresh scores from 2 managed clusters, 1 of them the default score: they have nothing to"
        " score"
    )
    assert conditions["Ready"]["status"] == "True"

    world.power.answer = replying({"status": "error", "error": "no watts"}, status=500)

    async def named() -> bool:
        failing = (await world.scorer()).get("failingClusters") or [{}]
        return "source power: " in failing[0].get("message", "")

    await eventually(named)
    assert [one["name"] for one in (await world.scorer())["failingClusters"]] == ["worker01"]
