"""Thousands of readers of one rollout, and everybody else meanwhile."""

import asyncio
import os
from pathlib import Path

import pytest

from optimizer.api.caller_limits import StreamLimits
from tests.optimizer.api.event_streams import EVENTS, PLANS, SocketFreeStream, served, token_of
from tests.optimizer.api.test_app import problem

STREAMS = 10_000
SOCKETS = 300
"""Those over sockets; each needs two of the descriptors of the process that tests."""
HANGS_SECONDS = 1800.0
KILOBYTES_OF_STREAM = 100
"""Memory of one stream, its client included."""


@pytest.mark.exhaustive
@pytest.mark.fire(
    "watching costs a subscription, not a connection to the hub",
    f"streams of one rollout in one process, {SOCKETS} of them over sockets",
    count=STREAMS,
)
async def test_thousands_of_streams_cost_one_watch_and_stop_nobody_else(tmp_path: Path) -> None:
    limits = StreamLimits(total=STREAMS, of_caller=STREAMS)
    async with (
        served(tmp_path, limits, connections=2 * SOCKETS, hangs_seconds=HANGS_SECONDS) as server,
        asyncio.TaskGroup() as tasks,
    ):
        before = resident_kilobytes()
        within = [SocketFreeStream() for _ in range(STREAMS - SOCKETS)]
        for stream in within:
            tasks.create_task(stream.run(server.app))
            await stream.opened.wait()
        over = [await server.stream() for _ in range(SOCKETS)]
        told = [await stream.next_status() for stream in over]
        told += [stream.newest_status for stream in within]
        assert ([item["paused"] for item in told], len(told)) == ([True] * STREAMS, STREAMS)
        assert resident_kilobytes() - before < STREAMS * KILOBYTES_OF_STREAM
        assert server.watches.most[PLANS] == 1
        refused = await server.http.get(EVENTS, headers=token_of("writer"))
        problem(refused, 429, "TooManyStreams")
        await server.answers()
        server.hub.end_watches()
        await server.change("cancel")
        await server.answers()
        last = [await stream.last_status() for stream in over]
        await asyncio.gather(*tasks._tasks)
        last += [stream.newest_status for stream in within]
        assert [item["phase"] for item in last] == ["Cancelled"] * STREAMS
        assert server.watches.most[PLANS] == 1


def resident_kilobytes() -> int:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
