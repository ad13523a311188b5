"""How many requests of one caller are answered."""

from typing import Any

import httpx

from optimizer.api.caller_limits import BURST_SECONDS, MOST_CALLERS, RateLimit

PER_SECOND = 2.0
BURST = int(PER_SECOND * BURST_SECONDS)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def caller(limit: RateLimit, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(limit, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://server")


async def test_a_caller_is_answered_again_after_the_seconds_that_it_was_told() -> None:
    clock = Clock()
    limit = RateLimit(answers, PER_SECOND, clock)
    async with caller(limit, "10.0.0.1") as busy, caller(limit, "10.0.0.2") as other:
        codes = [(await busy.get("/mcp")).status_code for _ in range(BURST)]
        assert set(codes) == {200}
        refused = await busy.get("/mcp")
        assert refused.status_code == 429
        assert refused.json()["reason"] == "TooManyRequests"
        assert refused.headers["retry-after"] == "1"
        assert (await other.get("/mcp")).status_code == 200
        assert (await busy.get("/healthz")).status_code == 200
        clock.now += 1
        codes = [(await busy.get("/mcp")).status_code for _ in range(3)]
        assert codes == [200, 200, 429]


async def test_callers_take_bounded_memory() -> None:
    limit = RateLimit(answers, PER_SECOND, Clock())
    for number in range(MOST_CALLERS + 100):
        limit._seconds_to_wait(("", str(number)))
    assert len(limit._buckets._items) == MOST_CALLERS
