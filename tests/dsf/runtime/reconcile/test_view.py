"""A view keeps only the parts that it reads, and reports only changes of them."""

import asyncio

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE
from dsf.kube.port import Object
from dsf.runtime.reconcile.reflector import Key, View


def colour(obj: Object) -> str:
    return str(obj["data"]["colour"])


async def put(hub: EmbeddedHub, **data: str) -> None:
    await hub.patch(CONFIG_MAP, "car", {"data": data}, "ns")


async def test_what_it_does_not_show_calls_nobody() -> None:
    hub = EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": "ns"}})
    car = {"metadata": {"name": "car", "namespace": "ns"}, "data": {"colour": "red"}}
    await hub.create(CONFIG_MAP, car)
    view = View[str](hub, CONFIG_MAP, "ns", read=colour)
    told: asyncio.Queue[Key] = asyncio.Queue()
    view.on_change(told.put_nowait)
    task = asyncio.create_task(view.run())
    try:
        assert await told.get() == ("ns", "car")
        assert view.items == {("ns", "car"): "red"}
        await put(hub, owner="x")
        await put(hub, colour="blue")
        await told.get()
        assert view.items == {("ns", "car"): "blue"}
        await hub.delete(CONFIG_MAP, "car", "ns")
        await told.get()
        assert (view.items, told.qsize()) == ({}, 0)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
