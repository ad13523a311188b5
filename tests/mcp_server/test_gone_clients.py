"""What a client asked for that disconnected meanwhile: the work stops, and nothing is written."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from dsf.kube import kinds
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube
from tests.eventually import eventually
from tests.mcp_server.service import Service, generated, serving, wish
from tests.mcp_server.test_http import HANGS_SECONDS, _post
from tests.optimizer.api.test_connection_limits import Connection, Held


def _call(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def _sent(service: Service, body: Mapping[str, Any]) -> Connection:
    address, content = urlsplit(service.url), json.dumps(body).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = Connection(*await asyncio.open_connection(address.hostname, address.port))
    await connection.send(head.encode() + content)
    return connection


def _holding(verb: str, kind: Kind) -> tuple[list[Held], Callable[[Kube], Kube]]:
    held: list[Held] = []

    def through(hub: Kube) -> Kube:
        held.append(Held(hub, verb, kind))
        return held[0]

    return held, through


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("plan_placement", wish(), kinds.POLICY),
        ("list_scores", {}, kinds.ADD_ON_PLACEMENT_SCORE),
        ("follow_rollout", {"namespace": "default"}, kinds.PLACEMENT_DECISION),
    ],
)
async def test_the_work_of_a_gone_client_is_cancelled(
    tool: str, arguments: dict[str, Any], kind: Kind
) -> None:
    held, through = _holding("list", kind)
    async with asyncio.timeout(HANGS_SECONDS), serving(through=through) as service:
        connection = await _sent(service, _call(tool, arguments))
        await held[0].reached.wait()
        await connection.close()
        await held[0].cancelled.wait()


async def test_a_gone_client_deletes_nothing() -> None:
    held, through = _holding("list", kinds.PLACEMENT_BINDING)
    async with asyncio.timeout(HANGS_SECONDS), serving(read_only=False, through=through) as service:
        held[0].reached.set()  # what was reached before is not held
        await _applied(service)
        held[0].reached.clear()
        before = await generated(service.hub)
        assert before
        held[0].passing = 1  # what is shown
        shown = await _post(service.mcp, _call("reset_placements", {"namespace": "default"}))
        digest = shown.json()["result"]["structuredContent"]["digest"]
        held[0].passing = 1
        asked = {"namespace": "default", "digest": digest}
        connection = await _sent(service, _call("reset_placements", asked))
        await held[0].reached.wait()
        await connection.close()
        await _post(service.mcp, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        held[0].released.set()

        async def the_lease_is_given_back() -> bool:
            leases = (await service.hub.list(kinds.LEASE, "default")).items
            return all(not item["spec"].get("holderIdentity") for item in leases)

        await eventually(the_lease_is_given_back)
        assert await generated(service.hub) == before


async def _applied(service: Service) -> None:
    shown = await _post(service.mcp, _call("plan_placement", wish()))
    digest = shown.json()["result"]["structuredContent"]["digest"]
    await _post(service.mcp, _call("apply_plan", {"digest": digest}))
