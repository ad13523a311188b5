"""Events on an embedded hub in virtual time: counted, limited, and without delay for others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from dsf.api.untrusted_text import UntrustedText
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, KubeError, TooManyRequests, Unreachable
from dsf.kube.kinds import CONFIG_MAP, EVENT, NAMESPACE
from dsf.kube.port import Kube, Object
from dsf.runtime.events import ATTEMPTS, BURST, MOST_WAITING, EventRecorder
from tests.house.marker import MARKER, WORDS, raw, unquoted
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty, at

pytestmark = pytest.mark.virtual_time


async def new_hub() -> tuple[EmbeddedHub, Object]:
    hub = EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": "ns"}})
    obj = await hub.create(CONFIG_MAP, {"metadata": {"name": "cpu", "namespace": "ns"}})
    return hub, obj


@asynccontextmanager
async def recording(kube: Kube) -> AsyncIterator[EventRecorder]:
    loop = asyncio.get_running_loop()
    recorder = EventRecorder(
        kube,
        "controller",
        now=lambda: datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=loop.time()),
        registry=CollectorRegistry(),
    )
    task = asyncio.create_task(recorder.run())
    yield recorder
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def told(hub: EmbeddedHub) -> list[tuple[str, str, int]]:
    events = (await hub.list(EVENT, "ns")).items
    return sorted((event["reason"], event["message"], event["count"]) for event in events)


async def test_what_repeats_is_counted_also_by_the_next_process() -> None:
    hub, obj = await new_hub()
    for _ in range(2):
        async with recording(hub) as recorder:
            for _ in range(3):
                recorder.record(CONFIG_MAP, obj, "Warning", "NotJSON", "GET x: no JSON")
            recorder.record(CONFIG_MAP, obj, "Normal", "Synced", "well")
            await asyncio.sleep(60)
    assert await told(hub) == [("NotJSON", "GET x: no JSON", 6), ("Synced", "well", 2)]
    event = (await hub.list(EVENT, "ns")).items[0]
    assert event["involvedObject"]["uid"] == obj["metadata"]["uid"]
    assert event["firstTimestamp"] < event["lastTimestamp"]
    assert event["source"] == {"component": "controller"}


async def test_repetitions_are_sent_together_once_a_minute() -> None:
    hub, obj = await new_hub()
    counting = Counting(hub)
    async with recording(counting) as recorder:
        for _ in range(90):
            recorder.record(CONFIG_MAP, obj, "Normal", "Distributed", "everywhere")
            await asyncio.sleep(2)
        await asyncio.sleep(60)
    assert await told(hub) == [("Distributed", "everywhere", 90)]
    assert counting.calls == {("create", EVENT.resource): 1, ("patch", EVENT.resource): 3}


async def test_an_event_whose_write_was_cut_off_is_told_by_the_next_run() -> None:
    hub, obj = await new_hub()
    recorder = EventRecorder(
        Faulty(hub, at({1: Fault(Unreachable("gone"))})), "controller", registry=CollectorRegistry()
    )
    for seconds in (0.5, 1.0):
        recorder.record(CONFIG_MAP, obj, "Normal", "Synced", "well")
        run = asyncio.create_task(recorder.run())
        await asyncio.sleep(seconds)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    assert await told(hub) == [("Synced", "well", 1)]


async def test_one_object_cannot_flood_the_others_out() -> None:
    hub, obj = await new_hub()
    other = await hub.create(CONFIG_MAP, {"metadata": {"name": "other", "namespace": "ns"}})
    async with recording(hub) as recorder:
        for number in range(500):
            recorder.record(CONFIG_MAP, obj, "Warning", "Flood", str(number))
        recorder.record(CONFIG_MAP, other, "Normal", "Other", "heard")
        await asyncio.sleep(1)
        assert len(await told(hub)) == BURST + 1
        await asyncio.sleep(301)
        for number in range(500):
            recorder.record(CONFIG_MAP, obj, "Warning", "Flood", f"later {number}")
        await asyncio.sleep(1)
        assert len(await told(hub)) == BURST + 2


ERRORS = [Unreachable("gone"), TooManyRequests("busy", details={"retryAfterSeconds": 20})]


@pytest.mark.parametrize("error", ERRORS)
async def test_a_passing_error_is_waited_out(error: KubeError) -> None:
    hub, obj = await new_hub()
    kube = Faulty(hub, at({1: Fault(error), 2: Fault(error)}))
    async with recording(kube) as recorder:
        recorder.record(CONFIG_MAP, obj, "Normal", "Synced", "well")
        await asyncio.sleep(120)
    assert await told(hub) == [("Synced", "well", 1)]


async def test_an_answer_that_was_lost_is_counted_at_most_once_more() -> None:
    hub, obj = await new_hub()
    kube = Faulty(hub, at({1: Fault(Unreachable("lost"), "after")}))
    async with recording(kube) as recorder:
        recorder.record(CONFIG_MAP, obj, "Normal", "Synced", "well")
        await asyncio.sleep(120)
    assert await told(hub) == [("Synced", "well", 2)]


async def test_missing_rights_cost_a_few_calls_and_nothing_else() -> None:
    hub, obj = await new_hub()
    counting = Counting(Faulty(hub, lambda _: Fault(Forbidden("no"))))
    async with recording(counting) as recorder:
        recorder.record(CONFIG_MAP, obj, "Normal", "Synced", "well")
        await asyncio.sleep(600)
    assert counting.writes == ATTEMPTS


async def test_an_outage_keeps_only_so_many() -> None:
    hub, _ = await new_hub()
    objects = [
        await hub.create(CONFIG_MAP, {"metadata": {"name": f"n{number}", "namespace": "ns"}})
        for number in range(MOST_WAITING + 10)
    ]
    counting = Counting(Faulty(hub, lambda _: Fault(Unreachable("gone"))))
    async with recording(counting) as recorder:
        for obj in objects:
            recorder.record(CONFIG_MAP, obj, "Normal", "Synced", "well")
        await asyncio.sleep(24 * 3600)
    assert counting.writes == ATTEMPTS * MOST_WAITING
    assert await told(hub) == []


async def test_text_of_others_is_quoted() -> None:
    hub, obj = await new_hub()
    async with recording(hub) as recorder:
        recorder.record(CONFIG_MAP, obj, "Warning", "Refused", UntrustedText(MARKER))
        recorder.record(CONFIG_MAP, obj, "Warning", "Refused", UntrustedText(MARKER).strip()[1:])
        await asyncio.sleep(1)
    messages = [message for _, message, _ in await told(hub)]
    assert len(messages) == 2
    assert not any(unquoted(message, WORDS[1:]) or raw(message) for message in messages)


async def test_tokens_are_taken_out() -> None:
    hub, obj = await new_hub()
    async with recording(hub) as recorder:
        message = "refused: Authorization: Bearer canary-canary"
        recorder.record(CONFIG_MAP, obj, "Warning", "Refused", message)
        await asyncio.sleep(1)
    [(_, message, _)] = await told(hub)
    assert "canary" not in message
