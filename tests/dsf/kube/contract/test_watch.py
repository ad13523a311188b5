"""Watching: every change once, in order, without a gap."""

from contextlib import aclosing

import pytest

from dsf.kube.errors import ApiError, BadRequest, NotFound
from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, Kind
from dsf.kube.port import Kube, WatchEvent
from tests.dsf.kube.contract.objects import WIDGET, config_map, scorer, widget

Seen = list[tuple[str, str]]


async def changes(
    kube: Kube, kind: Kind, namespace: str, version: str, count: int
) -> list[WatchEvent]:
    """Return the first changes after a version."""
    found: list[WatchEvent] = []
    async with aclosing(  # type: ignore[type-var]  # the port promises an AsyncIterator
        kube.watch(kind, namespace, resource_version=version, timeout_seconds=30)
    ) as events:
        async for event in events:
            if event.type != "BOOKMARK":
                found.append(event)
            if len(found) == count:
                break
    return found


def seen(events: list[WatchEvent]) -> Seen:
    return [(event.type, event.object["metadata"]["name"]) for event in events]


async def version_of(kube: Kube, kind: Kind, namespace: str) -> str:
    return (await kube.list(kind, namespace)).resource_version


async def test_changes_come_in_order(kube: Kube, namespace: str) -> None:
    start = await version_of(kube, WIDGET, namespace)
    await kube.create(WIDGET, widget(namespace, "a"))
    await kube.create(WIDGET, widget(namespace, "b"))
    await kube.patch(WIDGET, "a", {"spec": {"size": 1}}, namespace)
    await kube.delete(WIDGET, "b", namespace)
    events = await changes(kube, WIDGET, namespace, start, 4)
    assert seen(events) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


async def test_a_watch_resumes_where_it_ended(kube: Kube, namespace: str) -> None:
    start = await version_of(kube, WIDGET, namespace)
    for name in "abc":
        await kube.create(WIDGET, widget(namespace, name))
    (first,) = await changes(kube, WIDGET, namespace, start, 1)
    last_seen = first.object["metadata"]["resourceVersion"]
    await kube.delete(WIDGET, "a", namespace)
    rest = await changes(kube, WIDGET, namespace, last_seen, 3)
    assert seen(rest) == [("ADDED", "b"), ("ADDED", "c"), ("DELETED", "a")]


async def test_an_event_carries_the_whole_object(kube: Kube, namespace: str) -> None:
    start = await version_of(kube, WIDGET, namespace)
    created = await kube.create(WIDGET, widget(namespace, size=3))
    (event,) = await changes(kube, WIDGET, namespace, start, 1)
    assert event == WatchEvent("ADDED", created)


async def test_a_deletion_carries_the_last_state(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace, size=3))
    await kube.delete(WIDGET, "first", namespace)
    version = created["metadata"]["resourceVersion"]
    (event,) = await changes(kube, WIDGET, namespace, version, 1)
    assert event.type == "DELETED"
    assert event.object["spec"] == created["spec"]
    assert int(event.object["metadata"]["resourceVersion"]) > int(version)


async def test_a_write_that_changes_nothing_is_no_event(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace, "a"))
    await kube.update(WIDGET, created)
    await kube.create(WIDGET, widget(namespace, "b"))
    (event,) = await changes(kube, WIDGET, namespace, created["metadata"]["resourceVersion"], 1)
    assert seen([event]) == [("ADDED", "b")]


async def test_marking_and_finalizing_are_two_changes(kube: Kube, namespace: str) -> None:
    obj = widget(namespace)
    obj["metadata"]["finalizers"] = ["contract.example.com/keep"]
    created = await kube.create(WIDGET, obj)
    await kube.delete(WIDGET, "first", namespace)
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)
    events = await changes(kube, WIDGET, namespace, created["metadata"]["resourceVersion"], 2)
    assert [event.type for event in events] == ["MODIFIED", "DELETED"]
    assert "deletionTimestamp" in events[0].object["metadata"]


async def test_a_status_write_is_a_change(kube: Kube, namespace: str) -> None:
    created = await kube.create(DYNAMIC_SCORER, scorer(namespace))
    await kube.patch(
        DYNAMIC_SCORER,
        "latency",
        {"status": {"healthStatus": "Active"}},
        namespace,
        subresource="status",
    )
    version = created["metadata"]["resourceVersion"]
    (event,) = await changes(kube, DYNAMIC_SCORER, namespace, version, 1)
    assert event.object["status"] == {"healthStatus": "Active"}


async def test_other_namespaces_are_not_seen(kube: Kube, namespace: str) -> None:
    start = await version_of(kube, CONFIG_MAP, namespace)
    name = f"of-{namespace}"
    await kube.create(CONFIG_MAP, config_map("default", name))
    await kube.create(CONFIG_MAP, config_map(namespace, "mine"))
    events = await changes(kube, CONFIG_MAP, namespace, start, 1)
    assert ("ADDED", name) not in seen(events)
    await kube.delete(CONFIG_MAP, name, "default")


async def test_a_selecting_watch_shows_objects_come_and_go(kube: Kube, namespace: str) -> None:
    start = await version_of(kube, WIDGET, namespace)
    label = {"metadata": {"labels": {"on": "yes"}}}
    await kube.create(WIDGET, widget(namespace, "a"))
    await kube.patch(WIDGET, "a", label, namespace)
    await kube.patch(WIDGET, "a", {"spec": {"size": 1}}, namespace)
    await kube.patch(WIDGET, "a", {"metadata": {"labels": None}}, namespace)
    await kube.patch(WIDGET, "a", {"spec": {"size": 2}}, namespace)
    await kube.patch(WIDGET, "a", label, namespace)
    await kube.delete(WIDGET, "a", namespace)
    found: list[WatchEvent] = []
    events = kube.watch(
        WIDGET, namespace, labels="on=yes", resource_version=start, timeout_seconds=30
    )
    async for event in events:
        if event.type != "BOOKMARK":
            found.append(event)
        if len(found) == 5:
            break
    assert [event.type for event in found] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert found[2].object["spec"]["size"] == 1
    assert found[2].object["metadata"]["labels"] == {"on": "yes"}


async def test_a_watch_of_one_name(kube: Kube, namespace: str) -> None:
    start = await version_of(kube, WIDGET, namespace)
    await kube.create(WIDGET, widget(namespace, "a"))
    await kube.create(WIDGET, widget(namespace, "b"))
    events = kube.watch(
        WIDGET, namespace, fields="metadata.name=b", resource_version=start, timeout_seconds=30
    )
    async for event in events:
        if event.type != "BOOKMARK":
            assert seen([event]) == [("ADDED", "b")]
            break


async def test_from_version_zero_a_watch_begins_with_what_exists(
    kube: Kube, namespace: str
) -> None:
    await kube.create(WIDGET, widget(namespace, "a"))
    await kube.create(WIDGET, widget(namespace, "b"))
    events = await changes(kube, WIDGET, namespace, "0", 2)
    assert sorted(seen(events)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_ends_after_its_time(kube: Kube, namespace: str) -> None:
    start = await version_of(kube, WIDGET, namespace)
    events = kube.watch(WIDGET, namespace, resource_version=start, timeout_seconds=1)
    assert [event async for event in events if event.type != "BOOKMARK"] == []


async def test_a_malformed_version_is_refused(kube: Kube, namespace: str) -> None:
    with pytest.raises(ApiError, match="abc"):
        await changes(kube, WIDGET, namespace, "abc", 1)


async def test_a_malformed_selector_is_refused(kube: Kube, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await anext(kube.watch(WIDGET, namespace, labels="a b", resource_version="0"))


async def test_what_is_not_served_can_not_be_watched(kube: Kube, namespace: str) -> None:
    unknown = Kind("nobody.example.com", "v1", "Thing", "things")
    with pytest.raises(NotFound):
        await changes(kube, unknown, namespace, "0", 1)
