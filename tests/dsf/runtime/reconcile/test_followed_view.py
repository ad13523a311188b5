"""Many readers who follow single objects by one watch, on the embedded hub."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Gone, KubeError, Unreachable
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE
from dsf.kube.port import Object
from dsf.runtime.reconcile.followed_view import FollowedView
from dsf.runtime.reconcile.reflector import is_newer
from tests.eventually import eventually
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.open_watches import OpenWatches
from tests.kube_wrappers.wrapper import Call

READERS = 50
RESOURCE = CONFIG_MAP.resource


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch again at once after a failure."""
    monkeypatch.setattr("dsf.runtime.backoff.Backoff.delay", lambda *_: 0.0)


@dataclass
class Reader:
    """Follows an object, and keeps what it is told."""

    told: list[str] = field(default_factory=list)

    async def follow(self, view: FollowedView[str], obj: Object) -> None:
        async with aclosing(view.follow(obj)) as values:
            async for value in values:
                self.told.append(value)

    async def until(self, value: str) -> None:
        async def was_told() -> bool:
            return self.told[-1:] == [value]

        await eventually(was_told)


async def value_of(obj: Object) -> str | None:
    value: str | None = (obj.get("data") or {}).get("value")
    return value


async def hub_with(name: str = "a") -> tuple[EmbeddedHub, Object]:
    hub = EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": "ns"}})
    return hub, await created(hub, name)


async def created(hub: EmbeddedHub, name: str = "a", value: str = "0") -> Object:
    obj: dict[str, Any] = {"metadata": {"name": name, "namespace": "ns"}, "data": {"value": value}}
    return await hub.create(CONFIG_MAP, obj)


async def put(hub: EmbeddedHub, value: str | None, name: str = "a") -> Object:
    return await hub.patch(CONFIG_MAP, name, {"data": {"value": value}}, "ns")


async def test_readers_share_one_watch_which_ends_with_the_last_of_them() -> None:
    hub, obj = await hub_with()
    kube = OpenWatches(hub)
    view = FollowedView(kube, CONFIG_MAP, read=value_of)
    readers = [Reader() for _ in range(READERS)]
    async with asyncio.TaskGroup() as tasks:
        others = tasks.create_task(Reader().follow(view, await created(hub, "b")))
        for reader in readers:
            tasks.create_task(reader.follow(view, obj))
        for value in ("1", "2"):
            await put(hub, value)
            for reader in readers:
                await reader.until(value)
        await hub.delete(CONFIG_MAP, "a", "ns")
        others.cancel()
    assert {tuple(reader.told) for reader in readers} == {("0", "1", "2")}
    assert (kube.most[RESOURCE], kube.open[RESOURCE]) == (1, 0)


async def test_an_object_in_which_there_is_nothing_to_follow_ends_the_reader() -> None:
    hub, obj = await hub_with()
    view, reader = FollowedView(hub, CONFIG_MAP, read=value_of), Reader()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reader.follow(view, obj))
        await reader.until("0")
        await put(hub, None)
    assert reader.told == ["0"]


async def test_a_slow_reader_gets_the_newest_version_and_none_is_kept_for_it() -> None:
    hub, obj = await hub_with()
    view = FollowedView(hub, CONFIG_MAP, read=value_of)
    quick = Reader()
    async with asyncio.TaskGroup() as tasks, aclosing(view.follow(obj)) as slow:
        assert await anext(slow) == "0"
        following = tasks.create_task(quick.follow(view, obj))
        for value in map(str, range(1, 10)):
            await put(hub, value)
            await quick.until(value)
        assert await anext(slow) == "9"
        following.cancel()
    assert quick.told == list(map(str, range(10)))


@pytest.mark.parametrize("error", [Gone("too old"), Unreachable("restarting")])
async def test_a_watch_that_breaks_goes_on_for_all(error: KubeError) -> None:
    hub, obj = await hub_with()
    broken = 0

    def breaks_at_each_event(call: Call) -> Fault | None:
        nonlocal broken
        if call.verb != "watch" or broken == 3:
            return None
        broken += 1
        return Fault(error, "after")

    view = FollowedView(Faulty(hub, breaks_at_each_event), CONFIG_MAP, read=value_of)
    readers = [Reader() for _ in range(READERS)]
    async with asyncio.TaskGroup() as tasks:
        for reader in readers:
            tasks.create_task(reader.follow(view, obj))
        for value in ("1", "2", "3", "4"):
            await put(hub, value)
            for reader in readers:
                await reader.until(value)
        await hub.delete(CONFIG_MAP, "a", "ns")
    assert broken == 3
    assert {reader.told[-1] for reader in readers} == {"4"}


async def test_what_changes_before_the_watch_begins_is_not_missed() -> None:
    """The watch is there already, and has seen a version that nobody followed then."""
    hub, old = await hub_with()
    other = await created(hub, "b")
    view = FollowedView(hub, CONFIG_MAP, read=value_of)
    first, late = Reader(), Reader()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(first.follow(view, other))
        await put(hub, "1")
        await put(hub, "seen", "b")
        await first.until("seen")
        tasks.create_task(late.follow(view, old))
        await late.until("1")
        assert late.told == ["0", "1"]
        await hub.delete(CONFIG_MAP, "a", "ns")
        following.cancel()


async def test_what_is_gone_before_the_watch_begins_ends_the_reader() -> None:
    hub, obj = await hub_with()
    await hub.delete(CONFIG_MAP, "a", "ns")
    reader = Reader()
    await reader.follow(FollowedView(hub, CONFIG_MAP, read=value_of), obj)
    assert reader.told == ["0"]


async def test_a_watch_that_lags_behind_tells_nothing_that_is_older() -> None:
    hub, old = await hub_with()
    held, released = asyncio.Event(), asyncio.Event()

    class Lags(OpenWatches):
        async def list(self, *args: Any, **options: Any) -> Any:
            page = await super().list(*args, **options)
            held.set()
            await released.wait()
            return page

    view = FollowedView(Lags(hub), CONFIG_MAP, read=value_of)
    early, reader = Reader(), Reader()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(early.follow(view, old))
        await held.wait()
        tasks.create_task(reader.follow(view, await put(hub, "1")))
        await reader.until("1")
        released.set()
        await early.until("1")
        await put(hub, "2")
        await reader.until("2")
        await hub.delete(CONFIG_MAP, "a", "ns")
    assert reader.told == ["1", "2"]


def test_versions_are_compared_as_numbers() -> None:
    assert is_newer("10", "9")
    assert not is_newer("9", "10")
    assert not is_newer("9", "9")
    assert is_newer("b", "a")
