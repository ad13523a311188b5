"""The two doors of one server, REST and MCP: one is no more open than the other."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig
from dsf.kube.embedded.http.server import serving as serving_hub
from mcp_server.app import create_service_app
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.mcp_server.service import generated, request, scenario_hub, wish
from tests.mcp_server.test_cli import DSF
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER, reads, writes

WRITES = {
    "/optimize": request(),
    "/reset": {"namespace": "default"},
    "/rollback": {"namespace": "default"},
    "/rollouts/default/default/undo": {},
}
HEADERS = {"Accept": "application/json, text/event-stream"}
TOOLS_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HANGS_SECONDS = 60


DENIED_TOOL = "Unknown tool"


@asynccontextmanager
async def doors(**options: Any) -> AsyncIterator[tuple[httpx.AsyncClient, EmbeddedHub]]:
    """Yield a client of both doors of an app; with `rights`, callers need a token and rights."""
    rights = options.pop("rights", None)
    hub = await scenario_hub(AccessTable(TOKENS, rights) if rights else None)
    if rights:
        options["access"] = Access(DelegatedAuth(hub))
    app = create_service_app(Optimizer(hub, now=utc_now), **options)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        yield http, hub


class WriteCase(NamedTuple):
    """Who calls, whether the server was started with --allow-writes, and what the doors say."""

    authentication: str
    caller: str
    allow_writes: bool
    rest: tuple[int, str]
    tool: str
    """How a refusal by MCP begins; empty: it wrote."""


WRITE_CASES = (
    WriteCase("none", "anybody", False, (403, "ReadOnly"), DENIED_TOOL),
    WriteCase("none", "anybody", True, (200, ""), ""),
    WriteCase("kubernetes", "writer", False, (403, "ReadOnly"), DENIED_TOOL),
    WriteCase("kubernetes", "writer", True, (200, ""), ""),
    WriteCase("kubernetes", "reader", False, (403, "ReadOnly"), DENIED_TOOL),
    WriteCase("kubernetes", "reader", True, (403, "Forbidden"), '"user system:'),
    WriteCase("kubernetes", "nobody", True, (401, "Unauthorized"), "(no session)"),
)
RIGHTS = {READER.name: reads("default"), WRITER.name: [*reads("default"), *writes("default")]}


@pytest.mark.parametrize("case", WRITE_CASES, ids=lambda case: "-".join(map(str, case[:3])))
async def test_both_doors_write_for_the_same_callers(case: WriteCase) -> None:
    options = {"rights": RIGHTS} if case.authentication == "kubernetes" else {}
    token = {"Authorization": f"Bearer token-of-{case.caller}"} if case.rest[0] != 401 else {}
    async with doors(read_only=not case.allow_writes, **options) as (http, hub):
        answer = await http.post("/optimize", json=request(), headers=token)
        assert (answer.status_code, answer.json().get("reason", "")) == case.rest
        assert bool(await generated(hub)) is (case.tool == "")
    async with doors(read_only=not case.allow_writes, **options) as (http, hub):
        assert (await applied_by_mcp(http, HEADERS | token)).startswith(case.tool)
        assert bool(await generated(hub)) is (case.tool == "")


async def applied_by_mcp(http: httpx.AsyncClient, headers: dict[str, str]) -> str:
    """Plan and apply with the tools; return the text of the refusal, or nothing."""
    planned = await called(http, headers, "plan_placement", wish())
    if planned is None:
        return "(no session)"
    digest = planned["structuredContent"]["digest"]
    applied = await called(http, headers, "apply_plan", {"digest": digest})
    assert applied is not None
    return applied["content"][0]["text"] if applied["isError"] else ""


async def called(
    http: httpx.AsyncClient, headers: dict[str, str], tool: str, arguments: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the result of a tool; None if the door refuses the request itself."""
    call = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = await http.post("/mcp", json=body, headers=headers)
    found: dict[str, Any] | None = answer.json().get("result")
    return found


async def test_a_server_writes_nothing_unless_it_is_told_that_it_may() -> None:
    async with doors() as (http, hub):
        for path, body in WRITES.items():
            refused = await http.post(path, json=body)
            assert (refused.status_code, refused.json()["reason"]) == (403, "ReadOnly"), path
            assert "--allow-writes" in refused.json()["detail"]
        assert (await http.post("/optimize?dry_run=true", json=request())).status_code == 200
        listed = (await http.post("/mcp", json=TOOLS_LIST, headers=HEADERS)).json()
        names = {tool["name"] for tool in listed["result"]["tools"]}
        assert "fleet_overview" in names
        assert not {"apply_plan", "reset_placements", "rollback", "change_rollout"} & names
        assert await generated(hub) == []


async def test_a_caller_has_one_limit_for_both_doors() -> None:
    async with doors(requests_per_second=0.25) as (http, _):
        assert (await http.get("/addonplacementscores")).status_code == 200
        for path in ("/addonplacementscores", "/mcp"):
            refused = await http.post(path, json=TOOLS_LIST, headers=HEADERS)
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("flags", "status", "writes"),
    [([], 403, False), (["--read-only"], 403, False), (["--allow-writes"], 200, True)],
)
async def test_the_flags_of_the_program_open_and_close_them(
    flags: list[str], status: int, writes: bool, tmp_path: Path
) -> None:
    hub = await scenario_hub()
    async with serving_hub(hub) as address:
        config = tmp_path / "config"
        config.write_text(yaml.safe_dump(kubeconfig(address)))
        options = [f"--kubeconfig={config}", "--port=0", "--auth=none", *flags]
        process = await asyncio.create_subprocess_exec(
            *DSF, "optimizer", *options, stderr=subprocess.PIPE
        )
        try:
            assert process.stderr
            line = ""
            while "message=serving" not in line:
                line = (await process.stderr.readline()).decode()
                assert line
            async with httpx.AsyncClient(
                base_url=line.rpartition("url=")[2].strip(), trust_env=False, timeout=HANGS_SECONDS
            ) as http:
                answer = await http.post("/optimize", json=request())
                listed = (await http.post("/mcp", json=TOOLS_LIST, headers=HEADERS)).json()
        finally:
            process.terminate()
            await process.communicate()
    assert answer.status_code == status
    assert ("apply_plan" in [tool["name"] for tool in listed["result"]["tools"]]) is writes
