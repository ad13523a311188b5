"""The reflector on the embedded hub under schedules of faults, in virtual time."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsf.kube.changes import without_managed_fields
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Gone, KubeError, NotFound, ServerError, TooManyRequests, Unreachable
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE, Kind
from dsf.kube.port import Object, WatchEvent
from dsf.runtime.reconcile.reflector import Key, View
from dsf.sim.virtual_time import VirtualTimeLoop
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call


def config_map(name: str, value: int = 0) -> Object:
    metadata = {"name": name, "namespace": "ns"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"value": str(value)},
    }


async def new_hub(*names: str) -> EmbeddedHub:
    hub = EmbeddedHub()
    await hub.create(
        NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    )
    for name in names:
        await hub.create(CONFIG_MAP, config_map(name))
    return hub


class Copy:
    """A reflector that is checked at every change: what it loses has to be gone."""

    def __init__(self, kube: Faulty | Counting | EmbeddedHub) -> None:
        self.reflector = View(kube, CONFIG_MAP, "ns", read=without_managed_fields, draw=lambda: 0.0)
        self.gone: set[str] = set()
        self._uids: dict[Key, str] = {}
        self.reflector.on_change(self._check)

    async def shows(self, hub: EmbeddedHub) -> bool:
        page = await hub.list(CONFIG_MAP, "ns")
        uids = {item["metadata"]["name"]: item["data"] for item in page.items}
        return uids == {name: obj["data"] for (_, name), obj in self.reflector.items.items()}

    def _check(self, key: Key) -> None:
        obj = self.reflector.items.get(key)
        before = self._uids.pop(key, None)
        if obj is not None:
            self._uids[key] = obj["metadata"]["uid"]
        elif before is not None:
            assert before in self.gone, f"{key} was deleted from the copy only"


async def written(hub: EmbeddedHub, copy: Copy, name: str, *, delete: bool, value: int) -> None:
    try:
        obj = await hub.get(CONFIG_MAP, name, "ns")
    except NotFound:
        await hub.create(CONFIG_MAP, config_map(name, value))
        return
    if delete:
        await hub.delete(CONFIG_MAP, name, "ns")
        copy.gone.add(obj["metadata"]["uid"])
    else:
        await hub.patch(CONFIG_MAP, name, {"data": {"value": str(value)}}, "ns")


errors = st.sampled_from(
    [
        Unreachable("reset"),
        Gone("too old resource version"),
        ServerError("down"),
        TooManyRequests("busy", details={"retryAfterSeconds": 9}),
    ]
)
when: st.SearchStrategy[Literal["before", "after"]] = st.sampled_from(["before", "after"])
faults = st.lists(st.none() | st.builds(Fault, errors, when), max_size=12)
writes = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.booleans(), st.integers(0, 3)),
    max_size=12,
)


@settings(max_examples=40)
@given(faults=faults, writes=writes)
@pytest.mark.fire(
    "after faults of a watch the copy converges", "random faults and writes, in virtual time"
)
def test_after_any_faults_the_copy_converges(
    faults: list[Fault | None], writes: list[tuple[int, str, bool, int]]
) -> None:
    async def main() -> None:
        def schedule(call: Call) -> Fault | None:
            return faults[call.number - 1] if call.number <= len(faults) else None

        hub = await new_hub("a", "b")
        copy = Copy(Faulty(hub, schedule))
        task = asyncio.create_task(copy.reflector.run())
        for pause, name, delete, value in writes:
            await asyncio.sleep(pause)
            await written(hub, copy, name, delete=delete, value=value)
        await asyncio.sleep(15 * 12 + 30)
        assert await copy.shows(hub)
        assert not task.done()
        task.cancel()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", [Unreachable("refused"), ServerError("starting")])
async def test_half_a_minute_after_an_outage_of_a_minute_the_copy_has_converged(
    error: KubeError,
) -> None:
    loop = asyncio.get_running_loop()
    hub = await new_hub("goes", "stays")
    copy = Copy(Faulty(hub, lambda _: Fault(error) if 1 <= loop.time() < 61 else None))
    task = asyncio.create_task(copy.reflector.run())
    await asyncio.sleep(1)
    await written(hub, copy, "goes", delete=True, value=0)
    await asyncio.sleep(60)
    await written(hub, copy, "comes", delete=False, value=1)
    await asyncio.sleep(30)
    assert await copy.shows(hub)
    task.cancel()


@pytest.mark.virtual_time
async def test_a_quiet_collection_costs_one_watch_every_few_minutes() -> None:
    kube = Counting(await new_hub("a"))
    copy = Copy(kube)
    task = asyncio.create_task(copy.reflector.run())
    await asyncio.sleep(3600)
    assert kube.calls == {("list", "configmaps"): 1, ("watch", "configmaps"): 15}
    task.cancel()


class Closing(Counting):
    """Closes every watch at once, without an event and without an error."""

    async def watch(self, kind: Kind, *_: Any, **__: Any) -> AsyncGenerator[WatchEvent]:
        self._called("watch", kind)
        events: tuple[WatchEvent, ...] = ()
        for event in events:
            yield event


@pytest.mark.virtual_time
async def test_a_server_that_closes_every_watch_at_once_is_not_hammered() -> None:
    kube = Closing(await new_hub("a"))
    copy = Copy(kube)
    task = asyncio.create_task(copy.reflector.run())
    await asyncio.sleep(3600)
    assert kube.calls == {("list", "configmaps"): 1, ("watch", "configmaps"): 244}
    task.cancel()
