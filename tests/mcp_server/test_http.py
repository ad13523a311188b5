"""The endpoint itself: both spellings, one bare POST, and who may call it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastmcp import Client

from tests.mcp_server.service import Service, generated, request, serving
from tests.mcp_server.tool_names import READS, VIEW, WRITES

pytestmark = pytest.mark.asyncio(loop_scope="module")

HANGS_SECONDS = 60
HEADERS = {"Accept": "application/json, text/event-stream"}
TOOLS_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


async def _post(url: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=HANGS_SECONDS) as client:
        return await client.post(url, json=body, headers={**HEADERS, **headers})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service() -> AsyncIterator[Service]:
    async with serving(read_only=False, allowed_hosts=("optimizer.example",)) as service:
        yield service


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_one_bare_post_lists_the_tools(service: Service, path: str) -> None:
    response = await _post(f"{service.url}{path}", TOOLS_LIST)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    tools = response.json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == [*READS, *VIEW, *WRITES]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example", 421),
        ("Host", "127.0.0.1.evil.example", 421),
        ("Origin", "http://evil.example", 403),
        ("Host", "optimizer.example", 200),
        ("Host", "localhost:8338", 200),
    ],
)
async def test_only_named_hosts_may_be_called(
    service: Service, path: str, header: str, value: str, status: int
) -> None:
    response = await _post(f"{service.url}{path}", TOOLS_LIST, **{header: value})
    assert response.status_code == status


async def test_the_http_api_answers_beside_it(service: Service) -> None:
    async with httpx.AsyncClient(
        trust_env=False, base_url=service.url, timeout=HANGS_SECONDS
    ) as client:
        assert (await client.get("/healthz")).status_code == 200
        dry_run = await client.post("/optimize", json={**request(), "dryRun": True})
        assert dry_run.json()["objective_value"] == 115
        assert "/mcp" not in (await client.get("/openapi.json")).json()["paths"]
        assert (await client.get("/mcp")).status_code == 405


@pytest.mark.parametrize("tool", ["apply_plan", "reset_placements"])
async def test_a_raw_call_can_not_reach_what_a_read_only_server_lacks(tool: str) -> None:
    async with serving(read_only=True) as service:
        params = {"name": tool, "arguments": {"namespace": "default", "digest": "0" * 64}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = (await _post(service.mcp, body)).json()["result"]
    assert result["isError"] is True
    assert "Unknown tool" in result["content"][0]["text"]


@pytest.mark.parametrize("state", [None, "reset_placements default", "v1.AAAA"])
async def test_an_answer_to_a_question_that_was_not_asked_does_not_count(
    service: Service, state: str | None
) -> None:
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "forger", "version": "1"},
    }
    params = {
        "_meta": meta,
        "name": "reset_placements",
        "arguments": {"namespace": "default", "digest": ""},
        "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": True}}},
        **({"requestState": state} if state else {}),
    }
    await _plan_and_apply(service)
    async with Client(service.mcp) as client:
        shown = (
            await client.call_tool("reset_placements", {"namespace": "default"})
        ).structured_content
    params["arguments"] = {"namespace": "default", "digest": shown["digest"]}
    response = await _post(
        service.mcp,
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        **{
            "MCP-Protocol-Version": version,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "reset_placements",
        },
    )
    answer = response.json()
    if state:
        assert answer["error"]["message"] == "Invalid or expired requestState"
    else:
        assert answer["result"]["resultType"] == "input_required"
    assert len(await generated(service.hub)) == 6


async def _plan_and_apply(service: Service) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=HANGS_SECONDS) as client:
        (await client.post(f"{service.url}/optimize", json=request())).raise_for_status()
