"""Wrappers around the embedded hub: one protocol, other manners."""

import asyncio

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import (
    Forbidden,
    NotFound,
    ServerError,
    Unreachable,
)
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE
from dsf.kube.port import Kube, Object
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty, at
from tests.kube_wrappers.read_only import ReadOnly


def config_map(name: str = "a", **data: str) -> Object:
    metadata = {"name": name, "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
async def hub() -> Kube:
    hub = EmbeddedHub()
    await hub.create(
        NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    )
    return hub


async def names(kube: Kube) -> list[str]:
    page = await kube.list(CONFIG_MAP, "ns")
    return [obj["metadata"]["name"] for obj in page.items]


async def test_read_only_reads_and_refuses_every_write(hub: Kube) -> None:
    obj = await hub.create(CONFIG_MAP, config_map(x="1"))
    kube = ReadOnly(hub)
    assert await kube.get(CONFIG_MAP, "a", "ns") == obj
    assert await names(kube) == ["a"]
    for write in (
        kube.create(CONFIG_MAP, config_map("b")),
        kube.update(CONFIG_MAP, {**obj, "data": {}}),
        kube.patch(CONFIG_MAP, "a", {"data": {"x": "2"}}, "ns"),
        kube.delete(CONFIG_MAP, "a", "ns"),
    ):
        with pytest.raises(Forbidden, match="read-only"):
            await write
    assert await hub.get(CONFIG_MAP, "a", "ns") == obj


async def test_counting_counts_by_verb_and_resource_also_what_fails(hub: Kube) -> None:
    kube = Counting(hub)
    await kube.create(CONFIG_MAP, config_map())
    await kube.list(CONFIG_MAP)
    await kube.list(NAMESPACE)
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAP, "missing", "ns")
    assert kube.calls == {
        ("create", "configmaps"): 1,
        ("list", "configmaps"): 1,
        ("list", "namespaces"): 1,
        ("get", "configmaps"): 1,
    }
    assert kube.writes == 1


async def test_a_fault_before_stops_a_call_and_one_after_loses_its_answer(hub: Kube) -> None:
    lost = Fault(Unreachable("reset"), "after")
    kube = Faulty(hub, at({1: Fault(ServerError("down")), 2: lost}))
    with pytest.raises(ServerError):
        await kube.create(CONFIG_MAP, config_map("a"))
    with pytest.raises(Unreachable):
        await kube.create(CONFIG_MAP, config_map("b"))
    await kube.create(CONFIG_MAP, config_map("c"))
    assert await names(hub) == ["b", "c"]


async def test_a_faulty_watch_is_cut_and_can_be_resumed(hub: Kube) -> None:
    kube = Faulty(hub, at({1: Fault(Unreachable("reset"), "after")}))
    version = (await hub.list(CONFIG_MAP, "ns")).resource_version
    await hub.create(CONFIG_MAP, config_map())
    with pytest.raises(Unreachable):
        await anext(kube.watch(CONFIG_MAP, "ns", resource_version=version))
    watch = kube.watch(CONFIG_MAP, "ns", resource_version=version)
    assert (await anext(watch)).object["metadata"]["name"] == "a"


async def test_a_wrapped_watch_ends_the_inner_one(hub: Kube) -> None:
    version = (await hub.list(CONFIG_MAP, "ns")).resource_version
    watch = Counting(Counting(hub)).watch(CONFIG_MAP, "ns", resource_version=version)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
