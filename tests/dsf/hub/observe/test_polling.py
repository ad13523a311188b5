"""When each scoring API is probed: one that hangs does not delay the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from dsf.hub.observe.polling import AT_ONCE
from dsf.hub.observe.prober import ProbeLimits
from dsf.kube.kinds import DYNAMIC_SCORER
from tests.dsf.hub.builders import HUB, scorer
from tests.dsf.hub.scoring_api import scoring_api
from tests.dsf.hub.test_run import (
    asked_again,
    controlled,
    fresh,
    register,
    two_clusters,
    until_ready,
    until_reason,
)
from tests.eventually import eventually

# So many that a turn of them all takes long, however slowly the good API's own turns come.
HANGING = 3 * AT_ONCE


@dataclass
class TarPit:
    """A server that takes every connection and says nothing; `taken` counts them."""

    url: str = ""
    taken: int = 0

    async def swallow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        await reader.read()
        writer.close()


@asynccontextmanager
async def tar_pit() -> AsyncIterator[TarPit]:
    pit = TarPit()
    server = await asyncio.start_server(pit.swallow, "127.0.0.1", 0)
    async with server:
        pit.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield pit


@pytest.mark.exhaustive
async def test_a_crowd_of_hanging_apis_costs_the_others_no_turn() -> None:
    hub = await two_clusters()
    async with (
        scoring_api() as api,
        tar_pit() as pit,
        controlled(hub, limits=ProbeLimits(seconds=0.5)),
    ):
        for number in range(HANGING):
            spec = scorer(f"hangs{number}", url=f"{pit.url}/{number}/config")
            await hub.create(DYNAMIC_SCORER, fresh(spec))
        await until_reason(hub, f"hangs{HANGING - 1}", "Healthy", "TimedOut")
        await register(hub, "good", api)
        await until_reason(hub, "good", "Healthy", "Healthy")
        turns, all_once_more = api.asked.count("/healthz"), pit.taken + 2 * HANGING

        async def passed() -> bool:
            return pit.taken >= all_once_more

        await eventually(passed)
        # Both endpoints of each: among them, the good one would have had one turn, two at most.
        assert api.asked.count("/healthz") - turns > 2


async def test_an_api_that_several_scorers_name_is_asked_once_for_all() -> None:
    hub = await two_clusters()
    async with scoring_api() as api:
        for name in ("a", "b", "c"):
            scoring = {"params": {"name": name}}
            await register(hub, name, api, mode="none", source={"type": "None"}, scoring=scoring)
        async with controlled(hub, resync_seconds=600):
            await until_ready(hub, "a", "b", "c")
            assert api.asked == ["/healthz"]


async def test_an_api_is_asked_for_as_long_as_any_scorer_names_it() -> None:
    hub = await two_clusters()
    async with scoring_api() as api, controlled(hub):
        for name in ("a", "b"):
            await register(hub, name, api, mode="none", scoring={"params": {"name": name}})
            await until_reason(hub, name, "Healthy", "Healthy")
        await hub.delete(DYNAMIC_SCORER, "a", HUB)
        await asked_again(api)
        api.health = 503
        await until_reason(hub, "b", "Healthy", "BadStatus")
