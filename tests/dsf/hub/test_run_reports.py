"""The controller reports what managed clusters do: add-ons, agents, expired scores, probes."""

import asyncio
from functools import partial
from typing import Any

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
)
from tests.dsf.hub.builders import HUB, add_on, published, scorer
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api
from tests.dsf.hub.test_run import (
    CONFIG,
    asked_again,
    controlled,
    fresh,
    register,
    two_clusters,
    until_distributed,
    until_ready,
    until_reason,
)
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting

ADDON = "dynamic-scoring-framework"
FAR = "2099-01-01T00:00:00Z"
LONG_AGO = "2020-01-01T00:00:00Z"


@pytest.fixture
async def hub() -> EmbeddedHub:
    return await two_clusters()


async def publish(hub: EmbeddedHub, where: str, score_name: str = "cpu_score", **how: Any) -> None:
    """Do what an agent does: create the object, then write its status."""
    obj = published(where, score_name, **{"until": FAR, **how})
    name = obj["metadata"]["name"]
    if how.get("until") is None and await exists(hub, where, name):
        body = {"status": {"validUntil": None, **obj["status"]}}
    else:
        metadata = {key: obj["metadata"][key] for key in ("name", "namespace", "labels")}
        await hub.create(ADD_ON_PLACEMENT_SCORE, {**obj, "metadata": metadata})
        body = {"status": obj["status"]}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, name, body, where, subresource="status")


async def exists(hub: EmbeddedHub, where: str, name: str) -> bool:
    try:
        await hub.get(ADD_ON_PLACEMENT_SCORE, name, where)
    except NotFound:
        return False
    return True


async def gone(hub: EmbeddedHub, where: str, name: str) -> bool:
    return not await exists(hub, where, name)


async def status(hub: EmbeddedHub, name: str = "cpu") -> dict[str, Any]:
    return dict((await hub.get(DYNAMIC_SCORER, name, HUB)).get("status") or {})


async def counted(hub: EmbeddedHub, **expected: int) -> bool:
    clusters = (await status(hub)).get("clusters") or {}
    return expected.items() <= clusters.items()


async def test_the_config_map_goes_only_where_the_add_on_is(hub: EmbeddedHub) -> None:
    async with scoring_api() as api, controlled(hub, resync_seconds=600):
        await register(hub, "cpu", api)
        await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])
        await hub.delete(MANAGED_CLUSTER_ADD_ON, ADDON, "c1")
        await until_distributed(hub, c2=["cpu_score"])
        await hub.delete(MANAGED_CLUSTER_ADD_ON, ADDON, "c2")
        await until_distributed(hub)
        assert "ManagedClusterAddOn" in await until_reason(hub, "cpu", "Ready", "NoClusters")
        await hub.create(MANAGED_CLUSTER_ADD_ON, add_on("c1"))
        await until_distributed(hub, c1=["cpu_score"])


async def test_clusters_are_chosen_by_label_as_the_config_says(hub: EmbeddedHub) -> None:
    async with scoring_api() as api, controlled(hub, resync_seconds=600):
        await register(hub, "cpu", api)
        choice = {"spec": {"clusterSelector": {"matchLabels": {"gpu": "yes"}}}}
        await hub.patch(DYNAMIC_SCORING_CONFIG, CONFIG, choice, HUB)
        await until_reason(hub, CONFIG, "Ready", "NoClusters")
        await hub.patch(MANAGED_CLUSTER, "c2", {"metadata": {"labels": {"gpu": "yes"}}})
        await until_distributed(hub, c2=["cpu_score"])


async def test_a_broken_query_on_one_cluster_is_seen_on_the_hub(hub: EmbeddedHub) -> None:
    async with scoring_api() as api, controlled(hub, resync_seconds=600):
        await register(hub, "cpu", api)
        await until_ready(hub, "cpu")
        await publish(hub, "c1")
        bad = ("SourceFetched", "BadQuery")
        await publish(hub, "c2", failing=bad, message="parse error: char 7", until="")
        await eventually(partial(counted, hub, desired=2, distributed=2, scoring=1, failing=1))
        [failing] = (await status(hub))["failingClusters"]
        assert (failing["name"], failing["reason"]) == ("c2", "BadQuery")
        assert failing["message"] == "parse error: char 7"
        message = await until_reason(hub, "cpu", "Scoring", "ClustersFailing")
        assert "parse error: char 7" in message
        await publish(hub, "c2")
        await eventually(partial(counted, hub, scoring=2, failing=0))
        await until_reason(hub, "cpu", "Scoring", "Scoring")
        assert "failingClusters" not in await status(hub)


async def test_expired_scores_that_nobody_publishes_are_deleted_and_no_others(
    hub: EmbeddedHub,
) -> None:
    await publish(hub, "c1", "renamed_score", until=LONG_AGO)
    await publish(hub, "c1", "still_fresh")
    foreign = {"metadata": {"name": "theirs", "namespace": "c1"}}
    await hub.create(ADD_ON_PLACEMENT_SCORE, foreign)
    old = {"status": {"validUntil": LONG_AGO}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "theirs", old, "c1", subresource="status")
    async with scoring_api() as api, controlled(hub):
        await register(hub, "cpu", api)
        await until_ready(hub, "cpu")
        await publish(hub, "c2", until=LONG_AGO)
        await eventually(partial(gone, hub, "c1", "renamed-score"))
        await asked_again(api)
        for where, name in (("c1", "still-fresh"), ("c1", "theirs"), ("c2", "cpu-score")):
            assert await exists(hub, where, name), f"{where}/{name}"
        await hub.delete(DYNAMIC_SCORER, "cpu", HUB)
        await eventually(partial(gone, hub, "c2", "cpu-score"))


async def test_a_mask_takes_effect_when_it_comes_and_when_it_goes(hub: EmbeddedHub) -> None:
    async with scoring_api() as api, controlled(hub, resync_seconds=600):
        await register(hub, "cpu", api)
        await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])
        masks = [{"clusterName": "c1", "scoreName": "cpu_score"}]
        await hub.patch(DYNAMIC_SCORING_CONFIG, CONFIG, {"spec": {"masks": masks}}, HUB)
        await until_distributed(hub, c1=[], c2=["cpu_score"])
        await hub.patch(DYNAMIC_SCORING_CONFIG, CONFIG, {"spec": {"masks": []}}, HUB)
        await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])


@pytest.mark.virtual_time
async def test_words_that_change_with_every_round_are_not_written_with_every_round(
    hub: EmbeddedHub,
) -> None:
    inner = {"scoring": {"params": {"name": "cpu_score"}}, "location": "Internal"}
    obj = scorer("cpu", url="http://127.0.0.1:1/config", mode="None", **inner)
    await hub.create(DYNAMIC_SCORER, fresh(obj))
    counting = Counting(hub)
    async with controlled(counting, resync_seconds=60):
        await asyncio.sleep(60)
        await publish(hub, "c1", failing=("Scored", "BadStatus"), message="request 0", until="")
        await asyncio.sleep(60)
        before = counting.calls["patch", DYNAMIC_SCORER.resource]
        for number in range(60):
            told = published("c1", failing=("Scored", "BadStatus"), message=f"request {number}")
            body = {"status": {"conditions": told["status"]["conditions"]}}
            await hub.patch(ADD_ON_PLACEMENT_SCORE, "cpu-score", body, "c1", subresource="status")
            await asyncio.sleep(5)
        written = counting.calls["patch", DYNAMIC_SCORER.resource] - before
        assert 1 <= written <= 6
        [failing] = (await status(hub))["failingClusters"]
        assert failing["message"] > "request 4"


async def test_two_lost_probes_withdraw_nothing_and_more_do(hub: EmbeddedHub) -> None:
    counting = Counting(hub)
    async with scoring_api() as api, controlled(counting):
        await register(hub, "cpu", api)
        await until_ready(hub, "cpu")
        await asked_again(api)
        before = patches(counting)
        api.lost = 2
        await eventually(partial(_none_lost, api))
        await asked_again(api)
        assert (patches(counting), (await status(hub))["healthStatus"]) == (before, "Active")
        api.health = 503
        await until_reason(hub, "cpu", "Healthy", "BadStatus")
        api.health = 200
        await until_ready(hub, "cpu")


def patches(counting: Counting) -> int:
    kinds = (DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK)
    return sum(counting.calls["patch", kind.resource] for kind in kinds)


async def _none_lost(api: ScoringAPI) -> bool:
    return api.lost == 0


async def test_a_restart_with_scores_in_place_writes_nothing(hub: EmbeddedHub) -> None:
    async with scoring_api() as api:
        async with controlled(hub):
            await register(hub, "cpu", api)
            await publish(hub, "c1")
            await publish(hub, "c2", failing=("Scored", "TimedOut"), until="")
            await until_reason(hub, "cpu", "Scoring", "ClustersFailing")
            await until_ready(hub, "cpu")
        counting = Counting(hub)
        async with controlled(counting):
            await asked_again(api)
        assert counting.writes == 0
