"""What the repository publishes of its MCP server: `server.json` and `.vscode/mcp.json`."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from dsf import __version__
from mcp_server.cli import mcp
from tests.command_line import invoked

ROOT = Path(__file__).parents[3]
SERVER: dict[str, Any] = json.loads((ROOT / "server.json").read_text())
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_registries_accept_the_description() -> None:
    """The limits of the schema that the document names, and of the official registry."""
    assert SERVER["$schema"].endswith("/schemas/2025-12-11/server.schema.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])
    assert len(SERVER["description"]) <= 100
    assert len(SERVER["title"]) <= 100
    assert f"<!-- mcp-name: {SERVER['name']} -->" in (ROOT / "README.md").read_text()
    known = {"$schema", "name", "title", "description", "version", "packages", "repository"}
    assert set(SERVER) <= known


def test_the_package_of_server_json_is_this_one_and_its_command_exists() -> None:
    [package] = SERVER["packages"]
    assert SERVER["version"] == package["version"] == PROJECT["version"] == __version__
    assert package["identifier"] == PROJECT["name"]
    [source] = package["runtimeArguments"]
    assert source["value"] == f"{PROJECT['name']}[mcp]=={__version__}"
    # uvx --from SOURCE IDENTIFIER: the identifier is the name of a command.
    assert PROJECT["scripts"][package["identifier"]] == PROJECT["scripts"]["dsf"]
    command, *options = package["packageArguments"]
    assert command == {"type": "positional", "value": mcp.name}
    assert {item["name"] for item in options} <= {name for p in mcp.params for name in p.opts}


def test_the_workspace_starts_the_server_of_make_setup() -> None:
    servers = json.loads((ROOT / ".vscode" / "mcp.json").read_text())["servers"]
    started = servers["dynamic-scoring-framework"]
    assert started["command"] == "${workspaceFolder}/.venv/bin/dsf"
    assert (ROOT / ".venv" / "bin" / "dsf").exists()
    assert started["args"] == ["mcp"]


def test_the_guide_shows_what_the_command_prints(tmp_path: Path) -> None:
    guide = (ROOT / "docs/tutorials/development-guide.md").read_text()
    shown = re.search(r"```json\n(\{\n  \"servers\".*?)```", guide, re.DOTALL)
    assert shown
    options = ["--client", "vscode", "--url", "http://localhost:8338/mcp"]
    _, out, _ = invoked(mcp, "install", *options, "--file", str(tmp_path / "mcp.json"))
    assert json.loads(shown[1]) == json.loads(out)
