"""On a slow, busy or broken hub changes arrive later; their order stays, and what is told is true.

In virtual time. The hub is asked after every write of the controller.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from dsf.api.conditions import conditions_of, find, is_true
from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, TooManyRequests, Unreachable
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    EVENT,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
)
from dsf.kube.port import Kube, Object, WatchEvent
from tests.dsf.hub.builders import HUB, scoring_config
from tests.dsf.hub.test_run import add_cluster, add_namespace, fresh
from tests.dsf.hub.test_run_faults import CONFIG, add_scorer, controller
from tests.dsf.hub.test_run_reports import ADDON, publish
from tests.eventually import eventually
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import WRITES, Answer, Call, Wrapper

pytestmark = pytest.mark.virtual_time

CLUSTERS = [f"c{number:02}" for number in range(12)]
TERMINATING = "c03"


async def new_hub(clusters: Sequence[str] = CLUSTERS) -> EmbeddedHub:
    hub = EmbeddedHub()
    await add_namespace(hub, HUB)
    for name in clusters:
        await add_namespace(hub, name)
        await add_cluster(hub, name)
    await hub.create(DYNAMIC_SCORING_CONFIG, fresh(scoring_config()))
    await add_scorer(hub, "cpu", source={"type": "None"}, scoring=scoring(30))
    return hub


def scoring(interval: int) -> dict[str, Any]:
    return {"path": "/x", "params": {"name": "own", "interval": interval}}


async def set_interval(hub: EmbeddedHub, interval: int) -> None:
    await hub.patch(DYNAMIC_SCORER, "cpu", {"spec": {"scoring": scoring(interval)}}, HUB)


async def intervals(hub: EmbeddedHub) -> dict[str, int]:
    """Return the interval in the work of each cluster; 0 in one without the scorer."""
    found = {}
    for work in (await hub.list(MANIFEST_WORK)).items:
        summaries = json.loads(summaries_text(work) or "[]")
        found[work["metadata"]["namespace"]] = summaries[0]["scoringInterval"] if summaries else 0
    return found


def claims_all(scorer: Object) -> bool:
    """Tell whether a status says of the current spec that every cluster has it."""
    observed = (scorer.get("status") or {}).get("observedGeneration")
    return observed == scorer["metadata"]["generation"] and is_true(scorer, "Distributed")


class Watched(Wrapper):
    """Checks after every answered write that no cluster got an older interval, and the claims."""

    def __init__(self, inner: EmbeddedHub) -> None:
        super().__init__(inner)
        self._hub = inner
        self._before: dict[str, int] = {}
        self.wrong: list[str] = []

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        answer = await answering
        if call.verb not in WRITES:
            return answer
        found = await intervals(self._hub)
        fell = {name for name, old in self._before.items() if found.get(name, old) < old}
        if fell:
            self.wrong.append(f"{call}: {fell} got an older interval")
        self._before |= found
        scorer = await self._hub.get(DYNAMIC_SCORER, "cpu", HUB)
        wanted = scorer["spec"]["scoring"]["params"]["interval"]
        if call.kind == DYNAMIC_SCORER and claims_all(scorer) and set(found.values()) != {wanted}:
            self.wrong.append(f"{call}: claims {wanted} where there is {found}")
        return answer


class Slow(Wrapper):
    """Takes some seconds for each call, or for each write."""

    def __init__(self, inner: Kube, seconds: float, *, writes_only: bool = False) -> None:
        super().__init__(inner)
        self._seconds = seconds
        self._writes_only = writes_only

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        if call.verb in WRITES or not self._writes_only:
            try:
                await asyncio.sleep(self._seconds)
            except asyncio.CancelledError:
                answering.close()
                raise
        return await answering


class ShortWatches(Wrapper):
    """Cuts the connection of each watch after ten seconds."""

    async def watch(self, *args: Any, **options: Any) -> AsyncGenerator[WatchEvent]:
        end = asyncio.get_running_loop().time() + 10
        async with aclosing(super().watch(*args, **options)) as events:
            while True:
                try:
                    async with asyncio.timeout_at(end):
                        event = await anext(events, None)
                except TimeoutError:
                    raise Unreachable("the connection was cut") from None
                if event is None:
                    return
                yield event


def busy(call: Call) -> Fault | None:
    refused = call.verb in WRITES and call.number % 3 == 0
    error = TooManyRequests("busy", details={"retryAfterSeconds": 2})
    return Fault(error) if refused else None


def terminating(call: Call) -> Fault | None:
    refused = call.verb == "create" and call.namespace == TERMINATING
    message = f"unable to create new content in namespace {TERMINATING}: it is being terminated"
    return Fault(Forbidden(message)) if refused else None


TROUBLES: dict[str, Callable[[Kube], Kube]] = {
    "2 s for a write": lambda hub: Slow(hub, 2.0, writes_only=True),
    "50 ms of latency": lambda hub: Slow(hub, 0.05),
    "429 with Retry-After": lambda hub: Faulty(hub, busy),
    "watches of 10 s": ShortWatches,
    "watches of 10 s and 2 s for a write": lambda hub: ShortWatches(Slow(hub, 2.0)),
}


async def is_ready(hub: EmbeddedHub, interval: int) -> bool:
    scorer = await hub.get(DYNAMIC_SCORER, "cpu", HUB)
    config = await hub.get(DYNAMIC_SCORING_CONFIG, CONFIG, HUB)
    told = all(is_true(each, "Ready") for each in (scorer, config))
    everywhere = set((await intervals(hub)).values()) == {interval}
    return everywhere and told and claims_all(scorer)


@pytest.mark.fire(
    "after faults of the API server the hub is as without them",
    "slow writes, latency, 429 with Retry-After and watches that are cut: order and statuses",
)
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_changes_keep_their_order_and_statuses_are_true(trouble: str) -> None:
    hub = await new_hub()
    watched = Watched(hub)
    async with controller(TROUBLES[trouble](watched)):
        await eventually(lambda: is_ready(hub, 30), seconds=600)
        for interval in (40, 50, 60):
            await set_interval(hub, interval)
            # The next one comes while this one is under way.
            await asyncio.sleep(3.1)
        await eventually(lambda: is_ready(hub, 60), seconds=600)
    assert watched.wrong == []


async def test_a_namespace_that_is_terminating_holds_up_no_other() -> None:
    hub = await new_hub()
    async with controller(Faulty(hub, terminating)):
        await eventually(lambda: are_elsewhere(hub, 30), seconds=60)
        refused = await eventually(lambda: refusal(hub), seconds=60)
        assert TERMINATING in refused
        assert "terminated" in refused
        assert not claims_all(await hub.get(DYNAMIC_SCORER, "cpu", HUB))
        await set_interval(hub, 40)
        await eventually(lambda: are_elsewhere(hub, 40), seconds=60)
        await hub.delete(MANAGED_CLUSTER_ADD_ON, ADDON, TERMINATING)
        await hub.delete(MANAGED_CLUSTER, TERMINATING)
        await eventually(lambda: is_ready(hub, 40), seconds=60)


async def are_elsewhere(hub: EmbeddedHub, interval: int) -> bool:
    found = await intervals(hub)
    return found == {name: interval for name in CLUSTERS if name != TERMINATING}


async def refusal(hub: EmbeddedHub) -> str:
    config = await hub.get(DYNAMIC_SCORING_CONFIG, CONFIG, HUB)
    ready = find(conditions_of(config), "Ready") or {}
    return str(ready["message"]) if ready.get("reason") == "WriteRefused" else ""


async def test_a_change_does_not_wait_until_an_earlier_one_is_everywhere() -> None:
    clusters = [f"c{number:04}" for number in range(2500)]
    hub = await new_hub(clusters)
    counting = Counting(Slow(hub, 0.05, writes_only=True))
    async with controller(counting):
        await asyncio.sleep(60)
        before = Counter(counting.calls)
        for interval in (40, 50):
            await set_interval(hub, interval)
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        cost = Counter(counting.calls) - before
        assert await is_ready(hub, 50)
        assert cost["patch", MANIFEST_WORK.resource] <= len(clusters) + 1000


async def test_changes_that_never_end_reach_every_cluster() -> None:
    clusters = [f"c{number:04}" for number in range(2500)]
    hub = await new_hub(clusters)
    async with controller(Slow(hub, 0.05, writes_only=True)):
        await asyncio.sleep(60)
        for interval in range(100, 160):
            await set_interval(hub, interval)
            await asyncio.sleep(0.5)
        assert min((await intervals(hub)).values()) >= 100


class Trickling(Wrapper):
    """Its watches show each event some time after the one before."""

    async def watch(self, *args: Any, **options: Any) -> AsyncGenerator[WatchEvent]:
        async for event in super().watch(*args, **options):
            await asyncio.sleep(0.02)
            yield event


async def test_a_distribution_costs_few_statuses_and_events() -> None:
    """Agents report within 15 s, one after the other."""
    hub = await new_hub()
    await hub.delete(DYNAMIC_SCORER, "cpu", HUB)
    counting = Counting(Trickling(Slow(hub, 0.005)))
    async with controller(counting):
        await asyncio.sleep(60)
        before = Counter(counting.calls)
        await add_scorer(hub, "cpu", source={"type": "None"}, scoring=scoring(30))
        for name in CLUSTERS:
            await asyncio.sleep(1.25)
            await publish(hub, name, "own")
        await asyncio.sleep(10)
        cost = Counter(counting.calls) - before
        assert cost["patch", MANIFEST_WORK.resource] == len(CLUSTERS)
        # What is distributed; that it is; and the agents' reports, every five seconds.
        assert cost["patch", DYNAMIC_SCORER.resource] <= 2 + 4
        assert cost["patch", DYNAMIC_SCORING_CONFIG.resource] == 1
        assert cost["create", EVENT.resource] + cost["patch", EVENT.resource] == 1
        scorer = await hub.get(DYNAMIC_SCORER, "cpu", HUB)
        assert scorer["status"]["clusters"]["scoring"] == len(CLUSTERS)

        before = Counter(counting.calls)
        for interval in (40, 50, 60):
            await set_interval(hub, interval)
            await eventually(lambda wanted=interval: is_ready(hub, wanted), seconds=60)
            await asyncio.sleep(10)
        await asyncio.sleep(60)
        cost = Counter(counting.calls) - before
        assert cost["patch", MANIFEST_WORK.resource] == 3 * len(CLUSTERS)
        assert cost["patch", DYNAMIC_SCORER.resource] == 3 * 2
        assert cost["patch", DYNAMIC_SCORING_CONFIG.resource] == 0
        # Three times the same within a minute.
        assert cost["create", EVENT.resource] + cost["patch", EVENT.resource] <= 1
