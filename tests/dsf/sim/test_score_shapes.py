"""Scorers of any shape decide plans: hub controller, simulated OCM, two agents, optimizer."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from dsf.api import names
from dsf.kube import kinds
from dsf.kube.errors import NotFound
from tests.dsf.scorer_kit.scorers import served
from tests.dsf.shape_scorers import FORMATS, WANTED, scorer_spec, shape_apis
from tests.dsf.sim.builders import CLUSTERS, SimulatedFleet, create, make, simulated_fleet
from tests.dsf.sim.test_scoring_from_manifests import policy, programs, running, workload
from tests.eventually import eventually
from tests.optimizer.operations.test_recorded_plans import client


async def registered(fleet: SimulatedFleet, url: str) -> None:
    for obj in (workload("app01"), policy("3g.48gb"), policy("2g.24gb")):
        obj["metadata"]["namespace"] = "default"
        kind = kinds.POLICY if obj["kind"] == "Policy" else kinds.MANIFEST_WORK_REPLICA_SET
        await create(fleet.hub, kind, obj)
    kind, place = kinds.DYNAMIC_SCORING_CONFIG, names.HUB_NAMESPACE
    config = make(kind, names.SCORING_CONFIG, place, spec={"masks": []})
    await create(fleet.hub, kind, config)
    for score in FORMATS:
        scorer = make(kinds.DYNAMIC_SCORER, score, place, spec=scorer_spec(score, url))
        await create(fleet.hub, kinds.DYNAMIC_SCORER, scorer)


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    fleet = await simulated_fleet()

    async def scored() -> bool:
        try:
            for score in FORMATS:
                for cluster in CLUSTERS:
                    await fleet.hub.get(kinds.ADD_ON_PLACEMENT_SCORE, score, cluster)
        except NotFound:
            return False
        listed = (await fleet.hub.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
        return all(obj.get("status", {}).get("scores") for obj in listed)

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(shape_apis(CLUSTERS[0])))
        await registered(fleet, url)
        await stack.enter_async_context(running(*programs(fleet)))
        await eventually(scored)
        yield await stack.enter_async_context(client(fleet.hub))


async def planned(http: httpx.AsyncClient, *scores: str, **further: Any) -> Any:
    """The only place of the plan for these scores."""
    question = {"objective": dict.fromkeys(scores, 1), "request": {"explain": True, **further}}
    answer = (await http.post("/plan", json={"namespace": "default", **question})).json()
    assert answer["gaps"] == []
    (place,) = answer["explanation"]["places"]
    return place


async def test_each_shape_decides_a_plan_without_a_format(http: httpx.AsyncClient) -> None:
    for score, (number, value, entry) in WANTED.items():
        place = await planned(http, score)
        cluster = CLUSTERS[number]
        assert (place["cluster"], place["score"]) == (cluster, value)
        assert place["entries"] == {score: entry.format(cluster=cluster)}
    both = await planned(http, "of-cluster", "of-device")
    assert (both["cluster"], both["device"], both["score"]) == (CLUSTERS[1], "3g.48gb", 70 + 50)
    mean = {"addonPlacementScore": "of-node", "aggregation": "Mean"}
    on_mean = await planned(http, preference=mean)
    assert (on_mean["cluster"], on_mean["score"]) == (CLUSTERS[1], 60)
