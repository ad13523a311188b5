"""The two doors of one server, REST and MCP: one is no more open than the other."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig
from dsf.kube.embedded.http.server import serving as serving_hub
from mcp_server.app import create_service_app
from optimizer.service import Optimizer
from tests.mcp_server.service import generated, request, scenario_hub
from tests.mcp_server.test_cli import DSF

WRITES = {
    "/optimize": request(),
    "/reset": {"namespace": "default"},
    "/rollback": {"namespace": "default"},
    "/rollouts/default/default/undo": {},
}
HEADERS = {"Accept": "application/json, text/event-stream"}
TOOLS_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HANGS_SECONDS = 60


@asynccontextmanager
async def doors(**options: Any) -> AsyncIterator[tuple[httpx.AsyncClient, EmbeddedHub]]:
    """Yield a client of both doors of an app."""
    hub = await scenario_hub()
    app = create_service_app(Optimizer(hub, now=utc_now), **options)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        yield http, hub


async def test_read_only_closes_both_doors_for_writes_and_none_for_reads() -> None:
    async with doors(http_writes=False) as (http, hub):
        for path, body in WRITES.items():
            refused = await http.post(path, json=body)
            assert (refused.status_code, refused.json()["reason"]) == (403, "ReadOnly"), path
        assert (await http.post("/optimize?dry_run=true", json=request())).status_code == 200
        listed = (await http.post("/mcp", json=TOOLS_LIST, headers=HEADERS)).json()
        names = [tool["name"] for tool in listed["result"]["tools"]]
        assert "fleet_overview" in names
        assert not {"apply_plan", "reset_placements", "rollback"} & set(names)
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
    [([], 200, False), (["--read-only"], 403, False), (["--allow-writes"], 200, True)],
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
