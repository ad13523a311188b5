"""The answers of all rounds together have a memory limit, and no round waits endlessly."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.fetch.answer_budget import FREE_BYTES, STEP, AnswerBudget, AnswerReservation, safe
from dsf.agent.fetch.http_client import HttpClient, http_client
from dsf.agent.fetch.http_exchange import CallDeadline, CallLimits, OutboundRequest, exchange
from dsf.agent.run import AgentSettings, round_runner
from dsf.kube.clock import utc_now
from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import replying, scores, serving

MIB = 1 << 20
holds = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=5)


@given(st.integers(0, 20), holds)
def test_safe_is_what_some_order_of_ends_proves(total: int, held: list[tuple[int, int]]) -> None:
    def ends(free: int, left: list[tuple[int, int]]) -> bool:
        return not left or any(
            need <= free and ends(free + mine, left[:n] + left[n + 1 :])
            for n, (mine, need) in enumerate(left)
        )

    free = total - sum(mine for mine, _ in held)
    assert safe(total, held) is (free >= 0 and ends(free, held))


@dataclass
class Reader:
    """A round that reads answers of some sizes, each a step at a time."""

    shared: AnswerBudget
    most: int
    sizes: list[int]
    peak: list[int] = field(default_factory=list)

    async def run(self) -> None:
        with self.shared.reserve(self.most) as reservation:
            for size in self.sizes:
                await self._read(reservation, size)
                await asyncio.sleep(0)

    async def _read(self, reservation: AnswerReservation, size: int) -> None:
        for read in range(0, size, STEP // 2):
            await reservation.read(min(read + STEP // 2, size))
            self.peak.append(self.shared.held)
            await asyncio.sleep(0)
        reservation.keep(size)


@pytest.mark.virtual_time
@pytest.mark.parametrize("rounds", [1, 2, 17])
async def test_every_round_ends_and_no_more_is_held_than_there_is(rounds: int) -> None:
    shared = AnswerBudget(10 * MIB)
    readers = [Reader(shared, 10 * MIB, [(n % 7) * MIB, (n % 4) * MIB, 100]) for n in range(rounds)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(reader.run() for reader in readers))
    peak = max(held for reader in readers for held in reader.peak)
    assert peak <= 10 * MIB
    assert shared.held == 0
    if rounds > 2:
        assert peak > 6 * MIB


async def test_small_answers_wait_for_nobody() -> None:
    shared = AnswerBudget(4 * MIB)
    with shared.reserve(4 * MIB) as large, shared.reserve(4 * MIB) as small:
        await large.read(4 * MIB)
        await small.read(FREE_BYTES)
        waiting = asyncio.create_task(small.read(FREE_BYTES + 1))
        await asyncio.sleep(0)
        assert small.waits
        assert not waiting.done()
        large.keep(0)
        await waiting


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    async with http_client() as opened:
        yield opened


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_takes_its_room_before_it_is_there(
    client: HttpClient, packed: bool
) -> None:
    body = b" " * (3 * MIB)
    handler = (
        replying(gzip.compress(body), headers={"Content-Encoding": "gzip"})
        if packed
        else replying(body)
    )
    shared = AnswerBudget(8 * MIB)
    async with serving(handler) as server:
        with shared.reserve(8 * MIB) as other, shared.reserve(4 * MIB) as reservation:
            await other.read(6 * MIB)
            late = await _get(client, server.url, reservation, seconds=0.3)
            assert isinstance(late, Failure)
            assert late.reason == "AgentBusy"
            assert "8 MiB" in late.message
            other.keep(0)
            other.expect(other.kept)
            answer = await _get(client, server.url, reservation, seconds=60)
            assert not isinstance(answer, Failure)
            assert shared.held == len(answer.body) == len(body)
        assert shared.held == 0


async def _get(
    client: HttpClient, url: str, reservation: AnswerReservation, *, seconds: float
) -> Any:
    return await exchange(
        client,
        OutboundRequest("GET", url),
        stage="source",
        deadline=CallDeadline.within(seconds),
        max_bytes=4 * MIB,
        reservation=reservation,
    )


async def test_rounds_with_large_answers_take_turns_and_all_come_through() -> None:
    """Six of 2 MiB where there is room for two and a half: a slow scorer holds its series."""
    sample = [[1, "1.5"]] * 6_000
    result = [{"metric": {"pod": f"p{n}"}, "values": sample} for n in range(31)]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    held = list[int]()

    async def score(_: web.Request) -> web.StreamResponse:
        held.append(performer.answer_budget.held)
        await asyncio.sleep(0.02)
        return web.json_response(scores(({"pod": "a"}, 1)))

    settings = AgentSettings(
        "cluster1", limits=CallLimits(max_bytes=3 * MIB), answers_in_flight=6 * MIB
    )
    async with (
        serving(replying(body.encode())) as source,
        serving(score) as scorer,
        round_runner(settings, None, utc_now) as performer,
    ):
        wanted = [
            summary(
                f"s{n}", source_endpoint=source.url, scoring_endpoint=scorer.url, source_range=1
            )
            for n in range(6)
        ]
        done = await asyncio.gather(*(performer.perform(one) for one in wanted))
        assert [one.failure for one in done] == [None] * 6
        assert len(body) // 2 < max(held) <= 6 * MIB
        assert performer.answer_budget.held == 0
