"""Scoring APIs that hang hold up no others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dsf.hub.polling import AT_ONCE
from dsf.hub.probe import Limits
from dsf.kube.kinds import DYNAMIC_SCORER
from tests.hub_controller.builders import scorer
from tests.hub_controller.scoring_api import scoring_api
from tests.hub_controller.test_run import (
    controlled,
    eventually,
    fresh,
    register,
    two_clusters,
    until_reason,
)

HANGING = 5 * AT_ONCE


@asynccontextmanager
async def tar_pit() -> AsyncIterator[str]:
    """Yield the URL of a server that takes every connection and says nothing."""

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_crowd_of_hanging_apis_costs_the_others_no_turn() -> None:
    hub = await two_clusters()
    async with scoring_api() as api, tar_pit() as pit, controlled(hub, limits=Limits(seconds=0.5)):
        for number in range(HANGING):
            spec = scorer(f"hangs{number}", url=f"{pit}/{number}/config")
            await hub.create(DYNAMIC_SCORER, fresh(spec))
        await until_reason(hub, f"hangs{HANGING - 1}", "Healthy", "TimedOut")
        await register(hub, "good", api)
        await until_reason(hub, "good", "Healthy", "Healthy")
        # While all that hang are asked once more, which takes 5 times 0.5 s, the good one has had
        # a turn every 0.1 s: among them it would have had one.
        before, loop = len(api.asked), asyncio.get_running_loop()
        ends = loop.time() + HANGING / AT_ONCE * 0.5

        async def passed() -> bool:
            return loop.time() >= ends

        await eventually(passed)
        assert len(api.asked) - before > 8
