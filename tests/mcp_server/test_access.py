"""Who gets in at the MCP door, and who sees which plans."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET
from mcp_server.app import create_service_app
from mcp_server.server import create_mcp
from optimizer.api.serving import listen, serve, url
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.access.shown_plans import APPROVAL_SECONDS, ShownPlans
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.mcp_server.service import POWER, generated, request, scenario_hub, wish
from tests.optimizer.build import NOW
from tests.optimizer.build import request as guide_request
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER, reads, writes

HANGS_SECONDS = 60
HEADERS = {"Accept": "application/json, text/event-stream"}
BOTH_WRITE = {user.name: [*reads("default"), *writes("default")] for user in (READER, WRITER)}
ONE_WRITES = {READER.name: reads("default"), WRITER.name: BOTH_WRITE[WRITER.name]}
APPS: list[Any] = [partial(create_service_app, alone=True), create_service_app]


class Door:
    """The MCP door of a running server."""

    def __init__(self, hub: EmbeddedHub, address: str) -> None:
        self.hub = hub
        self.url = f"{address}/mcp"

    async def post(self, method: str, token: str, **params: Any) -> httpx.Response:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = HEADERS | ({"Authorization": f"Bearer {token}"} if token else {})
        async with httpx.AsyncClient(trust_env=False, timeout=HANGS_SECONDS) as http:
            return await http.post(self.url, json=call, headers=headers)

    async def call(self, tool: str, token: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.post("tools/call", token, name=tool, arguments=arguments)
        result: dict[str, Any] = answer.json()["result"]
        return result

    async def plan(self, token: str, score: str = POWER) -> str:
        result = await self.call("plan_placement", token, **wish(score))
        return str(result["structuredContent"]["digest"])


@asynccontextmanager
async def door(rights: dict[str, Any], create: Any = create_service_app) -> AsyncIterator[Door]:
    hub = await scenario_hub(AccessTable(TOKENS, rights))
    optimizer = Optimizer(hub, now=utc_now)
    app = create(optimizer, read_only=False, access=Access(DelegatedAuth(hub)))
    with listen("127.0.0.1", 0) as listener:
        task = asyncio.create_task(serve(app, listener))
        try:
            yield Door(hub, url(listener))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


@pytest.mark.parametrize("create", APPS)
@pytest.mark.parametrize("token", ["", "forged", "token-for-the-api-server", "token-of-yesterday"])
async def test_without_a_valid_token_not_even_the_tools_are_listed(create: Any, token: str) -> None:
    async with door(ONE_WRITES, create) as mcp:
        answer = await mcp.post("tools/list", token)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert answer.json()["reason"] == "Unauthorized"


@pytest.mark.parametrize("create", APPS)
async def test_a_tool_does_what_its_caller_may_do(create: Any) -> None:
    async with door(ONE_WRITES, create) as mcp:
        refused = await mcp.call("list_scores", "token-of-stranger")
        assert "list addonplacementscores.cluster.open-cluster-management.io" in text(refused)
        digest = await mcp.plan("token-of-reader")
        for result in (
            await mcp.call("apply_plan", "token-of-reader", digest=digest),
            await mcp.call("reset_placements", "token-of-reader", namespace="default"),
        ):
            assert result["isError"] is True
            assert "create placements.cluster.open-cluster-management.io" in text(result)
        assert await generated(mcp.hub) == []
        own = await mcp.plan("token-of-writer")
        assert own == digest
        applied = await mcp.call("apply_plan", "token-of-writer", digest=own)
        assert applied["isError"] is False
        assert len(await generated(mcp.hub)) == 6


async def test_a_plan_is_known_to_its_asker_alone() -> None:
    async with door(BOTH_WRITE) as mcp:
        digest = await mcp.plan("token-of-reader")
        for guess in (digest, "x"):
            refused = await mcp.call("apply_plan", "token-of-writer", digest=guess)
            assert refused["isError"] is True
            assert digest not in text(refused).replace(guess, "")
        assert await generated(mcp.hub) == []
        assert digest not in text(await mcp.call("apply_plan", "token-of-reader", digest="x"))


async def shown(count: int) -> list[Plan]:
    """Plans with different digests."""
    plan = await Optimizer(await hub_of(), now=lambda: NOW).plan(guide_request())
    assert isinstance(plan, Plan)
    return [replace(plan, digest=f"digest-{number}") for number in range(count)]


async def test_who_asks_for_many_plans_drops_only_their_own() -> None:
    plans = await shown(4)
    digests = [plan.digest for plan in plans]
    kept = ShownPlans(most_of_owner=3, most=4)
    quiet, busy, third = ("quiet", ""), ("busy", ""), ("third", "")
    kept.add(quiet, plans[0])
    for plan in plans:
        kept.add(busy, plan)
    assert kept.digests(busy) == tuple(reversed(digests[1:]))
    assert kept.digests(quiet) == (digests[0],)
    kept.add(third, plans[0])
    assert kept.digests(busy) == tuple(reversed(digests[2:]))
    assert kept.get(quiet, digests[0]) is plans[0]
    kept.forget(quiet, digests[0])
    assert kept.get(quiet, digests[0]) is None
    assert kept.get(third, digests[0]) is plans[0]
    assert kept.get(("quiet", "another uid"), digests[0]) is None


async def test_an_approval_expires_and_showing_the_plan_again_renews_it() -> None:
    now = [0.0]
    hub = await scenario_hub()
    mcp = create_mcp(lambda: Optimizer(hub, now=utc_now), read_only=False, clock=lambda: now[0])
    async with Client(mcp) as client:
        digest = (await client.call_tool("plan_placement", wish())).structured_content["digest"]
        now[0] = APPROVAL_SECONDS + 1
        with pytest.raises(ToolError, match="approval has expired; call plan_placement again"):
            await client.call_tool("apply_plan", {"digest": digest})
        assert await generated(hub) == []
        await client.call_tool("plan_placement", wish())
        now[0] += APPROVAL_SECONDS
        await client.call_tool("apply_plan", {"digest": digest})
    assert len(await generated(hub)) == 6


async def test_what_changed_since_it_was_shown_is_named() -> None:
    hub = await scenario_hub()
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now), read_only=False)) as client:
        digest = (await client.call_tool("plan_placement", wish())).structured_content["digest"]
        name = request()["targetWorkloads"][0]["name"]
        labels = {"metadata": {"labels": {"resource-request-amount": "1"}}}
        await hub.patch(MANIFEST_WORK_REPLICA_SET, name, labels, "default")
        said = f"workload {name}: requests 1 gpu now; requests 2 gpu when it was planned"
        with pytest.raises(ToolError, match=said):
            await client.call_tool("apply_plan", {"digest": digest})
    assert await generated(hub) == []
