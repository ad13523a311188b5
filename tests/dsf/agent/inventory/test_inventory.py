"""The inventory of a managed cluster on the hub, from objects to status, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.agent.inventory.inventory_metrics import InventoryMetrics
from dsf.agent.inventory.inventory_publisher import keep_inventory
from dsf.agent.publish.write_permission import PublisherIdentity
from dsf.api.conditions import conditions_of, find
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, NotFound, Unreachable
from dsf.kube.kinds import (
    APPLIED_MANIFEST_WORK,
    CUSTOM_RESOURCE_DEFINITION,
    NODE,
    NODE_INVENTORY,
    POD,
    Kind,
)
from dsf.kube.port import Kube, Object
from tests.dsf.agent.conftest import CLUSTER
from tests.dsf.agent.inventory.cluster_objects import (
    applied,
    cluster_with,
    container,
    node,
    owned,
    pod,
    put,
)
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty

pytestmark = pytest.mark.virtual_time

START = datetime(2026, 1, 1, tzinfo=UTC)
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig.strategy": "single"}
WEB = owned("ReplicaSet", "web-5d4f", "rs", **{"pod-template-hash": "5d4f"})
DEPLOYMENT = {"group": "apps", "resource": "deployments", "namespace": "shop", "name": "web"}


def now() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


@asynccontextmanager
async def reported(
    hub: Kube,
    managed: Kube,
    *,
    labels: tuple[str, ...] = (),
    identity: PublisherIdentity | None = None,
    registry: CollectorRegistry | None = None,
) -> AsyncIterator[None]:
    metrics = InventoryMetrics(registry or CollectorRegistry(), lambda: now().timestamp())
    identity = identity or PublisherIdentity("installation")
    kept = keep_inventory(
        hub, managed, CLUSTER, labels, metrics=metrics, identity=identity, now=now
    )
    task = asyncio.create_task(kept)
    await asyncio.sleep(1)
    yield
    task.cancel()
    await asyncio.wait([task])


async def inventory(hub: Kube) -> Object:
    return await hub.get(NODE_INVENTORY, CLUSTER, CLUSTER)


async def status(hub: Kube) -> dict[str, Any]:
    return dict((await inventory(hub))["status"])


async def complete(hub: Kube) -> tuple[str, str]:
    found = find(conditions_of(await inventory(hub)), "Complete")
    assert found
    return found["reason"], found["message"]


async def test_a_cluster_is_reported_as_kube_scheduler_sees_it(hub: EmbeddedHub) -> None:
    managed = await cluster_with(
        node("gpu-1", labels={**H100, "team": "a", "nvidia.com/gpu.deploy.dcgm": "true"}),
        node("gpu-2", labels=H100),
        node("cpu-1", {"cpu": "4", "pods": "10"}, unschedulable=True),
        node("cpu-2", {"cpu": "4", "pods": "10"}, ready="Unknown"),
        applied("app01", DEPLOYMENT),
        pod("web-1", {"nvidia.com/gpu": "1", "cpu": "1"}, on="gpu-1", metadata=WEB),
        pod("web-2", {"nvidia.com/gpu": "1", "cpu": "1"}, metadata=WEB, phase="Pending"),
        pod("stranger", {"nvidia.com/gpu": "1"}, on="gpu-1"),
        pod("waits", {"nvidia.com/gpu": "8"}, phase="Pending"),
        pod("ended", {"nvidia.com/gpu": "4"}, on="gpu-2", phase="Succeeded"),
    )
    async with reported(hub, managed, labels=("team",)):
        found = await status(hub)
    has = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4", "pods": "110"}
    free, busy, *rest = found["nodes"]
    assert free == {
        "count": 1,
        "names": ["gpu-2"],
        "ready": True,
        "unschedulable": False,
        "labels": H100,
        "allocatable": has,
        "requested": {},
    }
    assert busy["labels"] == {**H100, "team": "a"}
    assert busy["requested"] == {"cpu": "1", "nvidia.com/gpu": "2", "pods": "2"}
    held = {"cpu": "1", "nvidia.com/gpu": "1", "pods": "1"}
    assert busy["works"] == [{"name": "app01", "requested": held}]
    assert [(one["ready"], one["unschedulable"]) for one in rest] == [(False, False), (True, True)]
    (work,) = found["works"]
    assert (work["running"], work["ready"], work["pending"]) == (1, 1, 1)
    assert work["requested"]["nvidia.com/gpu"] == "2"
    assert work["pendingSince"]
    assert found["others"] == {
        "running": 1,
        "pending": 1,
        "requested": {"nvidia.com/gpu": "1", "pods": "1"},
        "pendingRequested": {"nvidia.com/gpu": "8", "pods": "1"},
    }
    assert (found["nodeCount"], found["readyNodes"], found["pendingPods"]) == (4, 2, 2)
    assert found["largestFree"]["nvidia.com/gpu"] == "4"
    assert await complete(hub) == ("Inventoried", "All nodes and Pods are counted.")


async def test_changes_are_written_and_times_renewed(hub: EmbeddedHub) -> None:
    managed, counting = await cluster_with(node("n1")), Counting(hub)
    async with reported(counting, managed):
        first = await status(hub)
        assert first["observedTime"] <= "2026-01-01T00:00:01Z"
        assert first["validUntil"] <= "2026-01-01T00:03:01Z"
        for number in range(100):
            await put(managed, pod(f"p{number}", {"cpu": "10m"}, on="n1"))
            await asyncio.sleep(0.1)
        assert counting.calls["patch", NODE_INVENTORY.resource] <= 4
        await asyncio.sleep(10)
        assert (await status(hub))["nodes"][0]["requested"] == {"cpu": "1", "pods": "100"}
        await managed.delete(POD, "p1", "shop")
        await managed.patch(NODE, "n1", {"spec": {"unschedulable": True}})
        await asyncio.sleep(10)
        (group,) = (await status(hub))["nodes"]
        assert group["requested"] == {"cpu": "990m", "pods": "99"}
        assert group["unschedulable"]
        counting.calls.clear()
        await asyncio.sleep(3600)
        assert 50 <= counting.calls["patch", NODE_INVENTORY.resource] <= 61
        later = await status(hub)
        assert "00:58" <= later["observedTime"][11:] <= "01:01:00Z"
        assert later["nodes"] == [group]


async def test_what_nobody_confirms_is_not_renewed(hub: EmbeddedHub) -> None:
    away = False

    def fault(_: object) -> Fault | None:
        return Fault(Unreachable("connection refused")) if away else None

    managed, registry = await cluster_with(node("n1")), CollectorRegistry()
    async with reported(hub, Faulty(managed, fault), registry=registry):
        await asyncio.sleep(600)
        away = True
        await asyncio.sleep(1200)
        assert (await status(hub))["validUntil"] < "2026-01-01T00:18"
        age = registry.get_sample_value("dynamic_scoring_inventory_age_seconds")
        assert age
        assert 850 < age < 1300
        away = False
        await asyncio.sleep(300)
        assert (await status(hub))["validUntil"] > "2026-01-01T00:35"


HOSTILE: dict[str, tuple[tuple[Object, ...], dict[str, str], str]] = {
    "allocatable that is negative": (
        (node("n1", {"cpu": "-8", "memory": "1Gi", "nvidia.com/gpu": "1e99"}),),
        {"memory": "1Gi"},
        "node n1: status.allocatable[cpu] is '-8'",
    ),
    "allocatable of very many resources": (
        (node("n1", {f"example.com/r{number}": "1" for number in range(999)}),),
        {},
        "node n1: status.allocatable has 999 resources, at most 64",
    ),
    "very many taints": (
        (node("n1", taints=[{"key": f"k{n}", "effect": "NoExecute"} for n in range(99)]),),
        {},
        "node n1: 0 published labels and 99 taints, at most 64 are listed",
    ),
    "a negative request": (
        (node("n1"), pod("p", {"nvidia.com/gpu": "-2"}, on="n1")),
        {"cpu": "8", "memory": "32Gi", "pods": "109"},
        "Pod shop/p requests unreadable nvidia.com/gpu: all of it counts as taken on node n1",
    ),
    "an absurd request": (
        (node("n1", {"cpu": "8"}), pod("p", {"cpu": "9E"}, on="n1")),
        {},
        "Pod shop/p requests unreadable cpu",
    ),
    "very many requests": (
        (node("n1"), pod("p", {f"example.com/r{n}": "1" for n in range(999)}, on="n1")),
        {},
        "Pod shop/p requests unreadable too many resources",
    ),
    "a pending Pod with an absurd request": (
        (node("n1", {"cpu": "8"}), pod("p", {"cpu": "x"}, phase="Pending")),
        {"cpu": "8"},
        "Pod shop/p requests unreadable cpu: not counted",
    ),
    "nodes without anything": ((node("n1", {}),), {}, "All nodes and Pods are counted."),
}


@pytest.mark.parametrize(("objects", "free", "told"), HOSTILE.values(), ids=HOSTILE)
async def test_what_can_t_be_believed_is_named_and_never_capacity(
    hub: EmbeddedHub, objects: tuple[Object, ...], free: dict[str, str], told: str
) -> None:
    async with reported(hub, await cluster_with(*objects)):
        found = await status(hub)
        assert {name: most for name, most in found["largestFree"].items() if most != "0"} == free
        assert told in (await complete(hub))[1]


@pytest.mark.parametrize("kind", [NODE, POD, APPLIED_MANIFEST_WORK], ids=lambda kind: kind.plural)
async def test_a_right_that_is_missing_is_named_and_used_once_it_is_there(
    hub: EmbeddedHub, kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    refused = {kind}

    def fault(call: Any) -> Fault | None:
        return Fault(Forbidden("not allowed")) if call.kind in refused else None

    managed = await cluster_with(
        node("n1"), applied("app01", DEPLOYMENT), pod("web-1", on="n1", metadata=WEB)
    )
    async with reported(hub, Faulty(managed, fault)):
        await asyncio.sleep(600)
        found = await status(hub)
        reason, message = await complete(hub)
        assert "spokeSetting.agent.inventory.enabled" in message
        if kind is APPLIED_MANIFEST_WORK:
            assert reason == "WorksUnknown"
            assert found["others"]["running"] == 1
        else:
            assert (reason, kind.plural in message) == ("Forbidden", True)
            assert "nodes" not in found
            assert found["validUntil"] <= now().strftime("%Y-%m-%dT%H:%M:%SZ")
        named = [one for one in caplog.records if one.message == "inventory lacks a kind"]
        assert len(named) == 1
        refused.clear()
        await asyncio.sleep(100)
        found = await status(hub)
        assert found["works"][0]["running"] == 1
        assert (await complete(hub))[0] == "Inventoried"


async def test_a_hub_without_the_kind_is_told_once_and_asked_seldom(
    hub: EmbeddedHub, caplog: pytest.LogCaptureFixture
) -> None:
    await hub.delete(CUSTOM_RESOURCE_DEFINITION, NODE_INVENTORY.resource)
    counting = Counting(hub)
    async with reported(counting, await cluster_with(node("n1"))):
        await asyncio.sleep(7200)
        assert counting.writes < 100
    (told,) = (one for one in caplog.records if one.message == "inventory not published")
    assert "upgrade the CRDs on the hub" in told.__dict__["error"]
    with pytest.raises(NotFound):
        await inventory(hub)


async def test_two_installations_do_not_fight(hub: EmbeddedHub) -> None:
    ours, theirs = await cluster_with(node("n1")), await cluster_with(node("n2"), node("n3"))
    another = PublisherIdentity("another")
    async with reported(hub, ours), reported(hub, theirs, identity=another):
        await asyncio.sleep(600)
        assert (await status(hub))["nodeCount"] == 1
    async with reported(hub, theirs, identity=another):
        await asyncio.sleep(900)
        assert (await status(hub))["nodeCount"] == 2
        publisher = find(conditions_of(await inventory(hub)), "Publisher")
        assert publisher
        assert publisher["message"] == "another"


async def test_an_agent_that_stands_by_writes_nothing(hub: EmbeddedHub) -> None:
    identity = PublisherIdentity("installation", rival="pod-b")
    async with reported(hub, await cluster_with(node("n1")), identity=identity):
        await asyncio.sleep(60)
        with pytest.raises(NotFound):
            await inventory(hub)
        identity.rival = ""
        await asyncio.sleep(60)
        assert (await status(hub))["nodeCount"] == 1


OWNED: dict[str, tuple[Object, dict[str, str]]] = {
    "a Pod of the ManifestWork": (
        {"uid": "own"},
        {"resource": "pods", "namespace": "shop", "name": "p", "uid": ""},
    ),
    "a controller by its uid": (
        owned("LeaderWorkerSet", "llm", "lws"),
        {"group": "leaderworkerset.x-k8s.io", "resource": "leaderworkersets", "uid": "lws"},
    ),
    "a CronJob by its name": (
        owned("Job", "night-29182320"),
        {"group": "batch", "resource": "cronjobs", "namespace": "shop", "name": "night"},
    ),
}


@pytest.mark.parametrize(("metadata", "resource"), OWNED.values(), ids=OWNED)
async def test_pods_change_hands_when_ocm_says_what_it_applied(
    hub: EmbeddedHub, metadata: Object, resource: dict[str, str]
) -> None:
    managed = await cluster_with(node("n1"), pod("p", {"cpu": "1"}, on="n1", metadata=metadata))
    async with reported(hub, managed):
        assert (await status(hub))["others"]["running"] == 1
        uid = (await managed.get(POD, "p", "shop"))["metadata"]["uid"]
        resource = {"name": "x", **resource}
        if resource.get("uid") == "":
            resource["uid"] = uid
        await put(managed, applied("app01", resource))
        await asyncio.sleep(10)
        found = await status(hub)
        assert (found["others"]["running"], found["works"][0]["running"]) == (0, 1)
        await managed.delete(APPLIED_MANIFEST_WORK, "hub-app01")
        await asyncio.sleep(10)
        assert (await status(hub))["others"]["running"] == 1


async def test_a_bug_ends_neither_the_agent_nor_the_inventory(
    hub: EmbeddedHub, caplog: pytest.LogCaptureFixture
) -> None:
    managed = await cluster_with(node("n1"))
    await put(managed, pod("p", on="n1"))
    async with reported(hub, managed):
        await managed.patch(POD, "p", {"spec": {"containers": "none"}}, "shop")
        await asyncio.sleep(30)
        assert "inventory broke" in {one.message for one in caplog.records}
        await managed.patch(POD, "p", {"spec": {"containers": [container({"cpu": "2"})]}}, "shop")
        await asyncio.sleep(300)
        assert (await status(hub))["nodes"][0]["requested"]["cpu"] == "2"


async def test_what_does_not_fit_is_left_out_and_told(hub: EmbeddedHub) -> None:
    nodes = [node(f"n{n}", {"cpu": "8"}, labels={"rack": f"r{n}"}) for n in range(510)]
    async with reported(hub, await cluster_with(*nodes), labels=("rack",)):
        found = await status(hub)
        assert (len(found["nodes"]), found["nodeCount"]) == (500, 510)
        reason, message = await complete(hub)
        assert reason == "NodesLeftOut"
        assert "10 nodes of 510 are not listed" in message
