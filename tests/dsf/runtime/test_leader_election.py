"""Leases: the pure decision, and on an embedded hub electors and exclusive sections."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Unreachable
from dsf.kube.kinds import LEASE, NAMESPACE
from dsf.kube.port import Kube
from dsf.runtime.leader_election import HeldLease, LeaderElector, Occupied, run_exclusively
from dsf.runtime.lease import LeaderElectionConfig, ObservedLease, decide, released
from dsf.sim.virtual_time import VirtualTimeLoop
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Answer, Call, Wrapper

pytestmark = pytest.mark.virtual_time

NOW = "2026-11-20T10:00:00.000000Z"
PATIENCE = 16.0


def me(identity: str = "a") -> LeaderElectionConfig:
    return LeaderElectionConfig("controller", "ns", identity)


def lease(holder: str, version: str = "1", **spec: object) -> dict[str, object]:
    return {
        "metadata": {"name": "controller", "namespace": "ns", "resourceVersion": version},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
    }


def test_nobody_leads_yet() -> None:
    written = decide(me(), None, None, at=0, now=NOW).write
    assert written
    assert "resourceVersion" not in written["metadata"]
    assert written["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": NOW,
        "renewTime": NOW,
        "leaseTransitions": 0,
    }


def test_a_lease_is_never_told_shorter_than_it_is() -> None:
    short = LeaderElectionConfig("controller", "ns", "a", lease_seconds=1.4, renew_seconds=1.3)
    written = decide(short, None, None, at=0, now=NOW).write
    assert written
    assert written["spec"]["leaseDurationSeconds"] == 2


def test_another_leads_until_it_was_not_seen_to_renew_for_a_whole_duration() -> None:
    first = decide(me(), lease("b"), None, at=100, now=NOW)
    assert (first.write, first.observed) == (None, ObservedLease("1", 100))
    assert decide(me(), lease("b"), first.observed, at=114.9, now=NOW).write is None
    renewed = decide(me(), lease("b", "2"), first.observed, at=114.9, now=NOW)
    assert (renewed.write, renewed.observed) == (None, ObservedLease("2", 114.9))
    taken = decide(me(), lease("b", "2", leaseTransitions=3), renewed.observed, at=129.9, now=NOW)
    assert taken.write
    assert taken.write["metadata"]["resourceVersion"] == "2"
    assert taken.write["spec"]["leaseTransitions"] == 4


def test_a_duration_that_nobody_waits_for_is_not_believed() -> None:
    forged = lease("b", leaseDurationSeconds=2**31 - 1)
    assert decide(me(), forged, ObservedLease("1", 0), at=3_599, now=NOW).write is None
    assert decide(me(), forged, ObservedLease("1", 0), at=3_600, now=NOW).write
    patient = LeaderElectionConfig("controller", "ns", "a", lease_seconds=7_200)
    assert decide(patient, forged, ObservedLease("1", 0), at=7_199, now=NOW).write is None


@pytest.mark.parametrize("written_at", ["1970-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.0Z"])
def test_clocks_of_others_do_not_matter(written_at: str) -> None:
    held = lease("b", renewTime=written_at, acquireTime=written_at)
    assert decide(me(), held, None, at=0, now=NOW).write is None
    assert decide(me(), held, ObservedLease("1", 0), at=15, now=NOW).write


def test_the_leader_renews_and_gives_back() -> None:
    ours = lease("a", acquireTime="then", leaseTransitions=2)
    written = decide(me(), ours, None, at=0, now=NOW).write
    assert written
    assert (written["spec"]["acquireTime"], written["spec"]["leaseTransitions"]) == ("then", 2)
    free = released(me(), written, now=NOW)
    assert free
    assert free["spec"]["holderIdentity"] == ""
    assert decide(me("b"), free, None, at=0, now=NOW).write
    assert released(me("b"), written, now=NOW) is None


class Work:
    """Keeps who works when: two at a time are a split brain."""

    def __init__(self) -> None:
        self.now: set[str] = set()
        self.leaders: list[str] = []
        self.most = 0

    def of(self, name: str) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            self.now.add(name)
            self.leaders.append(name)
            self.most = max(self.most, len(self.now))
            try:
                await asyncio.Event().wait()
            finally:
                self.now.discard(name)

        return work


async def hub() -> EmbeddedHub:
    kube = EmbeddedHub()
    await kube.create(NAMESPACE, {"metadata": {"name": "ns"}})
    return kube


def elect(
    kube: Kube,
    name: str,
    work: Work,
    skew: timedelta = timedelta(0),
    jumps: Callable[[], timedelta] = timedelta,
) -> asyncio.Task[None]:
    loop = asyncio.get_running_loop()
    start = datetime(2026, 11, 20, tzinfo=UTC) + skew
    elector = LeaderElector(
        kube,
        me(name),
        now=lambda: start + jumps() + timedelta(seconds=loop.time()),
        draw=lambda: 0.5,
        registry=CollectorRegistry(),
    )
    return asyncio.create_task(elector.run(work.of(name)))


async def stopped(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_leads_and_the_next_follows_at_once_when_it_ends() -> None:
    kube, work = await hub(), Work()
    first = elect(kube, "a", work)
    await asyncio.sleep(1)
    second = elect(kube, "b", work, skew=timedelta(hours=-5))
    await asyncio.sleep(600)
    assert work.leaders == ["a"]
    await stopped(first)
    await asyncio.sleep(3)
    assert (work.leaders, work.most) == (["a", "b"], 1)
    assert (await kube.get(LEASE, "controller", "ns"))["spec"]["leaseTransitions"] == 1
    await stopped(second)
    assert (await kube.get(LEASE, "controller", "ns"))["spec"]["holderIdentity"] == ""


class Cut:
    """A connection that is cut and mended."""

    def __init__(self) -> None:
        self.off = False

    def __call__(self, _: Call) -> Fault | None:
        return Fault(Unreachable("cut")) if self.off else None


async def test_a_leader_that_is_cut_off_stops_before_another_one_starts() -> None:
    kube, work, cut = await hub(), Work(), Cut()
    first = elect(Faulty(kube, cut), "a", work)
    await asyncio.sleep(5)
    second = elect(kube, "b", work)
    await asyncio.sleep(30)
    cut.off = True
    await asyncio.sleep(11)
    assert work.now == set()
    await asyncio.sleep(20)
    assert work.now == {"b"}
    cut.off = False
    await asyncio.sleep(60)
    assert (work.leaders, work.most) == (["a", "b"], 1)
    await stopped(first, second)


async def test_a_short_outage_costs_no_leadership() -> None:
    kube, work, cut = await hub(), Work(), Cut()
    task = elect(Faulty(kube, cut), "a", work)
    for _ in range(20):
        await asyncio.sleep(20)
        cut.off = True
        await asyncio.sleep(7)
        cut.off = False
    assert work.leaders == ["a"]
    await stopped(task)


class Hanging(Wrapper):
    """One of its calls is never answered."""

    def __init__(self, inner: Kube, number: int) -> None:
        super().__init__(inner)
        self.left = number

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        self.left -= call.verb == "get"
        if self.left == 0:
            self.left -= 1
            answering.close()
            await asyncio.Event().wait()
        return await answering


class SlowToAnswer(Wrapper):
    """Its creates happen at once and are answered late; then nothing comes through any more."""

    def __init__(self, inner: Kube, seconds: float) -> None:
        super().__init__(inner)
        self.seconds = seconds
        self.off = False

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        done = await answering
        if call.verb == "create":
            await asyncio.sleep(self.seconds)
            self.off = True
        return done

    def before(self, _: Call) -> None:
        if self.off:
            raise Unreachable("cut")


async def test_leading_counts_from_when_the_lease_was_asked_for() -> None:
    kube, work = await hub(), Work()
    first = elect(SlowToAnswer(kube, 9), "a", work)
    await asyncio.sleep(1)
    second = elect(kube, "b", work)
    await asyncio.sleep(60)
    assert (work.most, work.now) == (1, {"b"})
    await stopped(first, second)


async def test_one_call_that_hangs_costs_no_leadership() -> None:
    kube, work = await hub(), Work()
    task = elect(Hanging(kube, 20), "a", work)
    await asyncio.sleep(600)
    assert work.leaders == ["a"]
    await stopped(task)


async def test_a_killed_leader_is_followed_after_its_lease() -> None:
    kube, work = await hub(), Work()
    await kube.create(
        LEASE,
        {
            "metadata": {"name": "controller", "namespace": "ns"},
            "spec": {"holderIdentity": "killed", "leaseDurationSeconds": 15},
        },
    )
    task = elect(kube, "b", work)
    await asyncio.sleep(14)
    assert work.leaders == []
    await asyncio.sleep(5)
    assert work.leaders == ["b"]
    await stopped(task)


async def test_work_that_fails_is_told_and_the_lease_given_back() -> None:
    async def fails() -> None:
        raise ValueError("broken")

    kube = await hub()
    with pytest.raises(ValueError, match="broken"):
        await LeaderElector(kube, me(), registry=CollectorRegistry()).run(fails)
    assert (await kube.get(LEASE, "controller", "ns"))["spec"]["holderIdentity"] == ""


outages = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 40), st.booleans()), max_size=12
)


@settings(max_examples=12)
@given(outages)
@pytest.mark.fire("never two lead", "random outages, in virtual time")
def test_whatever_is_cut_off_never_two_lead_and_in_the_end_one_does(
    schedule: list[tuple[str, int, bool]],
) -> None:
    async def main() -> None:
        kube, work = await hub(), Work()
        cuts = {name: Cut() for name in "abc"}
        tasks = [elect(Faulty(kube, cuts[name]), name, work) for name in "abc"]
        for name, seconds, off in schedule:
            cuts[name].off = off
            await asyncio.sleep(seconds)
        for cut in cuts.values():
            cut.off = False
        await asyncio.sleep(40)
        assert work.most <= 1
        assert len(work.now) == 1
        await stopped(*tasks)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-100, 100)), max_size=12))
@pytest.mark.fire("never two lead", "random jumps of wall clocks, in virtual time")
def test_clocks_that_jump_cost_no_leadership(schedule: list[tuple[str, int]]) -> None:
    async def main() -> None:
        kube, work = await hub(), Work()
        ahead = dict.fromkeys("abc", timedelta(0))
        tasks = [elect(kube, name, work, jumps=partial(ahead.__getitem__, name)) for name in "abc"]
        await asyncio.sleep(10)
        (leader,) = work.now
        for name, hours in schedule:
            ahead[name] = timedelta(hours=hours)
            await asyncio.sleep(20)
        assert work.most == 1
        assert work.leaders == [leader]
        await stopped(*tasks)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


def writer(kube: EmbeddedHub | Faulty, identity: str) -> HeldLease:
    return HeldLease(kube, LeaderElectionConfig("writer", "ns", identity))


async def seconds(duration: float, identity: str = "") -> str:
    await asyncio.sleep(duration)
    return identity


async def test_short_works_follow_each_other() -> None:
    kube, running = await hub(), list[str]()

    async def work(identity: str) -> str:
        running.append(identity)
        await asyncio.sleep(1)
        assert running == [identity]
        running.remove(identity)
        return identity

    done = await asyncio.gather(
        *(
            run_exclusively(writer(kube, name), lambda name=name: work(name), patience_seconds=60)
            for name in "abc"
        )
    )
    assert done == ["a", "b", "c"]


async def test_a_holder_that_renews_is_not_waited_for() -> None:
    kube = await hub()
    long = asyncio.create_task(
        run_exclusively(writer(kube, "a"), lambda: seconds(100), patience_seconds=PATIENCE)
    )
    await asyncio.sleep(1)
    asked = asyncio.get_running_loop().time()
    second = await run_exclusively(writer(kube, "b"), lambda: seconds(1), patience_seconds=PATIENCE)
    assert isinstance(second, Occupied)
    assert second.lease["spec"]["holderIdentity"] == "a"
    assert asyncio.get_running_loop().time() - asked < 5
    long.cancel()
    await asyncio.gather(long, return_exceptions=True)


async def test_the_lease_of_a_process_that_died_is_taken_once_it_has_expired() -> None:
    kube = await hub()
    assert await writer(kube, "dead").hold()
    asked = asyncio.get_running_loop().time()
    done = await run_exclusively(
        writer(kube, "b"), lambda: seconds(1, "b"), patience_seconds=PATIENCE
    )
    assert done == "b"
    assert 15 <= asyncio.get_running_loop().time() - asked <= 17


async def test_work_without_its_lease_is_cancelled() -> None:
    kube = await hub()
    away = False
    faulty = Faulty(kube, lambda _: Fault(Unreachable("away")) if away else None)
    finished = False

    async def work() -> None:
        nonlocal away, finished
        away = True
        await asyncio.sleep(100)
        finished = True

    outcome = await run_exclusively(writer(faulty, "a"), work, patience_seconds=PATIENCE)
    assert isinstance(outcome, Occupied)
    assert not finished


async def test_the_lease_is_given_back() -> None:
    kube = await hub()
    await run_exclusively(writer(kube, "a"), lambda: seconds(1), patience_seconds=PATIENCE)
    assert (await kube.get(LEASE, "writer", "ns"))["spec"]["holderIdentity"] == ""


async def test_an_error_of_the_work_is_raised_and_the_lease_given_back() -> None:
    kube = await hub()

    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_exclusively(writer(kube, "a"), work, patience_seconds=PATIENCE)
    assert (await kube.get(LEASE, "writer", "ns"))["spec"]["holderIdentity"] == ""
