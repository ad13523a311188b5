"""How soon a dead scorer leaves and a recovered one returns, at defaults and in virtual time."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Literal

import httpx
import pytest
from prometheus_client import CollectorRegistry

from dsf.agent.round_schedule import SPREAD_SECONDS
from dsf.api.crd.dynamic_scorer import DEFAULT_INTERVAL_SECONDS
from dsf.hub.observe.prober import Prober
from dsf.hub.run import HubController, HubOptions
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG
from tests.dsf.hub.builders import HUB, api_config, scorer, scoring_config
from tests.dsf.hub.test_run import add_cluster, add_namespace, distributed, fresh

pytestmark = pytest.mark.virtual_time

Manner = Literal["answers", "refuses", "hangs", "is broken"]
MANNERS: tuple[Manner, ...] = ("refuses", "hangs", "is broken")


class Network(httpx.AsyncBaseTransport):
    """The only API on it behaves in the manner that a test wants; it counts requests by path."""

    def __init__(self) -> None:
        self.manner: Manner = "answers"
        self.asked: Counter[str] = Counter()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked[request.url.path] += 1
        if self.manner == "refuses":
            raise httpx.ConnectError("connection refused")
        if self.manner == "hangs":
            await asyncio.Event().wait()
        if self.manner == "is broken":
            return httpx.Response(503, stream=httpx.ByteStream(b"broken"))
        return httpx.Response(200, stream=httpx.ByteStream(json.dumps(api_config()).encode()))


@asynccontextmanager
async def outage_bench(network: Network, draw: float) -> AsyncIterator[EmbeddedHub]:
    """Run a controller with defaults; yield once its one scorer is distributed."""
    hub = EmbeddedHub()
    for name in (HUB, "c1"):
        await add_namespace(hub, name)
    await add_cluster(hub, "c1")
    await hub.create(DYNAMIC_SCORING_CONFIG, fresh(scoring_config()))
    await hub.create(DYNAMIC_SCORER, fresh(scorer("cpu", url="http://10.0.0.1:8000/config")))
    loop = asyncio.get_running_loop()
    controller = HubController(
        hub,
        HubOptions(),
        prober=Prober(wire=lambda _: network),
        now=lambda: datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=loop.time()),
        draw=lambda: draw,
        registry=CollectorRegistry(),
    )
    task = asyncio.create_task(controller.run())
    await seconds_until(lambda: is_distributed(hub))
    yield hub
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def is_distributed(hub: EmbeddedHub) -> bool:
    return any((await distributed(hub)).values())


async def is_withdrawn(hub: EmbeddedHub) -> bool:
    return not await is_distributed(hub)


async def seconds_until(holds: Callable[[], Awaitable[bool]]) -> float:
    loop = asyncio.get_running_loop()
    started = loop.time()
    while not await holds():
        await asyncio.sleep(0.1)
        assert loop.time() - started < 300
    return loop.time() - started


@pytest.mark.parametrize(
    ("manner", "draw"),
    [
        ("refuses", 0.99),
        ("hangs", 0.0),
        ("is broken", 0.99),
        pytest.param("refuses", 0.0, marks=pytest.mark.exhaustive),
        pytest.param("hangs", 0.99, marks=pytest.mark.exhaustive),
        pytest.param("is broken", 0.0, marks=pytest.mark.exhaustive),
    ],
)
async def test_a_dead_scorer_leaves_within_30_s_and_returns_within_an_interval(
    manner: Manner, draw: float
) -> None:
    network = Network()
    async with outage_bench(network, draw) as hub:
        for offset in range(0, 100, 19):
            network.manner = "answers"
            await seconds_until(lambda: is_distributed(hub))
            await asyncio.sleep(40 + offset / 10)
            network.manner = manner
            assert await seconds_until(lambda: is_withdrawn(hub)) < 30
            await asyncio.sleep(40 + offset / 10)
            network.manner = "answers"
            back = await seconds_until(lambda: is_distributed(hub))
            # The agent's first round follows the summary within its spread.
            assert back + SPREAD_SECONDS < DEFAULT_INTERVAL_SECONDS


@pytest.mark.parametrize("manner", MANNERS)
async def test_an_outage_shorter_than_a_period_withdraws_nothing(manner: Manner) -> None:
    network = Network()
    async with outage_bench(network, 0.5) as hub:
        for offset in range(0, 100, 33):
            await asyncio.sleep(40 + offset / 10)
            network.manner = manner
            for _ in range(95):
                await asyncio.sleep(0.1)
                assert await is_distributed(hub)
            network.manner = "answers"


@pytest.mark.parametrize("early", [0.0, 0.5, 1.0])
async def test_a_healthy_api_is_asked_once_a_period_and_for_its_config_within_each_resync(
    early: float,
) -> None:
    network = Network()
    async with outage_bench(network, early) as hub:
        await asyncio.sleep(600)
        assert await is_distributed(hub)
    assert 60 <= network.asked["/healthz"] <= 67
    assert 600 / 30 <= network.asked["/config"] <= 600 / 20


async def test_a_dead_api_is_not_asked_more_often() -> None:
    network = Network()
    async with outage_bench(network, 0.5):
        network.manner = "hangs"
        await asyncio.sleep(60)
        network.asked.clear()
        await asyncio.sleep(600)
    assert network.asked["/healthz"] <= 66
