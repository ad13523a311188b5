"""When each scoring API is probed: one that hangs does not delay the others."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import httpx
import pytest
from prometheus_client import CollectorRegistry

from dsf.hub.observe.polling import AT_ONCE
from dsf.hub.observe.prober import Prober
from dsf.hub.run import HubController, HubOptions
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

# So many that a turn of them all takes longer than the period of the good API.
HANGING = 3 * AT_ONCE
GOOD = "10.0.0.1"


class Crowd(httpx.AsyncBaseTransport):
    """A network on which only one API answers; `asked` has the times of its health checks."""

    def __init__(self) -> None:
        self.asked = list[float]()
        self.hanging = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.host != GOOD:
            self.hanging += 1
            await asyncio.Event().wait()
        if request.url.path == "/healthz":
            self.asked.append(asyncio.get_running_loop().time())
        return httpx.Response(200, stream=httpx.ByteStream(b"{}"))


@pytest.mark.virtual_time
async def test_a_crowd_of_hanging_apis_costs_the_others_no_turn() -> None:
    hub, network, options = await two_clusters(), Crowd(), HubOptions()
    for number in range(HANGING + 1):
        url = f"http://{GOOD if number == HANGING else f'10.0.1.{number}'}:8000/config"
        await hub.create(DYNAMIC_SCORER, fresh(scorer(f"api{number}", url=url)))
    clock = asyncio.get_running_loop().time
    controller = HubController(
        hub,
        options,
        prober=Prober(wire=lambda _: network),
        now=lambda: datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=clock()),
        draw=lambda: 0.0,
        registry=CollectorRegistry(),
    )
    running = asyncio.create_task(controller.run())
    await asyncio.sleep(60)  # until all that hang are known to
    network.hanging, first = 0, len(network.asked)
    await asyncio.sleep(300)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert network.hanging > 10 * HANGING
    pauses = [late - early for early, late in pairwise(network.asked[first:])]
    assert pauses == pytest.approx([options.probe_seconds] * len(pauses))
    assert len(pauses) > 25


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
