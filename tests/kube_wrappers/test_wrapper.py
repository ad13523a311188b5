"""Wrappers around the embedded hub: one protocol, other manners."""

import asyncio

import pytest

from dsf.kube.apply import apply
from dsf.kube.changes import Create, Delete, Patch, diff
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    Unreachable,
)
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE
from dsf.kube.port import Kube, Object
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.dry_run import DryRun
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


async def test_a_dry_run_records_writes_and_makes_none(hub: Kube) -> None:
    await hub.create(CONFIG_MAP, config_map("old", x="1"))
    before = await hub.list(CONFIG_MAP)
    kube = DryRun(hub)
    created = await kube.create(CONFIG_MAP, config_map("new"))
    patched = await kube.patch(CONFIG_MAP, "old", {"data": {"y": "2"}}, "ns")
    await kube.delete(CONFIG_MAP, "old", "ns")
    assert created["metadata"]["resourceVersion"]
    assert patched["data"] == {"x": "1", "y": "2"}
    assert kube.changes == [
        Create(CONFIG_MAP, config_map("new")),
        Patch(CONFIG_MAP, "old", "ns", {"data": {"y": "2"}}),
        Delete(CONFIG_MAP, "old", "ns"),
    ]
    assert await hub.list(CONFIG_MAP) == before


async def test_a_dry_run_shows_its_own_writes_to_get(hub: Kube) -> None:
    kube = DryRun(hub)
    await kube.create(CONFIG_MAP, config_map(x="1"))
    await kube.patch(CONFIG_MAP, "a", {"data": {"x": "2"}}, "ns")
    assert (await kube.get(CONFIG_MAP, "a", "ns"))["data"] == {"x": "2"}
    await kube.delete(CONFIG_MAP, "a", "ns")
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAP, "a", "ns")


async def test_a_dry_run_records_an_update_as_its_smallest_patch(hub: Kube) -> None:
    obj = await hub.create(CONFIG_MAP, config_map(x="1", y="1"))
    kube = DryRun(hub)
    updated = await kube.update(CONFIG_MAP, config_map(y="2"))
    assert updated == {**obj, "data": {"y": "2"}}
    assert kube.changes == [Patch(CONFIG_MAP, "a", "ns", {"data": {"x": None, "y": "2"}})]


async def test_a_dry_run_shows_a_field_removed_as_gone(hub: Kube) -> None:
    await hub.create(CONFIG_MAP, config_map(x="1"))
    kube = DryRun(hub)
    assert "data" not in await kube.patch(CONFIG_MAP, "a", {"data": None}, "ns")
    assert "data" not in await kube.get(CONFIG_MAP, "a", "ns")


async def test_a_dry_run_keeps_status_and_the_rest_apart(hub: Kube) -> None:
    await hub.create(CONFIG_MAP, config_map(x="1"))
    kube = DryRun(hub)
    body = {"status": {"phase": "Ready"}, "data": {"x": "2"}}
    patched = await kube.patch(CONFIG_MAP, "a", body, "ns", subresource="status")
    assert (patched["status"], patched["data"]) == ({"phase": "Ready"}, {"x": "1"})


async def test_a_dry_run_refuses_what_the_api_server_would(hub: Kube) -> None:
    obj = await hub.create(CONFIG_MAP, config_map())
    kube = DryRun(hub)
    stale = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}
    refusals: list[tuple[type[KubeError], object]] = [
        (AlreadyExists, kube.create(CONFIG_MAP, config_map())),
        (NotFound, kube.patch(CONFIG_MAP, "b", {}, "ns")),
        (NotFound, kube.delete(CONFIG_MAP, "b", "ns")),
        (Conflict, kube.update(CONFIG_MAP, stale)),
        (Conflict, kube.delete(CONFIG_MAP, "a", "ns", uid="another")),
        (Conflict, kube.patch(CONFIG_MAP, "a", {"metadata": {"resourceVersion": "1"}}, "ns")),
    ]
    for error, call in refusals:
        with pytest.raises(error):
            await call  # type: ignore[misc]  # coroutines of different results
    assert kube.changes == []


async def test_applied_changes_leave_nothing_to_change(hub: Kube) -> None:
    for obj in (config_map("patched", x="1"), config_map("gone")):
        await hub.create(CONFIG_MAP, obj)
    desired = [config_map("patched", y="2"), config_map("new", z="3")]
    outcomes = await apply(hub, diff(CONFIG_MAP, desired, (await hub.list(CONFIG_MAP, "ns")).items))
    assert [(str(o.change).split()[0], o.error) for o in outcomes] == [
        ("patch", None),
        ("create", None),
        ("delete", None),
    ]
    assert diff(CONFIG_MAP, desired, (await hub.list(CONFIG_MAP, "ns")).items) == []


async def test_a_change_that_fails_holds_up_no_other(hub: Kube) -> None:
    error = Unreachable("reset")
    kube = Faulty(hub, at({2: Fault(error)}))
    changes = [Create(CONFIG_MAP, config_map(name)) for name in "abc"]
    assert [outcome.error for outcome in await apply(kube, changes)] == [None, error, None]
    assert await names(hub) == ["a", "c"]


async def test_what_has_happened_already_is_no_error(hub: Kube) -> None:
    await hub.create(CONFIG_MAP, config_map("same", x="1"))
    await hub.create(CONFIG_MAP, config_map("successor"))
    outcomes = await apply(
        hub,
        [
            Create(CONFIG_MAP, config_map("same", x="1")),
            Delete(CONFIG_MAP, "gone", "ns"),
            Delete(CONFIG_MAP, "successor", "ns", uid="of-its-predecessor"),
        ],
    )
    assert [outcome.error for outcome in outcomes] == [None, None, None]
    assert await names(hub) == ["same", "successor"]


async def test_a_create_of_something_else_under_the_name_is_an_error(hub: Kube) -> None:
    theirs = await hub.create(CONFIG_MAP, config_map(x="theirs"))
    [outcome] = await apply(hub, [Create(CONFIG_MAP, config_map(x="ours"))])
    assert isinstance(outcome.error, AlreadyExists)
    assert await hub.get(CONFIG_MAP, "a", "ns") == theirs


async def test_a_patch_of_a_missing_object_is_an_error(hub: Kube) -> None:
    [outcome] = await apply(hub, [Patch(CONFIG_MAP, "a", "ns", {"data": {}})])
    assert isinstance(outcome.error, NotFound)
