"""What only the embedded hub promises: bounds, determinism, and checks that input is JSON."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import AlreadyExists, BadRequest, Gone, Invalid, NotFound
from dsf.kube.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SECRET, Kind
from dsf.kube.port import WatchEvent
from tests.dsf.kube.contract.objects import (
    GADGET,
    config_map,
    gadget,
    gadget_definition,
    widget_definition,
)


async def hub_with_namespace(**options: Any) -> EmbeddedHub:
    hub = EmbeddedHub(**options)
    await hub.create(NAMESPACE, {"metadata": {"name": "n"}})
    return hub


async def change(hub: EmbeddedHub, times: int) -> None:
    for number in range(times):
        await hub.patch(CONFIG_MAP, "settings", {"data": {"n": str(number)}}, "n")


async def test_a_watch_from_a_forgotten_version_is_gone() -> None:
    hub = await hub_with_namespace(history=3)
    created = await hub.create(CONFIG_MAP, config_map("n"))
    await change(hub, 4)
    with pytest.raises(Gone, match="too old resource version") as refused:
        hub.watch(CONFIG_MAP, resource_version=created["metadata"]["resourceVersion"])
    assert refused.value.status()["reason"] == "Expired"


async def test_changes_of_other_kinds_do_not_age_a_version() -> None:
    hub = await hub_with_namespace(history=3)
    start = (await hub.list(SECRET)).resource_version
    await hub.create(CONFIG_MAP, config_map("n"))
    await change(hub, 10)
    events = hub.watch(SECRET, resource_version=start, timeout_seconds=0)
    assert [event.type async for event in events] == ["BOOKMARK"]


async def test_a_watcher_that_falls_behind_is_gone() -> None:
    hub = await hub_with_namespace(history=3)
    created = await hub.create(CONFIG_MAP, config_map("n"))
    version = created["metadata"]["resourceVersion"]
    events = hub.watch(CONFIG_MAP, resource_version=version, timeout_seconds=10)
    await change(hub, 4)
    with pytest.raises(Gone):
        await anext(events)


async def test_a_continue_token_of_a_forgotten_version_is_gone() -> None:
    hub = await hub_with_namespace(history=3)
    await hub.create(CONFIG_MAP, config_map("n"))
    await hub.create(CONFIG_MAP, config_map("n", "z"))
    page = await hub.list(CONFIG_MAP, limit=1)
    await change(hub, 4)
    with pytest.raises(Gone, match="continue parameter is too old"):
        await hub.list(CONFIG_MAP, limit=1, continue_token=page.continue_token)


async def test_a_version_that_another_hub_gave_is_gone() -> None:
    hub = await hub_with_namespace()
    with pytest.raises(Gone, match="too large resource version"):
        hub.watch(CONFIG_MAP, resource_version="1000000")


@pytest.mark.virtual_time
async def test_a_quiet_watch_sends_bookmarks() -> None:
    hub = await hub_with_namespace()
    start = (await hub.list(CONFIG_MAP)).resource_version
    events = hub.watch(CONFIG_MAP, resource_version=start, timeout_seconds=150)
    loop = asyncio.get_running_loop()
    began = loop.time()
    times = [(event.type, round(loop.time() - began)) async for event in events]
    assert times == [("BOOKMARK", 60), ("BOOKMARK", 120), ("BOOKMARK", 150)]


@pytest.mark.virtual_time
async def test_a_bookmark_stands_for_changes_elsewhere() -> None:
    hub = await hub_with_namespace()
    start = (await hub.list(SECRET)).resource_version
    events = hub.watch(SECRET, resource_version=start, timeout_seconds=100)
    await hub.create(CONFIG_MAP, config_map("n"))
    bookmark = await anext(events)
    now = (await hub.list(SECRET)).resource_version
    assert bookmark.object["metadata"] == {"resourceVersion": now}
    assert int(now) > int(start)


async def test_watches_end_when_they_are_told_to() -> None:
    hub = await hub_with_namespace()
    start = (await hub.list(CONFIG_MAP)).resource_version
    events = hub.watch(CONFIG_MAP, resource_version=start, timeout_seconds=1000)
    seen = asyncio.ensure_future(_all(events))
    await asyncio.sleep(0)
    await hub.create(CONFIG_MAP, config_map("n"))
    hub.end_watches()
    assert [event.type for event in await seen] == ["ADDED"]


async def test_a_watch_ends_with_its_definition_after_the_last_deletion() -> None:
    hub = EmbeddedHub(crds=[gadget_definition()])
    created = await hub.create(GADGET, gadget("g"))
    version = created["metadata"]["resourceVersion"]
    events = hub.watch(GADGET, resource_version=version, timeout_seconds=1000)
    seen = asyncio.ensure_future(_all(events))
    await asyncio.sleep(0)
    await hub.delete(CUSTOM_RESOURCE_DEFINITION, GADGET.resource)
    assert [event.type for event in await seen] == ["DELETED"]
    await hub.create(CUSTOM_RESOURCE_DEFINITION, gadget_definition())
    with pytest.raises(Gone):
        hub.watch(GADGET, resource_version=version)


async def _all(events: AsyncIterator[WatchEvent]) -> list[WatchEvent]:
    return [event async for event in events]


async def test_the_same_clock_and_uids_make_the_same_hub() -> None:
    async def built() -> tuple[Any, ...]:
        numbers = count()
        hub = await hub_with_namespace(
            now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            new_uid=lambda: f"uid-{next(numbers)}",
        )
        obj = config_map("n", generateName="part-")
        del obj["metadata"]["name"]
        await hub.create(CONFIG_MAP, obj)
        return (await hub.list(CONFIG_MAP)).items

    first = await built()
    assert first == await built()
    assert first[0]["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"


async def test_a_generated_name_is_tried_again() -> None:
    numbers, uids = count(), deque[str]()
    hub = await hub_with_namespace(
        new_uid=lambda: uids.popleft() if uids else f"uid-{next(numbers)}"
    )
    obj = config_map("n", generateName="part-")
    del obj["metadata"]["name"]
    uids.append("same")
    first = await hub.create(CONFIG_MAP, obj)
    uids.extend(["same"] * 7)
    second = await hub.create(CONFIG_MAP, obj)
    assert first["metadata"]["name"] != second["metadata"]["name"]
    uids.extend(["same"] * 8)
    with pytest.raises(AlreadyExists, match="not able to generate a unique name"):
        await hub.create(CONFIG_MAP, obj)


async def test_what_is_not_served_says_what_is() -> None:
    with pytest.raises(NotFound, match=r"served are .*configmaps.*dynamicscorers"):
        await EmbeddedHub().list(Kind("a.example.com", "v1", "A", "as"))


async def test_a_definition_with_nonsense_is_refused_at_the_start() -> None:
    crd = widget_definition()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["code"]["pattern"] = "("
    with pytest.raises(Invalid, match="must be a valid regular expression"):
        EmbeddedHub(crds=[crd])
    del schema["properties"]["spec"]["properties"]["code"]["pattern"]
    schema["x-kubernetes-validations"] = [{"rule": "true", "messageExpression": "'no'"}]
    with pytest.raises(Invalid, match="evaluates no messageExpression"):
        EmbeddedHub(crds=[crd])
    crd["spec"]["colour"] = "red"
    with pytest.raises(BadRequest, match=r'unknown field "spec\.colour"'):
        EmbeddedHub(crds=[crd])
