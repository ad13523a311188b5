"""Devices of dynamic resource allocation in the inventory of a managed cluster, end to end."""

import asyncio

import pytest

from dsf.agent.inventory.devices import DeviceSets
from dsf.agent.inventory.node_groups import NodeState, group_nodes
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, NotFound
from dsf.kube.kinds import DEVICE_CLASS, NODE, RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from dsf.kube.port import Object
from tests.device_slices import claim, mig_slice, nvidia_classes, resource_slice
from tests.dsf.agent.inventory.cluster_objects import applied, cluster_with, node, pod
from tests.dsf.agent.inventory.test_inventory import DEPLOYMENT, WEB, complete, reported, status
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.objects_with_status import create_with_status

pytestmark = pytest.mark.virtual_time

KINDS = {kind.kind: kind for kind in (DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE)}


async def put(kube: EmbeddedHub, *objects: Object) -> None:
    for obj in objects:
        await create_with_status(kube, KINDS[obj["kind"]], obj)


def plain(name: str) -> Object:
    return node(name, {"cpu": "8", "pods": "110"})


async def cluster(*objects: Object) -> EmbeddedHub:
    managed = await cluster_with(
        *map(plain, ("a", "b", "c")),
        applied("app01", DEPLOYMENT),
        pod("web-1", on="a", metadata=WEB),
        pod("stranger", on="b"),
    )
    await put(managed, *(mig_slice(name, 2) for name in "ab"), *nvidia_classes(), *objects)
    return managed


async def test_devices_are_reported_with_whose_they_are(hub: EmbeddedHub) -> None:
    managed = await cluster(
        claim("ours", "a", "gpu-0-mig-3g20gb-4", pods=["web-1"]),
        claim("theirs", "b", "gpu-1", pods=["stranger"]),
    )
    async with reported(hub, managed):
        found = await status(hub)
        assert await complete(hub) == ("Inventoried", "All nodes and Pods are counted.")
        (listed,) = found["deviceSets"]
        name = listed["name"]
        assert len(listed["devices"]) == 14
        assert [item["name"] for item in found["deviceClasses"]] == [
            "gpu.nvidia.com",
            "mig.nvidia.com",
        ]
        taken = {
            tuple(
                (item["count"], one["device"], one.get("work", ""))
                for item in group.get("devices", ())
                for one in item.get("allocated", ())
            )
            for group in found["nodes"]
        }
        assert taken == {((1, 12, "app01"),), ((1, 0, ""),), ()}
        for resource, obj in (("theirs", RESOURCE_CLAIM), ("ours", RESOURCE_CLAIM)):
            await managed.delete(obj, resource, "shop")
        await managed.delete(NODE, "c")
        await asyncio.sleep(10)
        for group in (await status(hub))["nodes"]:
            assert group["devices"] == [{"set": name, "count": 2}]


async def test_a_hostile_pool_is_named_in_the_condition(hub: EmbeddedHub) -> None:
    many = [{"name": f"d{number}"} for number in range(10_000)]
    managed = await cluster(resource_slice("c", many))
    async with reported(hub, managed):
        reason, message = await complete(hub)
        assert reason == "DevicesLeftOut"
        assert "pool c of gpu.nvidia.com gives no devices: it has 10000 devices" in message
        assert sum("devices" in group for group in (await status(hub))["nodes"]) == 2


@pytest.mark.parametrize("refused", [RESOURCE_SLICE, RESOURCE_CLAIM, DEVICE_CLASS])
async def test_without_one_right_no_device_counts(hub: EmbeddedHub, refused: Kind) -> None:
    def fault(call: object) -> Fault | None:
        denied = getattr(call, "kind", None) == refused
        return Fault(Forbidden("not yours")) if denied else None

    async with reported(hub, Faulty(await cluster(), fault)):
        found, (reason, message) = await status(hub), await complete(hub)
        assert reason == "DevicesLeftOut"
        assert f"the agent may not list and watch {refused.plural}" in message
        assert "deviceSets" not in found
        assert all("devices" not in group for group in found["nodes"])


async def test_a_cluster_that_serves_no_dra_is_complete(hub: EmbeddedHub) -> None:
    def fault(call: object) -> Fault | None:
        group = getattr(getattr(call, "kind", None), "group", "")
        return Fault(NotFound("no such resource")) if group == "resource.k8s.io" else None

    async with reported(hub, Faulty(await cluster(), fault)):
        assert (await complete(hub))[0] == "Inventoried"
        assert "deviceSets" not in await status(hub)


def test_nodes_that_share_a_group_have_devices_only_if_these_are_equal() -> None:
    def state(cpu: int, sets: str) -> NodeState:
        cpus = (("cpu", 64_000),)
        taken = (("cpu", cpu),)
        return NodeState(True, False, (), (), cpus, taken, devices=(DeviceSets(sets, 8),))

    alike = {f"n{cpu}": state(cpu, "a") for cpu in range(1, 100)}
    (group,) = group_nodes(alike, 1).documents
    assert group["devices"] == [{"set": "a", "count": 8}]
    (group,) = group_nodes(alike | {"other": state(1, "b")}, 1).documents
    assert "devices" not in group
