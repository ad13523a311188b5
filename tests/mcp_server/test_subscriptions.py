"""Subscriptions to resources, by the SDK's client over a real socket."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from mcp_server import resources
from optimizer.api.caller_limits import LISTEN, SUBSCRIPTIONS
from optimizer.wire.request_problem import TOO_MANY_REQUESTS
from tests.mcp_server.service import POWER, Service, serving
from tests.mcp_server.test_access import door
from tests.optimizer.operations.access.callers import READER, reads

HANGS_SECONDS = 60
SCORE = f"scores://worker01/{POWER}"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a resource again at once, and not only after seconds."""
    monkeypatch.setattr(resources, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr("optimizer.service.hub.watched_hub.UNTOLD_SECONDS", 0.02)


async def changed(service: Service, value: int) -> None:
    status = {"status": {"scores": [{"name": "app01;all", "value": value}]}}
    await service.hub.patch(ADD_ON_PLACEMENT_SCORE, POWER, status, "worker01", subresource="status")


async def test_a_subscriber_is_told_of_each_change_of_what_it_can_read() -> None:
    asked = ["scores://worker01/nothing", SCORE, "other://default", "fleet://default"]
    async with (
        serving() as service,
        Client(service.mcp) as client,
        asyncio.timeout(HANGS_SECONDS),
        client.listen(resource_subscriptions=[*asked, "docs://scoring-api"]) as stream,
    ):
        assert client.server_capabilities.resources
        assert client.server_capabilities.resources.subscribe
        assert stream.honored.resource_subscriptions == [SCORE, "fleet://default"]
        for value in (1, 2):
            await changed(service, value)
            told = {await anext(stream), await anext(stream)}
            assert told == {ResourceUpdated(SCORE), ResourceUpdated("fleet://default")}
            [found] = (await client.read_resource(SCORE)).contents
            assert f'"value":{value}' in found.text


@pytest.mark.parametrize(
    ("token", "honored"), [("token-of-reader", [SCORE]), ("token-of-stranger", None)]
)
async def test_a_subscriber_is_told_of_nothing_that_it_may_not_read(
    token: str, honored: list[str] | None
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        door({READER.name: reads("default")}) as mcp,
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(mcp.url, http_client=http)) as client,
        asyncio.timeout(HANGS_SECONDS),
        client.listen(resource_subscriptions=[SCORE]) as stream,
    ):
        assert stream.honored.resource_subscriptions == honored


async def test_a_stream_ends_by_itself_and_the_client_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resources, "STREAM_SECONDS", 0.01)
    async with (
        serving() as service,
        Client(service.mcp) as client,
        asyncio.timeout(HANGS_SECONDS),
        client.listen(resource_subscriptions=[SCORE]) as stream,
    ):
        assert [event async for event in stream] == []


async def test_one_user_has_few_streams_and_gets_a_place_back() -> None:
    problems: list[dict[str, Any]] = []

    async def keep(response: httpx2.Response) -> None:
        if response.status_code == TOO_MANY_REQUESTS:
            problems.append(json.loads(await response.aread()))

    async with (
        serving() as service,
        httpx2.AsyncClient(event_hooks={"response": [keep]}) as http,
        Client(streamable_http_client(service.mcp, http_client=http)) as client,
        asyncio.timeout(HANGS_SECONDS),
    ):
        async with AsyncExitStack() as streams:
            for _ in range(SUBSCRIPTIONS.of_caller):
                await streams.enter_async_context(client.listen(resource_subscriptions=[SCORE]))
            with pytest.raises(MCPError):
                async with client.listen(resource_subscriptions=[SCORE]):
                    pass
            assert [problem["reason"] for problem in problems] == ["TooManyStreams"]
        while True:
            try:
                async with client.listen(resource_subscriptions=[SCORE]) as stream:
                    assert stream.honored.resource_subscriptions == [SCORE]
                    return
            except MCPError:  # until the server has seen that a stream was closed
                await asyncio.sleep(0)


async def test_nothing_but_a_subscription_holds_a_stream_or_a_session() -> None:
    """Those of earlier protocols can't subscribe; a request without the header is refused."""
    listen = {"jsonrpc": "2.0", "id": 1, "method": LISTEN, "params": {"notifications": {}}}
    accepts = {"Accept": "application/json, text/event-stream"}
    async with serving() as service, httpx2.AsyncClient() as http, asyncio.timeout(HANGS_SECONDS):
        assert (await http.get(service.mcp, headers=accepts)).status_code == 405
        for protocol in ("2025-06-18", "2026-07-28"):
            headers = {**accepts, "MCP-Protocol-Version": protocol}
            answered = await http.post(service.mcp, json=listen, headers=headers)
            assert "error" in answered.json(), protocol
            assert "mcp-session-id" not in answered.headers
