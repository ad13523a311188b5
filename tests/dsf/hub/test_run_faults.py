"""After faults between the controller and its API server, the hub is as users want it.

In virtual time. The scorers are Internal and nothing listens at their address, so the hub assumes
an API that only managed clusters can reach.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.hub.run import HubController, HubOptions
from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Conflict, Gone, KubeError, ServerError, TooManyRequests, Unreachable
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    EVENT,
    LEASE,
    MANIFEST_WORK,
    SECRET,
    Kind,
)
from dsf.kube.port import Kube, WatchEvent
from dsf.runtime.leader_election import LeaderElector
from dsf.runtime.lease import LeaderElectionConfig
from dsf.sim.virtual_time import VirtualTimeLoop
from tests.dsf.hub.builders import HUB, scorer, scoring_config
from tests.dsf.hub.test_run import add_cluster, add_namespace, end_state, fresh
from tests.dsf.hub.test_secrets_controller import auth, in_base64, secret
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import WRITES, Answer, Call, Wrapper

NOBODY = "http://127.0.0.1:1/config"
CONFIG = "dynamic-scoring-config"
CONVERGED_SECONDS = 60.0
QUIET_SECONDS = 120.0
BACK_SECONDS = 5.0

pytestmark = pytest.mark.virtual_time


async def new_hub() -> EmbeddedHub:
    """A hub with two clusters, an empty config, a scorer with a token, and one without."""
    hub = EmbeddedHub()
    await add_namespace(hub, HUB)
    for name in ("c1", "c2"):
        await add_namespace(hub, name)
        await add_cluster(hub, name)
    await hub.create(SECRET, secret(key="first"))
    await hub.create(DYNAMIC_SCORING_CONFIG, fresh(scoring_config()))
    await add_scorer(hub, "guarded", **auth())
    plain = {"scoring": {"path": "/x", "params": {"name": "plain", "interval": 30}}}
    await add_scorer(hub, "plain", source={"type": "None"}, **plain)
    return hub


async def add_scorer(hub: EmbeddedHub, name: str, **spec: Any) -> None:
    made = scorer(name, url=NOBODY, mode="None", location="Internal", **spec)
    await hub.create(DYNAMIC_SCORER, fresh(made))


async def change(hub: EmbeddedHub) -> None:
    """Change what users can change: a mask, a scorer gone, a scorer changed, a token rotated."""
    masks = [{"clusterName": "c1", "scoreName": "own"}]
    await hub.patch(DYNAMIC_SCORING_CONFIG, CONFIG, {"spec": {"masks": masks}}, HUB)
    await hub.delete(DYNAMIC_SCORER, "plain", HUB)
    params = {"name": "own", "interval": 60}
    await hub.patch(DYNAMIC_SCORER, "guarded", {"spec": {"scoring": {"params": params}}}, HUB)
    await hub.patch(SECRET, "token", {"data": {"key": in_base64("second")}}, HUB)


@dataclass
class WallClock:
    """Shows the loop's time, and `ahead` of it."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        passed = timedelta(seconds=asyncio.get_running_loop().time())
        return datetime(2026, 11, 20, tzinfo=UTC) + passed + self.ahead


def start(
    kube: Kube, identity: str = "a", now: Callable[[], datetime] | None = None
) -> asyncio.Task[None]:
    """Start a controller as its command does: it leads first."""
    registry, now = CollectorRegistry(), now or WallClock()
    options = HubOptions(distribute_secrets=True)
    hub = HubController(kube, options, now=now, draw=lambda: 0.5, registry=registry)
    candidacy = LeaderElectionConfig("dynamic-scoring-controller", HUB, identity)
    elector = LeaderElector(kube, candidacy, now=now, draw=lambda: 0.5, registry=registry)
    return asyncio.create_task(hub.run(elector.run))


@asynccontextmanager
async def controller(kube: Kube, now: Callable[[], datetime] | None = None) -> AsyncIterator[None]:
    task = start(kube, now=now)
    try:
        yield
    finally:
        await stopped(task)
    assert task.cancelled(), task.exception()


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def without_faults() -> dict[str, Any]:
    """Return the end state where nothing goes wrong."""
    hub = await new_hub()
    async with controller(hub):
        await asyncio.sleep(CONVERGED_SECONDS)
        await change(hub)
        await asyncio.sleep(CONVERGED_SECONDS)
    return await end_state(hub)


@pytest.fixture(scope="module")
def wanted() -> dict[str, Any]:
    """The end state where nothing goes wrong."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(without_faults())


async def test_without_faults_all_is_as_users_ask_for(wanted: dict[str, Any]) -> None:
    assert {name for name in wanted if "secrets" in name} == {
        "ManifestWork/c2/dynamic-scoring-secrets-manifestwork"
    }
    text = json.dumps(wanted["ManifestWork/c2/dynamic-scoring-config-manifestwork"])
    assert "plain" not in text
    assert "own" in text
    assert "own" not in json.dumps(wanted["ManifestWork/c1/dynamic-scoring-config-manifestwork"])
    assert in_base64("second") in json.dumps(wanted)


class Weather:
    """A schedule of faults that a test changes while it runs."""

    def __init__(self) -> None:
        self.now: Callable[[Call], KubeError | None] = lambda _: None

    def __call__(self, call: Call) -> Fault | None:
        error = self.now(call)
        when = "after" if call.verb == "watch" and call.number % 2 else "before"
        return Fault(error, when) if error else None


def only(error: KubeError, *verbs: str) -> Callable[[Call], KubeError | None]:
    return lambda call: error if not verbs or call.verb in verbs else None


def every_other(error: KubeError, *verbs: str) -> Callable[[Call], KubeError | None]:
    return lambda call: error if call.verb in verbs and call.number % 2 else None


BAD = {
    "gone for a minute": only(Unreachable("connection refused")),
    "failing for a minute": only(ServerError("etcd leader changed")),
    "busy": only(TooManyRequests("busy", details={"retryAfterSeconds": 7})),
    "conflicts": every_other(Conflict("changed"), "patch", "update", "delete"),
    "versions that are too old": only(Gone("too old"), "watch"),
    "watches that break": only(Unreachable("reset"), "watch"),
}


@pytest.mark.fire(
    "after faults of the API server the hub is as without them",
    "errors, lost answers and broken watches, during a change and at the start",
)
@pytest.mark.parametrize("weather", BAD)
async def test_after_it_all_is_as_without_it(weather: str, wanted: dict[str, Any]) -> None:
    hub, sky = await new_hub(), Weather()
    counting = Counting(hub)
    async with controller(Faulty(counting, sky)):
        await asyncio.sleep(CONVERGED_SECONDS)
        sky.now = BAD[weather]
        await asyncio.sleep(1)
        await change(hub)
        await asyncio.sleep(60)
        sky.now = lambda _: None
        await asyncio.sleep(CONVERGED_SECONDS)
        assert await end_state(hub) == wanted
        await quiet(counting)


@pytest.mark.fire(
    "after an outage of the API server the controller is back in seconds",
    "outages of different lengths, then a server that is starting; watches return in any order",
)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("away", [5, 12, 60, 600])
async def test_the_controller_is_back_in_seconds(
    away: int, seed: int, wanted: dict[str, Any]
) -> None:
    random.seed(seed)  # Each watch draws its own back-off.
    hub, sky = await new_hub(), Weather()
    async with controller(Faulty(hub, sky)):
        await asyncio.sleep(CONVERGED_SECONDS)
        sky.now = only(Unreachable("connection refused"))
        await asyncio.sleep(away)
        await change(hub)
        sky.now = only(ServerError("the API server is starting"))
        await asyncio.sleep(1)
        sky.now = lambda _: None
        await asyncio.sleep(BACK_SECONDS)
        assert await end_state(hub) == wanted


async def test_the_controller_is_not_ready_while_the_api_server_is_away() -> None:
    hub, sky = await new_hub(), Weather()
    controller = HubController(Faulty(hub, sky), registry=CollectorRegistry())
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(CONVERGED_SECONDS)
    assert await controller.unready_reason() is None
    sky.now = only(Unreachable("connection refused"))
    assert await controller.unready_reason() == "the hub can't be read: connection refused"
    sky.now = lambda _: None
    assert await controller.unready_reason() is None
    await stopped(task)


@pytest.mark.fire(
    "a controller that is started again with its identity leads at once", "killed while it leads"
)
async def test_a_killed_controller_that_is_started_again_leads_at_once() -> None:
    hub = await new_hub()
    sky = Weather()
    first = start(Faulty(hub, sky))
    await asyncio.sleep(CONVERGED_SECONDS)
    sky.now = only(Unreachable("the process is gone"))
    await stopped(first)
    held = (await hub.get(LEASE, "dynamic-scoring-controller", HUB))["spec"]
    assert held["holderIdentity"] == "a"
    async with controller(hub):
        await change(hub)
        await asyncio.sleep(BACK_SECONDS)
        (config,) = (await hub.list(DYNAMIC_SCORING_CONFIG, HUB)).items
        assert config["status"]["observedGeneration"] == config["metadata"]["generation"]


@pytest.mark.fire(
    "after faults of the API server the hub is as without them",
    "errors, lost answers and broken watches, during a change and at the start",
)
@pytest.mark.exhaustive
@pytest.mark.parametrize("weather", BAD)
async def test_a_start_in_it_ends_well(weather: str, wanted: dict[str, Any]) -> None:
    hub, sky = await new_hub(), Weather()
    sky.now = BAD[weather]
    counting = Counting(hub)
    async with controller(Faulty(counting, sky)):
        await asyncio.sleep(60)
        sky.now = lambda _: None
        await asyncio.sleep(CONVERGED_SECONDS)
        await change(hub)
        await asyncio.sleep(CONVERGED_SECONDS)
        assert await end_state(hub) == wanted
        await quiet(counting)


async def quiet(counting: Counting) -> None:
    """Check that nothing is written any more, except the Lease."""
    before = written(counting)
    await asyncio.sleep(QUIET_SECONDS)
    assert written(counting) == before


def written(counting: Counting) -> dict[Any, int]:
    return {
        key: count
        for key, count in counting.calls.items()
        if key[0] in WRITES and key[1] != LEASE.resource
    }


def busy_with_works(call: Call) -> KubeError | None:
    if call.kind != MANIFEST_WORK or call.verb not in WRITES:
        return None
    return TooManyRequests("busy", details={"retryAfterSeconds": 60})


@pytest.mark.fire(
    "after faults of the API server the hub is as without them", "429 with Retry-After"
)
async def test_a_busy_api_server_is_asked_no_sooner_than_it_says(wanted: dict[str, Any]) -> None:
    hub, sky = await new_hub(), Weather()
    counting = Counting(Faulty(hub, sky))
    async with controller(counting):
        await asyncio.sleep(CONVERGED_SECONDS)
        sky.now = busy_with_works
        before = Counter(counting.calls)
        await change(hub)
        for number in range(50):  # other news meanwhile
            labels = {"metadata": {"labels": {"turn": str(number)}}}
            await hub.patch(DYNAMIC_SCORER, "guarded", labels, HUB)
            await asyncio.sleep(1)
        tried = Counter(counting.calls) - before
        works = MANIFEST_WORK.resource
        assert tried["patch", works] <= 4  # summaries and Secrets of two clusters
        assert tried["delete", works] <= 1
        sky.now = lambda _: None
        await asyncio.sleep(CONVERGED_SECONDS)
        assert await end_state(hub) == wanted


async def test_one_kind_that_failed_for_long_is_written_a_resync_later(
    wanted: dict[str, Any],
) -> None:
    def refused(call: Call) -> KubeError | None:
        failing = call.kind == DYNAMIC_SCORER and call.verb in WRITES
        return ServerError("webhook: no endpoints") if failing else None

    hub, sky = await new_hub(), Weather()
    async with controller(Faulty(hub, sky)):
        await asyncio.sleep(CONVERGED_SECONDS)
        sky.now = refused
        await change(hub)
        await asyncio.sleep(1200)
        sky.now = lambda _: None
        await asyncio.sleep(40)
        assert await end_state(hub) == wanted


class Deaf(Wrapper):
    """Its watches die without a word: nothing comes, until the client's own deadline."""

    def __init__(self, inner: Kube) -> None:
        super().__init__(inner)
        self.deaf = False

    async def watch(self, kind: Kind, *args: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        loop = asyncio.get_running_loop()
        ends = loop.time() + options["timeout_seconds"] + 15
        async for event in super().watch(kind, *args, **options):
            if self.deaf:
                await asyncio.sleep(ends - loop.time())
                raise Unreachable("no complete answer")
            yield event


@pytest.mark.fire(
    "after faults of the API server the hub is as without them", "watches that die silently"
)
async def test_a_watch_that_dies_silently_is_noticed(wanted: dict[str, Any]) -> None:
    hub = await new_hub()
    counting = Counting(hub)
    deaf = Deaf(counting)
    async with controller(deaf):
        await asyncio.sleep(CONVERGED_SECONDS)
        deaf.deaf = True
        await change(hub)
        await asyncio.sleep(5)
        deaf.deaf = False
        assert await end_state(hub) != wanted
        await asyncio.sleep(330)
        assert await end_state(hub) == wanted
        await quiet(counting)


class Slow(Wrapper):
    """Every answer but a watch's takes seconds."""

    def __init__(self, inner: Kube, seconds: float) -> None:
        super().__init__(inner)
        self.seconds = seconds

    async def answer(self, _: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        answer = await answering
        await asyncio.sleep(self.seconds)
        return answer


@pytest.mark.fire(
    "after faults of the API server the hub is as without them", "answers that take seconds"
)
@pytest.mark.parametrize("seconds", [1.0, 4.0])
async def test_after_slow_answers_the_hub_is_as_without_them(
    seconds: float, wanted: dict[str, Any]
) -> None:
    """At 4 s an answer no Lease can be kept, so nobody writes until the API server is well."""
    hub = await new_hub()
    counting = Counting(hub)
    slow = Slow(counting, seconds)
    async with controller(slow):
        await asyncio.sleep(CONVERGED_SECONDS)
        await change(hub)
        await asyncio.sleep(CONVERGED_SECONDS)
        slow.seconds = 0.0
        await asyncio.sleep(CONVERGED_SECONDS)
        assert await end_state(hub) == wanted
        await quiet(counting)


JUMPS = {
    "an hour back": timedelta(hours=-1),
    "a minute back": timedelta(minutes=-1),
    "a minute ahead": timedelta(minutes=1),
    "ten years ahead": timedelta(days=3650),
}


@pytest.mark.fire("a wall clock that jumps changes no decision", "the hub's controller, leading")
@pytest.mark.parametrize(
    "jump",
    [
        "an hour back",
        "ten years ahead",
        *(
            pytest.param(jump, marks=pytest.mark.exhaustive)
            for jump in ("a minute back", "a minute ahead")
        ),
    ],
)
async def test_a_wall_clock_that_jumps_changes_no_decision(
    jump: str, wanted: dict[str, Any]
) -> None:
    hub, clock = await new_hub(), WallClock()
    counting = Counting(hub)
    async with controller(counting, clock):
        await asyncio.sleep(CONVERGED_SECONDS)
        before = written(counting)
        clock.ahead = JUMPS[jump]
        await asyncio.sleep(CONVERGED_SECONDS)
        assert written(counting) == before, "a jump alone is no reason to write"
        await change(hub)
        await asyncio.sleep(1)
        clock.ahead = timedelta(0)
        await asyncio.sleep(CONVERGED_SECONDS)
        assert await end_state(hub) == wanted
        await quiet(counting)


class Late(Wrapper):
    """Its watches of works are seconds behind."""

    async def watch(self, kind: Kind, *args: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(kind, *args, **options):
            if kind == MANIFEST_WORK:
                await asyncio.sleep(5)
            yield event


async def test_what_is_written_and_not_seen_yet_is_not_written_again() -> None:
    hub = await new_hub()
    counting = Counting(Late(hub))
    async with controller(counting):
        await asyncio.sleep(CONVERGED_SECONDS)
        before = Counter(counting.calls)
        params = {"name": "own", "interval": 60}
        body = {"spec": {"scoring": {"params": params}}}
        for number in range(40):  # other news meanwhile
            await hub.patch(DYNAMIC_SCORER, "guarded", body, HUB)
            labels = {"metadata": {"labels": {"turn": str(number)}}}
            await hub.patch(DYNAMIC_SCORER, "plain", labels, HUB)
            await asyncio.sleep(0.1)
        await asyncio.sleep(CONVERGED_SECONDS)
        made = Counter(counting.calls) - before
        assert made["patch", MANIFEST_WORK.resource] == 2  # one for each cluster
        for cluster in ("c1", "c2"):
            work = await hub.get(MANIFEST_WORK, "dynamic-scoring-config-manifestwork", cluster)
            assert '"scoringInterval": 60' in summaries_text(work)
        await quiet(counting)


class Killed(Wrapper):
    """The controller's process ends at one of its writes: nothing of it happens any more.

    The write itself has reached the API server, or has not.
    """

    def __init__(self, inner: Kube, at: int, *, arrives: bool) -> None:
        super().__init__(inner)
        self.dead = asyncio.Event()
        self._left = at
        self._arrives = arrives

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        if call.verb not in WRITES:
            return await answering
        self._left -= 1
        if self._left > 0:
            return await answering
        if self._left == 0 and self._arrives:
            await answering
        else:
            answering.close()
        self.dead.set()
        await asyncio.Event().wait()
        raise AssertionError("killed")


async def one_life(at: int, *, arrives: bool) -> tuple[dict[str, Any], EmbeddedHub, bool]:
    """Return the end state where the process is killed at a write, and whether it came to that."""
    hub = await new_hub()
    killed = Killed(hub, at, arrives=arrives)
    first = start(killed, "first")
    second: asyncio.Task[None] | None = None
    for step in (None, change):
        if step:
            await step(hub)
        if second is None:
            try:
                async with asyncio.timeout(CONVERGED_SECONDS):
                    await killed.dead.wait()
            except TimeoutError:
                continue
            await stopped(first)
            second = start(hub, "second")
        await asyncio.sleep(CONVERGED_SECONDS)
    for task in filter(None, (first, second)):
        await stopped(task)
    return await end_state(hub), hub, second is not None


EVERY = pytest.param(1, marks=pytest.mark.exhaustive)


@pytest.mark.fire(
    "after a kill at any write the next controller ends where the first would",
    "a controller killed before and after each write",
)
@pytest.mark.parametrize("stride", [29, EVERY])
async def test_killed_at_any_write_the_next_process_ends_where_the_first_would(
    wanted: dict[str, Any], stride: int, record_property: Callable[[str, object], None]
) -> None:
    kills = 0
    for at in range(1, 1000, stride):
        for arrives in (False, True):
            state, hub, came = await one_life(at, arrives=arrives)
            assert state == wanted, f"killed at write {at}, arrived: {arrives}"
            await nothing_is_told_twice(hub)
            kills += came
        if not came:
            break
    record_property("count", kills)
    assert kills > 40 / stride


async def nothing_is_told_twice(hub: EmbeddedHub) -> None:
    events = (await hub.list(EVENT)).items
    told = [(event["involvedObject"]["uid"], event["reason"], event["message"]) for event in events]
    assert len(told) == len(set(told))
