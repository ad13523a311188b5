"""The tool that simulates other settings over what a Prometheus and the hub have recorded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from fastmcp import Client
from fastmcp.exceptions import ToolError

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from mcp_server.server import create_mcp
from optimizer.domain.settings import OptimizerSettings
from optimizer.service.optimizer import Optimizer
from tests.mcp_server.service import serving_hub
from tests.mcp_server.test_gone_clients import _call, _sent
from tests.mcp_server.test_http import HANGS_SECONDS
from tests.mcp_server.tokens import definition_tokens, result_tokens
from tests.optimizer.cli.test_simulate import prometheus
from tests.optimizer.twin.recorded_fleet import ONE_HOUR, answer, recorded_hub

NAME = "simulate_settings"
LOWER = {"settings": {"gain": "1"}}


def client(hub: EmbeddedHub, url: str) -> Client[Any]:
    optimizer = optimizer_of(hub, url)
    return Client(create_mcp(lambda: optimizer))


def optimizer_of(hub: EmbeddedHub, url: str) -> Optimizer:
    return Optimizer(hub, OptimizerSettings(prometheus_url=url), now=utc_now)


async def test_it_compares_settings_over_what_was_recorded() -> None:
    hub, told = await recorded_hub(), list[str | None]()

    async def progress(_seconds: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    async with prometheus(ONE_HOUR) as (url, asked):
        optimizer = optimizer_of(hub, url)
        async with serving_hub(hub, optimizer) as service, Client(service.mcp) as session:
            (tool,) = [tool for tool in await session.list_tools() if tool.name == NAME]
            found = await session.call_tool(NAME, {**LOWER, "hours": 2}, progress_handler=progress)
    shown = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert definition_tokens([shown]) < 330
    assert shown["annotations"]["readOnlyHint"]
    assert float(asked[0]["end"]) - float(asked[0]["start"]) == pytest.approx(2 * 3600)
    rows = found.structured_content["rows"]
    assert [(row["controller"], row["setting"]) for row in rows] == [
        ("Kept", {}),
        ("Kept", {"gain": "1"}),
        ("Recorded", {}),
    ]
    moves = [row["moves"]["mean"] for row in rows]
    assert moves[0] == moves[2] == 0 < moves[1]
    assert "best in hindsight" in found.content[0].text
    assert result_tokens(found) < 1_500
    assert all(str(message).startswith("Simulating: ") for message in told)


async def test_without_settings_it_tells_what_ran_and_the_best() -> None:
    async with prometheus(ONE_HOUR) as (url, _), client(await recorded_hub(), url) as session:
        found = await session.call_tool(NAME, {"hours": 2})
        tried = await session.call_tool(NAME, {**LOWER, "hours": 2})
    assert found.structured_content is not None
    assert [row["controller"] for row in found.structured_content["rows"]] == ["Recorded"]
    assert "best in hindsight" in found.content[0].text
    assert "PlacementOptimization" not in found.content[0].text
    assert "no PlacementOptimization exists: " in tried.content[0].text


TOO_MANY = answer({"worker01": lambda _: 60, "worker02": lambda _: 50}, last=3_002)
"""Two clusters, and 3,001 steps."""


@pytest.mark.parametrize(
    ("arguments", "recorded", "told"),
    [
        ({"settings": {"hysterisis": "1"}}, ONE_HOUR, "hysterisis: unknown field"),
        ({"settings": {"gain": "1,2"}}, ONE_HOUR, "one value"),
        ({"settings": {"gain": "-1"}}, ONE_HOUR, "hysteresis.leastGain: "),
        ({**LOWER, "hours": 169}, ONE_HOUR, "hours"),
        ({**LOWER, "optimization": "other"}, ONE_HOUR, "no applied PlacementPlan"),
        ({**LOWER, "hours": 24}, TOO_MANY, "2 clusters are simulated for at most 24.0 hours"),
        (LOWER, {"status": "error"}, "HTTP 200"),
    ],
)
async def test_what_it_cannot_simulate_is_told_in_a_sentence(
    arguments: dict[str, Any], recorded: Any, told: str
) -> None:
    async with prometheus(recorded) as (url, _), client(await recorded_hub(), url) as session:
        with pytest.raises(ToolError) as error:
            await session.call_tool(NAME, arguments)
    assert told in str(error.value).splitlines()[0]


async def test_it_blocks_nobody_and_ends_with_its_caller() -> None:
    hub = await recorded_hub()
    async with (
        asyncio.timeout(HANGS_SECONDS),
        _silent() as (url, reached, gone),
        serving_hub(hub, optimizer_of(hub, url)) as service,
        Client(service.mcp) as session,
    ):
        connection = await _sent(service, _call(NAME, LOWER))
        await reached.wait()
        await session.call_tool("fleet_overview", {})
        with pytest.raises(ToolError, match="another simulation runs: call again later"):
            await session.call_tool(NAME, LOWER)
        await connection.close()
        await gone.wait()
        reached.clear()
        again = asyncio.create_task(session.call_tool(NAME, LOWER))
        await reached.wait()
        again.cancel()


@asynccontextmanager
async def _silent() -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Event]]:
    """A Prometheus that never answers; yields its URL, and when it was asked, and left alone."""
    reached, gone = asyncio.Event(), asyncio.Event()

    async def wait(_request: web.Request) -> web.Response:
        reached.set()
        try:
            return await asyncio.Future[web.Response]()
        finally:
            gone.set()

    app = web.Application()
    app.router.add_get("/api/v1/query_range", wait)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", reached, gone
    finally:
        await runner.cleanup()


async def test_a_server_without_a_prometheus_does_not_have_it() -> None:
    async with client(await recorded_hub(), "") as session:
        assert NAME not in {tool.name for tool in await session.list_tools()}
