"""`dsf mcp` as a process: what an assistant starts, and what a person does wrong."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from mcp_server.cli import mcp
from optimizer.api.serving import listen
from tests.command_line import invoked
from tests.mcp_server.service import generated, request, scenario_hub, wish
from tests.mcp_server.tool_names import READS

DSF = [sys.executable, "-m", "dsf"]
HANGS_SECONDS = 60
LOGGED = {"notifications/message", "notifications/progress"}
TOOLS_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[EmbeddedHub]:
    hub = await scenario_hub()
    async with serving(hub) as url:
        (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig(url)))
        yield hub


def _environment(folder: Path) -> dict[str, str]:
    """The environment of a shell: without what this process has set for itself."""
    shell = {key: value for key, value in os.environ.items() if not key.startswith("FASTMCP_")}
    return {**shell, "KUBECONFIG": str(folder / "config")}


def _client(folder: Path, answer: ElicitResult[Any], *, era: str) -> Client[Any]:
    async def handler(*_: object) -> ElicitResult[Any]:
        return answer

    command, *arguments = [*DSF, "mcp", "--allow-writes", "--log-level", "error"]
    transport = StdioTransport(
        command, arguments, env=_environment(folder), cwd=str(folder), keep_alive=False
    )
    return Client(transport, mode=era, elicitation_handler=handler)


@pytest.mark.parametrize("era", ["auto", pytest.param("legacy", marks=pytest.mark.exhaustive)])
async def test_on_stdio_a_person_is_asked(hub: EmbeddedHub, tmp_path: Path, era: str) -> None:
    answer = ElicitResult(action="decline")
    async with _client(tmp_path, answer, era=era) as client:
        plan = (await client.call_tool("plan_placement", wish())).structured_content
        assert plan["objective_value"] == 115
        with pytest.raises(ToolError, match="did not confirm"):
            await client.call_tool("apply_plan", {"digest": plan["digest"]})
        assert await generated(hub) == []
        answer.action, answer.content = "accept", {"confirm": True}
        await client.call_tool("apply_plan", {"digest": plan["digest"]})
        assert len(await generated(hub)) == 6


@asynccontextmanager
async def _started(
    folder: Path, *arguments: str, **streams: Any
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `dsf mcp`; it never outlives the test, and a hang fails instead of stopping the suite."""
    command = [*DSF, "mcp", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, env=_environment(folder), cwd=folder, **streams
    )
    try:
        async with asyncio.timeout(HANGS_SECONDS):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.exhaustive
async def test_nothing_but_the_protocol_is_on_standard_output(
    hub: EmbeddedHub, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("FASTMCP_LOG_ENABLED=true\nFASTMCP_LOG_LEVEL=nonsense\n")
    plan = {"name": "plan_placement", "arguments": wish()}
    calls = [
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": plan},
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    async with _started(tmp_path, "--log-level", "debug", **pipes) as process:
        assert process.stdin
        assert process.stdout
        for call in calls:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **call}).encode() + b"\n")
        await process.stdin.drain()
        answers = list[Any]()
        while not any(answer.get("id") == 3 for answer in answers):
            answers.append(json.loads(await process.stdout.readline()))
        process.stdin.close()  # communicate() alone leaves it open
        rest, _ = await process.communicate()
    by_id = {answer["id"]: answer["result"] for answer in answers if "id" in answer}
    assert {answer["method"] for answer in answers if "id" not in answer} <= LOGGED
    assert [tool["name"] for tool in by_id[2]["tools"]] == [*READS]
    assert by_id[3]["structuredContent"]["objective_value"] == 115
    assert rest == b""
    assert process.returncode == 0


@pytest.mark.exhaustive
async def test_over_http_the_tools_are_alone_and_a_signal_ends_it(
    hub: EmbeddedHub, tmp_path: Path
) -> None:
    arguments = ["--transport", "http", "--port", "0", "--auth", "none"]
    async with _started(tmp_path, *arguments, stderr=subprocess.PIPE) as process:
        assert process.stderr
        lines = [(await process.stderr.readline()).decode()]
        while lines[-1] and "message=serving" not in lines[-1]:
            lines.append((await process.stderr.readline()).decode())
        url = lines[-1].rpartition("url=")[2].strip()
        async with Client(url) as client:
            assert [tool.name for tool in await client.list_tools()] == [*READS]
            scores = await client.call_tool("list_scores")
            assert scores.structured_content["scores"][0]["entries"] == 12
        base = url.removesuffix("/mcp")
        async with httpx.AsyncClient(trust_env=False, base_url=base, timeout=HANGS_SECONDS) as http:
            assert (await http.get("/healthz")).text == "ok"
            assert (await http.post("/optimize", json=request())).status_code == 404
            evil = await http.post("/mcp", json=TOOLS_LIST, headers={"Host": "evil.example"})
            assert evil.status_code == 421
        process.terminate()
        await process.communicate()
    assert process.returncode == 0


def _fail(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    code, out, err = invoked(mcp, *arguments, env=_environment(folder))
    assert out == ""
    return code, err.splitlines()


def test_a_kubeconfig_that_is_missing_or_broken_is_one_line_at_start(tmp_path: Path) -> None:
    file = tmp_path / "config"
    assert _fail(tmp_path) == (1, [f"Error: kubeconfig {file}: No such file or directory"])
    config = kubeconfig("https://127.0.0.1:1")
    config["clusters"][0]["cluster"]["certificate-authority-data"] = "bm9uZQ=="
    file.write_text(yaml.safe_dump(config))
    code, lines = _fail(tmp_path)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith("Error: the certificates for https://127.0.0.1:1 cannot be used: ")


def test_a_used_port_is_one_line(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as listener:
        port = str(listener.getsockname()[1])
        code, lines = _fail(tmp_path, "--transport", "http", "--port", port)
    assert code == 1
    assert lines == [f"Error: port {port} of 127.0.0.1 is in use; choose another with --port"]


def test_a_port_without_http_is_wrong_usage(tmp_path: Path) -> None:
    code, lines = _fail(tmp_path, "--port", "8338")
    assert code == 2
    assert lines[-1] == "Error: --port needs --transport http"
