"""Writes to small servers in virtual time: faster than one at a time, without slowing others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
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
from tests.kube_wrappers.wrapper import Wrapper
from tests.virtual_time import VirtualTimeLoop

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
