"""The watcher at work on an embedded cluster, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound, Unreachable
from dsf.kube.kinds import CLUSTER_CLAIM, NAMESPACE, POLICY
from dsf.kube.port import Kube, ObjectList
from policy_watcher.run import PolicyWatcher, WatcherSettings
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.wrapper import Call, Wrapper
from tests.policy_watcher.builders import policy

pytestmark = pytest.mark.virtual_time

SETTINGS = WatcherSettings(poll_seconds=30, stable_seconds=120, namespace="worker01")
CLAIM = "policy-watcher-claim"


@pytest.fixture
async def cluster() -> EmbeddedHub:
    kube = EmbeddedHub()
    await kube.create(NAMESPACE, {"metadata": {"name": "worker01"}})
    return kube


@asynccontextmanager
async def watched(
    kube: Kube, registry: CollectorRegistry | None = None
) -> AsyncIterator[PolicyWatcher]:
    clock = asyncio.get_running_loop().time
    watcher = PolicyWatcher(kube, SETTINGS, clock=clock, registry=registry or CollectorRegistry())
    task = asyncio.create_task(watcher.run())
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled(), task.exception()


async def put(kube: EmbeddedHub, name: str, compliant: str) -> None:
    """Create a policy where there is none, and say how compliant it is."""
    try:
        await kube.get(POLICY, name, "worker01")
    except NotFound:
        obj = policy(name, None)
        obj["metadata"] = {"name": name, "namespace": "worker01"}
        await kube.create(POLICY, obj)
    status = {"status": {"compliant": compliant}}
    await kube.patch(POLICY, name, status, "worker01", subresource="status")


async def claim(kube: EmbeddedHub) -> Any:
    return (await kube.get(CLUSTER_CLAIM, CLAIM))["spec"]["value"]


async def claims(kube: EmbeddedHub, *looks: int) -> list[Any]:
    """Return the claim at moments some seconds apart."""
    values = []
    for gap in looks:
        await asyncio.sleep(gap)
        values.append(await claim(kube))
    return values


async def test_from_empty_to_compliant(cluster: EmbeddedHub) -> None:
    async with watched(cluster):
        assert await claims(cluster, 1) == ["empty"]
        await put(cluster, "mig-3g", "NonCompliant")
        assert await claims(cluster, 30) == ["noncompliant"]
        await put(cluster, "mig-3g", "Compliant")
        assert await claims(cluster, 30, 60, 45, 30) == [*["noncompliant"] * 3, "compliant"]


async def test_it_writes_only_what_changes_and_repairs_what_others_write(
    cluster: EmbeddedHub,
) -> None:
    await put(cluster, "mig-3g", "Compliant")
    counting = Counting(cluster)
    async with watched(counting):
        await asyncio.sleep(3600)
        assert counting.writes == 2  # noncompliant, compliant
        await cluster.patch(CLUSTER_CLAIM, CLAIM, {"spec": {"value": "empty"}})
        assert await claims(cluster, 31) == ["compliant"]


async def test_a_restart_keeps_a_compliant_claim(cluster: EmbeddedHub) -> None:
    await put(cluster, "mig-3g", "Compliant")
    async with watched(cluster):
        await asyncio.sleep(125)
    counting = Counting(cluster)
    async with watched(counting):
        assert await claims(cluster, 1, 300) == ["compliant", "compliant"]
    assert counting.writes == 0


class Away(Wrapper):
    """An API server that can be out of reach."""

    away = False

    def before(self, call: Call) -> None:
        if self.away:
            raise Unreachable(f"no route to {call.kind.resource}")


async def test_while_the_api_server_is_away_the_claim_stays(cluster: EmbeddedHub) -> None:
    await put(cluster, "mig-3g", "Compliant")
    kube = Away(cluster)
    async with watched(kube) as watcher:
        assert await claims(cluster, 125) == ["compliant"]
        assert await watcher.unready_reason() is None
        kube.away = True
        assert await claims(cluster, 300) == ["compliant"]
        assert await watcher.unready_reason() is not None
        kube.away = False
        await put(cluster, "mig-3g", "NonCompliant")
        assert await claims(cluster, 31) == ["noncompliant"]
        assert await watcher.unready_reason() is None


class Slow(Wrapper):
    """An API server that takes its time."""

    async def list(self, *args: Any, **options: Any) -> ObjectList:
        await asyncio.sleep(10)
        return await super().list(*args, **options)


async def test_a_look_that_takes_long_does_not_end_readiness(cluster: EmbeddedHub) -> None:
    async with watched(Slow(cluster)) as watcher:
        await asyncio.sleep(5)
        assert await watcher.unready_reason() is not None
        await asyncio.sleep(10)
        assert await watcher.unready_reason() is None
        await asyncio.sleep(30)  # within the second look, from second 40 to 50
        assert await watcher.unready_reason() is None


async def test_metrics(cluster: EmbeddedHub) -> None:
    await put(cluster, "a", "Compliant")
    await put(cluster, "b", "Pending")
    registry = CollectorRegistry()
    async with watched(cluster, registry):
        await asyncio.sleep(1)
    value = registry.get_sample_value
    assert value("policy_watcher_claim", {"value": "noncompliant"}) == 1
    assert value("policy_watcher_claim", {"value": "compliant"}) == 0
    assert value("policy_watcher_policies", {"compliant": "true"}) == 1
    assert value("policy_watcher_policies", {"compliant": "false"}) == 1
