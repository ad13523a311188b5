"""Random histories: a client that lists and watches knows the stored objects."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import ApiError
from dsf.kube.kinds import NAMESPACE
from dsf.kube.port import Object
from tests.dsf.kube.contract.objects import WIDGET, widget, widget_definition

KEEP = "contract.example.com/keep"
Step = tuple[str, str, str, int]
View = dict[tuple[str, str], Object]

steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "label", "unlabel", "spec", "status", "delete", "free"]),
        st.sampled_from(["n1", "n2"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 2),
    ),
    max_size=12,
)


async def hub_of_widgets(**options: Any) -> EmbeddedHub:
    hub = EmbeddedHub(crds=[widget_definition()], **options)
    for name in ("n1", "n2"):
        await hub.create(NAMESPACE, {"metadata": {"name": name}})
    return hub


async def take(hub: EmbeddedHub, step: Step) -> None:
    """Take a step; what the server refuses changes nothing."""
    action, namespace, name, number = step
    try:
        await _calls(hub, namespace, name, number)[action]()
    except ApiError:
        return


def _calls(hub: EmbeddedHub, namespace: str, name: str, number: int) -> dict[str, Any]:
    def patch(body: Object, **more: Any) -> Coroutine[Any, Any, Object]:
        return hub.patch(WIDGET, name, body, namespace, **more)

    obj = widget(namespace, name, size=number)
    if number == 2:
        obj["metadata"] |= {"finalizers": [KEEP], "labels": {"on": "yes"}}
    return {
        "create": lambda: hub.create(WIDGET, obj),
        "label": lambda: patch({"metadata": {"labels": {"on": "yes"}}}),
        "unlabel": lambda: patch({"metadata": {"labels": None}}),
        "spec": lambda: patch({"spec": {"size": number}}),
        "status": lambda: patch({"status": {"seen": number}}, subresource="status"),
        "delete": lambda: hub.delete(WIDGET, name, namespace),
        "free": lambda: patch({"metadata": {"finalizers": None}}),
    }


async def listed(hub: EmbeddedHub, **query: Any) -> tuple[View, str]:
    page = await hub.list(WIDGET, **query)
    return {_key(item): item for item in page.items}, page.resource_version


async def replayed(hub: EmbeddedHub, view: View, version: str, **query: Any) -> View:
    """Return what a client knows that listed once and has watched since."""
    known, last = dict(view), int(version)
    events = hub.watch(WIDGET, resource_version=version, timeout_seconds=0, **query)
    async for event in events:
        assert int(event.object["metadata"]["resourceVersion"]) >= last
        last = int(event.object["metadata"]["resourceVersion"])
        key = _key(event.object) if event.type != "BOOKMARK" else ("", "")
        match event.type:
            case "ADDED":
                assert key not in known
                known[key] = event.object
            case "MODIFIED":
                assert known[key] != event.object
                known[key] = event.object
            case "DELETED":
                del known[key]
    return known


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


@given(history=steps)
def test_a_list_and_the_events_since_equal_a_list(history: list[Step]) -> None:
    async def run() -> None:
        hub = await hub_of_widgets()
        for query in ({}, {"namespace": "n1"}, {"labels": "on=yes"}, {"fields": "metadata.name=a"}):
            moments = [await listed(hub, **query)]
            for step in history:
                await take(hub, step)
                moments.append(await listed(hub, **query))
            for view, version in moments:
                assert await replayed(hub, view, version, **query) == moments[-1][0]

    asyncio.run(run())


@given(history=steps, later=steps, limit=st.integers(1, 3))
def test_the_pages_of_a_list_show_the_moment_of_the_first(
    history: list[Step], later: list[Step], limit: int
) -> None:
    async def run() -> None:
        hub = await hub_of_widgets()
        for step in history:
            await take(hub, step)
        whole = await hub.list(WIDGET)
        page = await hub.list(WIDGET, limit=limit)
        items = [*page.items]
        remaining = iter(later)
        while page.continue_token:
            assert len(page.items) == limit
            for step in remaining:
                await take(hub, step)
                break
            page = await hub.list(WIDGET, limit=limit, continue_token=page.continue_token)
            assert page.resource_version == whole.resource_version
            items += page.items
        assert tuple(items) == whole.items

    asyncio.run(run())


@given(history=steps)
def test_versions_uids_and_generations_only_grow(history: list[Step]) -> None:
    async def run() -> None:
        hub = await hub_of_widgets()
        before: View = {}
        for step in history:
            await take(hub, step)
            after, _ = await listed(hub)
            for key in before.keys() & after.keys():
                old, new = before[key]["metadata"], after[key]["metadata"]
                if old["uid"] != new["uid"]:
                    continue
                assert int(new["resourceVersion"]) >= int(old["resourceVersion"])
                same_content = before[key]["spec"] == after[key]["spec"]
                was_marked = ("deletionTimestamp" in new) != ("deletionTimestamp" in old)
                assert (new["generation"] == old["generation"]) is (same_content and not was_marked)
            before = after

    asyncio.run(run())
