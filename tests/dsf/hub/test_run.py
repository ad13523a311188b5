"""The controller with an embedded hub and real scoring APIs on loopback."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.api.conditions import find, is_true
from dsf.hub.observe.prober import ProbeLimits, Prober
from dsf.hub.run import HubController, HubOptions
from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound, ServerError, Unreachable
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
    NAMESPACE,
)
from dsf.kube.port import Kube
from dsf.runtime.leader_election import Lead, Object
from tests.dsf.hub.builders import HUB, add_on, api_config, cluster, scorer, scoring_config
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.wrapper import WRITES, Call, Wrapper

WORK = "dynamic-scoring-config-manifestwork"
CONFIG = "dynamic-scoring-config"
GIVE_UP_SECONDS = 60.0


@pytest.fixture
async def hub() -> EmbeddedHub:
    return await two_clusters()


async def two_clusters() -> EmbeddedHub:
    """A hub with two accepted managed clusters and an empty DynamicScoringConfig."""
    kube = EmbeddedHub()
    await add_namespace(kube, HUB)
    for name in ("c1", "c2"):
        await add_namespace(kube, name)
        await add_cluster(kube, name)
    await kube.create(DYNAMIC_SCORING_CONFIG, fresh(scoring_config()))
    return kube


def fresh(obj: dict[str, Any]) -> Object:
    """Return an object as a user applies it: without what the API server adds."""
    given = ("name", "namespace", "labels")
    metadata = {key: value for key, value in obj["metadata"].items() if key in given}
    return {**obj, "metadata": metadata}


async def add_namespace(kube: EmbeddedHub, name: str) -> None:
    await kube.create(NAMESPACE, {"metadata": {"name": name}})


async def add_cluster(kube: EmbeddedHub, name: str) -> None:
    """Add a managed cluster whose namespace exists, with the add-on."""
    await kube.create(MANAGED_CLUSTER, fresh(cluster(name)))
    await kube.create(MANAGED_CLUSTER_ADD_ON, add_on(name))


async def register(kube: EmbeddedHub, name: str, api: ScoringAPI, **spec: Any) -> None:
    await kube.create(DYNAMIC_SCORER, fresh(scorer(name, url=api.config_url, **spec)))


def named(score_name: str) -> ScoringAPI:
    return ScoringAPI(body=json.dumps(api_config(score_name)).encode())


@asynccontextmanager
async def controlled(
    kube: Kube,
    resync_seconds: float = 0.1,
    limits: ProbeLimits | None = None,
    lead: Lead | None = None,
    **options: Any,
) -> AsyncIterator[HubController]:
    seconds = {"resync_seconds": resync_seconds, "probe_seconds": resync_seconds}
    controller = HubController(
        kube,
        HubOptions(**seconds, report_seconds=0.05, **options),
        prober=Prober(limits),
        registry=CollectorRegistry(),
    )
    task = asyncio.create_task(controller.run(lead))
    try:
        yield controller
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled(), task.exception()


async def distributed(kube: EmbeddedHub) -> dict[str, list[str]]:
    """Return the score names by cluster, from all works that exist."""
    texts = {
        work["metadata"]["namespace"]: summaries_text(work) or "[]"
        for work in (await kube.list(MANIFEST_WORK)).items
    }
    return {name: [s["scoreName"] for s in json.loads(text)] for name, text in texts.items()}


async def until_distributed(kube: EmbeddedHub, **wanted: list[str]) -> None:
    try:
        await eventually(partial(_equal, kube, wanted))
    except TimeoutError:
        assert await distributed(kube) == wanted


async def _equal(kube: EmbeddedHub, wanted: dict[str, list[str]]) -> bool:
    return await distributed(kube) == wanted


async def until_reason(kube: EmbeddedHub, name: str, type_: str, reason: str) -> str:
    """Wait for the reason of a scorer's condition and return its message."""

    async def told() -> bool:
        return (await condition(kube, name, type_)).get("reason") == reason

    try:
        await eventually(told)
    except TimeoutError:
        assert (await condition(kube, name, type_)).get("reason") == reason
    return str((await condition(kube, name, type_))["message"])


async def condition(kube: EmbeddedHub, name: str, type_: str) -> dict[str, Any]:
    kind = DYNAMIC_SCORING_CONFIG if name == CONFIG else DYNAMIC_SCORER
    obj = await kube.get(kind, name, HUB)
    return dict(find(obj.get("status", {}).get("conditions") or [], type_) or {})


async def until_ready(kube: EmbeddedHub, *names: str) -> None:
    await eventually(partial(_ready, kube, *names))


async def _ready(kube: EmbeddedHub, *names: str) -> bool:
    objects = [await kube.get(DYNAMIC_SCORER, name, HUB) for name in names]
    config = await kube.get(DYNAMIC_SCORING_CONFIG, CONFIG, HUB)
    return all(is_true(obj, "Ready") for obj in [*objects, config])


async def asked_again(api: ScoringAPI, times: int = 3) -> None:
    """Wait for some more polls of an API, and for what follows from them."""
    target = len(api.asked) + 2 * times

    async def polled() -> bool:
        return len(api.asked) >= target

    await eventually(polled)


async def test_full_and_none_reach_every_cluster(hub: EmbeddedHub) -> None:
    async with scoring_api(named("cpu_score")) as full, scoring_api() as none, controlled(hub):
        await register(hub, "full", full)
        own = {"source": {"type": "none"}, "scoring": {"path": "/own", "params": {"name": "own"}}}
        await register(hub, "none", none, mode="none", **own)
        await until_distributed(hub, c1=["cpu_score", "own"], c2=["cpu_score", "own"])
        await until_ready(hub, "full", "none")
        work = await hub.get(MANIFEST_WORK, WORK, "c1")
        first, second = json.loads(summaries_text(work))
        assert first["scoringEndpoint"] == f"{full.url}/scoring"
        assert first["sourceQuery"] == "up"
        assert second["scoringEndpoint"] == f"{none.url}/own"
        assert second["sourceType"] == "None"
        assert set(none.asked) == {"/healthz"}
        status = (await hub.get(DYNAMIC_SCORER, "full", HUB))["status"]
        assert status["healthStatus"] == "Active"
        assert status["lastSyncedConfig"] == api_config("cpu_score")


async def _is_gone(kube: EmbeddedHub) -> bool:
    try:
        await kube.get(DYNAMIC_SCORING_CONFIG, CONFIG, HUB)
    except NotFound:
        return True
    return False


async def test_drift_and_deletion_of_works_are_repaired(hub: EmbeddedHub) -> None:
    async with scoring_api() as api, controlled(hub, resync_seconds=600):
        await register(hub, "cpu", api)
        await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])
        wanted = (await hub.get(MANIFEST_WORK, WORK, "c1"))["spec"]
        await hub.patch(MANIFEST_WORK, WORK, {"spec": {"workload": {"manifests": []}}}, "c1")
        await hub.delete(MANIFEST_WORK, WORK, "c2")
        await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])
        for name in ("c1", "c2"):
            assert (await hub.get(MANIFEST_WORK, WORK, name))["spec"] == wanted


class Refusing(Wrapper):
    """Refuses works in some namespaces, each time in other words, as relayed socket errors do."""

    def __init__(self, inner: Kube, *namespaces: str) -> None:
        super().__init__(inner)
        self.namespaces = set(namespaces)
        self.refused: Counter[str] = Counter()

    def before(self, call: Call) -> None:
        where = call.namespace or ""
        if call.kind == MANIFEST_WORK and where in self.namespaces and call.verb in WRITES:
            self.refused[where] += 1
            raise ServerError(f"webhook: read tcp 10.0.0.9:{40_000 + self.refused[where]}: reset")


async def test_a_cluster_that_cannot_be_written_to_is_told_and_holds_up_no_other(
    hub: EmbeddedHub,
) -> None:
    refusing = Refusing(hub, "c1")
    async with scoring_api() as api, controlled(refusing):
        await register(hub, "cpu", api)
        await until_distributed(hub, c2=["cpu_score"])
        message = await until_reason(hub, CONFIG, "Ready", "WriteRefused")
        assert message.startswith("c1: ")
        refusing.namespaces.clear()
        await until_distributed(hub, c1=["cpu_score"], c2=["cpu_score"])
        await until_ready(hub, "cpu")


@pytest.mark.virtual_time
async def test_a_refusal_in_ever_other_words_is_told_once(hub: EmbeddedHub) -> None:
    counting = Counting(Refusing(hub, "c1"))
    async with controlled(counting, resync_seconds=600):
        await asyncio.sleep(30)
        before = counting.calls["patch", DYNAMIC_SCORING_CONFIG.resource]
        await asyncio.sleep(600)
        assert counting.calls["patch", DYNAMIC_SCORING_CONFIG.resource] == before
        assert counting.calls["create", MANIFEST_WORK.resource] < 20
    assert (await condition(hub, CONFIG, "Ready"))["reason"] == "WriteRefused"


class DyingAt(Wrapper):
    """Lets some writes through, then none: what a killed process leaves behind."""

    def __init__(self, inner: Kube, writes: int) -> None:
        super().__init__(inner)
        self.left = writes
        self.dead = asyncio.Event()

    def before(self, call: Call) -> None:
        if call.verb not in WRITES:
            return
        if self.left == 0:
            self.dead.set()
            raise Unreachable("killed")
        self.left -= 1


async def test_killed_while_the_config_is_deleted_the_next_one_finishes() -> None:
    async with scoring_api() as api:
        for writes in range(4):  # two works, the scorer's status, the finalizer
            kube = await two_clusters()
            await register(kube, "cpu", api)
            async with controlled(kube):
                await until_ready(kube, "cpu")
            await kube.delete(DYNAMIC_SCORING_CONFIG, CONFIG, HUB)
            dying = DyingAt(kube, writes)
            async with controlled(dying), asyncio.timeout(GIVE_UP_SECONDS):
                await dying.dead.wait()
            async with controlled(kube):
                await eventually(partial(_is_gone, kube))
                await until_distributed(kube)
                await until_reason(kube, "cpu", "Ready", "NoScoringConfig")


async def end_state(kube: EmbeddedHub) -> dict[str, Any]:
    """Return specs, finalizers and statuses, without times and versions."""
    return {
        f"{kind.kind}/{obj['metadata'].get('namespace')}/{obj['metadata']['name']}": (
            obj["spec"],
            obj["metadata"].get("finalizers"),
            _untimed(obj.get("status", {})),
        )
        for kind in (DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK)
        for obj in (await kube.list(kind)).items
    }


def _untimed(status: dict[str, Any]) -> dict[str, Any]:
    conditions = [{**c, "lastTransitionTime": ""} for c in status.get("conditions", [])]
    return {**status, "conditions": conditions}


async def test_it_is_ready_once_everything_was_listed(hub: EmbeddedHub) -> None:
    async with controlled(hub) as controller:
        assert "DynamicScorers" in str(await controller.unready_reason())

        async def listed() -> bool:
            return await controller.unready_reason() is None

        await eventually(listed)
