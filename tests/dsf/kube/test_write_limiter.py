"""Writes to small servers in virtual time: faster than one at a time, without slowing others."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from statistics import median, quantiles
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsf.kube.apply import ATTEMPTS, WriteLimiter, apply
from dsf.kube.changes import Change, Patch
from dsf.kube.concurrency_limit import ConcurrencyBounds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import TooManyRequests, Unreachable
from dsf.kube.kinds import CONFIG_MAP
from dsf.kube.port import Object
from dsf.sim.virtual_time import VirtualTimeLoop
from tests.kube_wrappers.wrapper import Wrapper

ONE = ConcurrencyBounds(1, 1)
ALL = ConcurrencyBounds(32, 32)
OURS = ConcurrencyBounds()


class SmallMachine(Wrapper):
    """An API server that answers `places` requests at once, each in `seconds`, and keeps nothing.

    More than `most` requests in flight are refused with 429 and Retry-After.
    """

    def __init__(self, places: int, seconds: float, most: int = 10**6) -> None:
        super().__init__(EmbeddedHub())
        self._free = asyncio.Semaphore(places)
        self._seconds = seconds
        self._most = most
        self.in_flight = 0
        self.sent_at: list[float] = []
        self.refused_at: list[float] = []

    async def get(self, *_: Any, **__: Any) -> Object:
        async with self._served():
            return {}

    async def patch(self, *_: Any, **__: Any) -> Object:
        loop = asyncio.get_running_loop()
        self.sent_at.append(loop.time())
        if self.in_flight >= self._most:
            self.refused_at.append(loop.time())
            raise TooManyRequests("too many requests", details={"retryAfterSeconds": 1})
        async with self._served():
            return {}

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[None]:
        self.in_flight += 1
        try:
            async with self._free:
                await asyncio.sleep(self._seconds)
            yield
        finally:
            self.in_flight -= 1


def apart(number: int) -> list[Change]:
    """Return patches that need not wait for each other."""
    return [Patch(CONFIG_MAP, f"ours-{each}", "ns", {"data": {"k": "v"}}) for each in range(number)]


@dataclass(frozen=True)
class Cost:
    """The seconds that the writes took, and the median latency of a bystander meanwhile."""

    seconds: float
    latency: float


async def cost(
    bounds: ConcurrencyBounds, *, places: int, seconds: float, writes: int, others: int = 0
) -> Cost:
    """Return what writes cost while others keep requests in flight."""
    server = SmallMachine(places, seconds)
    loop = asyncio.get_running_loop()
    latencies: list[float] = []

    async def bystander(*, measured: bool) -> None:
        while True:
            started = loop.time()
            await server.get(CONFIG_MAP, "others", "ns")
            if measured:
                latencies.append(loop.time() - started)
                await asyncio.sleep(seconds)

    tasks = [asyncio.create_task(bystander(measured=number == 0)) for number in range(1 + others)]
    started = loop.time()
    outcomes = await apply(server, apart(writes), limiter=WriteLimiter(bounds))
    taken = loop.time() - started
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert all(outcome.error is None for outcome in outcomes)
    return Cost(taken, median(latencies))


def in_virtual_time(bounds: ConcurrencyBounds, **server: Any) -> Cost:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(cost(bounds, **server))


@settings(max_examples=8)
@given(
    places=st.integers(1, 12),
    seconds=st.floats(0.001, 0.5),
    writes=st.integers(50, 120),
    others=st.integers(0, 12),
)
def test_never_slower_than_one_at_a_time_and_others_wait_little_longer(
    places: int, seconds: float, writes: int, others: int
) -> None:
    server = {"places": places, "seconds": seconds, "writes": writes, "others": others}
    one, ours = in_virtual_time(ONE, **server), in_virtual_time(OURS, **server)
    # The responses of this server come in steps, so the times differ by up to a few steps.
    assert ours.seconds <= one.seconds + 4 * seconds
    assert ours.latency <= (OURS.latency_factor + 1) * one.latency


def test_32_in_flight_multiply_the_latency_of_others_and_ours_do_not() -> None:
    server = {"places": 2, "seconds": 0.005, "writes": 300}
    one, ours, fixed = (in_virtual_time(bounds, **server) for bounds in (ONE, OURS, ALL))
    assert fixed.latency > 10 * one.latency
    assert ours.latency <= 3 * one.latency
    assert one.seconds / ours.seconds > 1.4


def test_a_large_machine_is_used() -> None:
    server = {"places": 100, "seconds": 0.02, "writes": 1000}
    one, ours = in_virtual_time(ONE, **server), in_virtual_time(OURS, **server)
    assert one.seconds / ours.seconds > 10


class TwoProcessors(SmallMachine):
    """It computes 2 ms for a read and 3 ms for a write, in two slices each, give or take a third.

    A write then waits for the disk, which serves any number of them.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(places=2, seconds=0.0)
        self._chance = random.Random(seed)  # noqa: S311

    async def get(self, *_: Any, **__: Any) -> Object:
        await self._compute(0.002)
        return {}

    async def patch(self, *_: Any, **__: Any) -> Object:
        await self._compute(0.003)
        await asyncio.sleep(self._about(0.003))
        return {}

    async def _compute(self, seconds: float) -> None:
        for _ in range(2):
            async with self._free:
                await asyncio.sleep(self._about(seconds / 2))

    def _about(self, seconds: float) -> float:
        return seconds * self._chance.lognormvariate(0, 0.3)


@dataclass(frozen=True)
class Felt:
    """The seconds of 1,000 writes, and how many times longer reads take meanwhile."""

    seconds: float
    middle: float
    slowest: float
    """Of the fastest 99%."""


async def felt(bounds: ConcurrencyBounds) -> Felt:
    """Return the medians of some runs."""
    runs = [await felt_once(bounds, TwoProcessors(seed)) for seed in range(5)]
    return Felt(*(median(each) for each in zip(*map(astuple, runs), strict=True)))


async def felt_once(bounds: ConcurrencyBounds, server: TwoProcessors) -> Felt:
    loop = asyncio.get_running_loop()
    latencies: list[float] = []

    async def read() -> None:
        while True:
            started = loop.time()
            await server.get()
            latencies.append(loop.time() - started)
            await asyncio.sleep(0.02)

    reading = asyncio.create_task(read())
    await asyncio.sleep(10)
    alone = (median(latencies), quantiles(latencies, n=100)[98])
    latencies.clear()
    started = loop.time()
    await apply(server, apart(1000), limiter=WriteLimiter(bounds))
    seconds = loop.time() - started
    reading.cancel()
    meanwhile = (median(latencies), quantiles(latencies, n=100)[98])
    return Felt(seconds, meanwhile[0] / alone[0], meanwhile[1] / alone[1])


@pytest.mark.virtual_time
async def test_reads_of_others_take_about_twice_as_long_as_without_our_writes() -> None:
    one, ours, twice = [await felt(each) for each in (ONE, OURS, ConcurrencyBounds(1, 32, 2.0))]
    assert one.seconds / ours.seconds > 3
    assert ours.middle < 2
    assert ours.slowest < 2.6
    # A higher factor buys little time, and others pay for it.
    assert ours.seconds / twice.seconds < 1.2
    assert twice.middle > 1.5 * ours.middle


@pytest.mark.virtual_time
async def test_a_change_after_a_quiet_time_starts_with_the_limit_that_was_learnt() -> None:
    """50 ms of network latency, to a server that takes any number of writes."""
    server, limiter, loop = SmallMachine(100, 0.05), WriteLimiter(), asyncio.get_running_loop()
    taken = []
    for _ in range(2):
        started = loop.time()
        await apply(server, apart(100), limiter=limiter)
        taken.append(loop.time() - started)
        await asyncio.sleep(3600)
    assert taken[0] > 0.6
    # One write alone, then 32 at a time.
    assert taken[1] == pytest.approx(0.05 + 0.05 * 4)


@pytest.mark.virtual_time
async def test_a_server_that_slowed_down_in_a_quiet_time_is_not_met_by_many_writes() -> None:
    limiter = WriteLimiter()
    await apply(SmallMachine(100, 0.05), apart(200), limiter=limiter)
    assert limiter.limit == 32
    await asyncio.sleep(60)
    slower = SmallMachine(1, 0.2)
    await apply(slower, apart(40), limiter=limiter)
    gaps = [
        after - before for before, after in zip(slower.sent_at, slower.sent_at[4:], strict=False)
    ]
    assert min(gaps) >= 0.2
    assert limiter.limit <= 2


@pytest.mark.virtual_time
async def test_after_a_refusal_no_write_is_sent_before_retry_after_and_then_all_arrive() -> None:
    changes = apart(60)
    server = SmallMachine(places=100, seconds=0.01, most=3)
    limiter = WriteLimiter()
    outcomes = await apply(server, changes, limiter=limiter)
    assert [outcome.error for outcome in outcomes] == [None] * len(changes)
    assert server.refused_at
    assert limiter.limit <= 4
    for refused in server.refused_at:
        assert not [sent for sent in server.sent_at if refused < sent < refused + 1]


@pytest.mark.virtual_time
async def test_a_server_that_refuses_for_ever_gets_few_writes() -> None:
    server = SmallMachine(places=1, seconds=0.01, most=0)
    outcomes = await apply(server, apart(5))
    assert all(isinstance(outcome.error, TooManyRequests) for outcome in outcomes)
    assert len(server.sent_at) == 5 * ATTEMPTS
    assert server.sent_at[-1] >= 5 * ATTEMPTS - 1


@pytest.mark.virtual_time
async def test_a_cancelled_write_gives_its_turn_to_the_next() -> None:
    limiter = WriteLimiter(ONE)
    order: list[str] = []

    async def write(name: str, seconds: float) -> None:
        async with limiter.turn():
            order.append(name)
            await asyncio.sleep(seconds)

    tasks = [asyncio.create_task(write(name, 10.0)) for name in ("a", "b", "c")]
    await asyncio.sleep(1)
    tasks[1].cancel()
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["a", "c"]
    assert limiter.in_flight == 0


@pytest.mark.virtual_time
async def test_no_answer_halves_the_limit() -> None:
    limiter = WriteLimiter(ConcurrencyBounds(1, 8))
    ended: list[str] = []
    limiter.on_write = lambda _, error: ended.append(type(error).__name__)
    for _ in range(5):
        await asyncio.gather(*(one_write(limiter) for _ in range(32)))
    assert limiter.limit == 8
    with pytest.raises(Unreachable):
        await one_write(limiter, Unreachable("gone"))
    assert limiter.limit == 4
    assert ended.count("Unreachable") == 1


async def one_write(limiter: WriteLimiter, error: Exception | None = None) -> None:
    async with limiter.turn():
        await asyncio.sleep(0.01)
        if error:
            raise error
