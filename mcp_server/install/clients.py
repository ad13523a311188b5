"""The MCP clients that `dsf mcp install` knows: where each keeps its servers, and in which form.

Source: each client's documentation, named beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Entry = dict[str, Any]
"""What a client's file has about one server."""

TOKEN_VARIABLE = "DSF_MCP_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable whose token clients send to a server over HTTP."""

_VSCODE_INPUT = {
    "id": "dsf-mcp-token",
    "type": "promptString",
    "description": "Token for the Dynamic Scoring Framework (docs/reference/optimizer-access.md)",
    "password": True,
}


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that the client starts."""

    command: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that runs already; `token`: whether it wants a bearer token."""

    url: str
    token: bool = True


@dataclass(frozen=True, slots=True)
class McpClient:
    """How one client names its servers.

    `file` has a path for each `sys.platform`, or one under "" for all; it is relative to the
    working directory unless it starts with `~`. `secret` is how the configuration names the token.
    """

    title: str
    file: Mapping[str, str]
    key: str
    secret: str
    stdio: Callable[[StdioServer], Entry]
    http: Callable[[HttpServer, str], Entry] | None
    inputs: tuple[Entry, ...] = ()

    def path(self, platform: str) -> str:
        """Return the path of the file on a platform."""
        return self.file.get(platform) or self.file[""]

    def entry(self, server: StdioServer | HttpServer) -> Entry | None:
        """Return the entry of a server; None if this client reaches none over HTTP."""
        if isinstance(server, StdioServer):
            return self.stdio(server)
        return self.http(server, self.secret) if self.http else None

    def needed_inputs(self, server: StdioServer | HttpServer) -> tuple[Entry, ...]:
        """Return the questions that the client asks its user before it connects."""
        return self.inputs if isinstance(server, HttpServer) and server.token else ()


def _started(server: StdioServer) -> Entry:
    return {"command": server.command, "args": list(server.arguments)}


def _started_with_type(server: StdioServer) -> Entry:
    return {"type": "stdio", **_started(server)}


def _reached_by(key: str, **more: str) -> Callable[[HttpServer, str], Entry]:
    def entry(server: HttpServer, secret: str) -> Entry:
        headers = {"headers": {"Authorization": f"Bearer {secret}"}} if server.token else {}
        return {**more, key: server.url, **headers}

    return entry


_EVERYWHERE = ""
CLIENTS: Mapping[str, McpClient] = MappingProxyType(
    {
        # https://code.visualstudio.com/docs/agents/reference/mcp-configuration
        "vscode": McpClient(
            "VS Code",
            {_EVERYWHERE: ".vscode/mcp.json"},
            "servers",
            f"${{input:{_VSCODE_INPUT['id']}}}",
            _started_with_type,
            _reached_by("url", type="http"),
            (_VSCODE_INPUT,),
        ),
        # https://code.claude.com/docs/en/mcp
        "claude": McpClient(
            "Claude Code",
            {_EVERYWHERE: ".mcp.json"},
            "mcpServers",
            f"${{{TOKEN_VARIABLE}}}",
            _started_with_type,
            _reached_by("url", type="http"),
        ),
        # https://modelcontextprotocol.io/docs/develop/connect-local-servers
        "claude-desktop": McpClient(
            "Claude Desktop",
            {
                "darwin": "~/Library/Application Support/Claude/claude_desktop_config.json",
                "win32": "~/AppData/Roaming/Claude/claude_desktop_config.json",
                _EVERYWHERE: "~/.config/Claude/claude_desktop_config.json",
            },
            "mcpServers",
            "",
            _started,
            None,
        ),
        # https://cursor.com/docs/context/mcp
        "cursor": McpClient(
            "Cursor",
            {_EVERYWHERE: ".cursor/mcp.json"},
            "mcpServers",
            f"${{env:{TOKEN_VARIABLE}}}",
            _started,
            _reached_by("url"),
        ),
        # https://geminicli.com/docs/tools/mcp-server
        "gemini": McpClient(
            "Gemini CLI",
            {_EVERYWHERE: ".gemini/settings.json"},
            "mcpServers",
            f"${TOKEN_VARIABLE}",
            _started,
            _reached_by("httpUrl"),
        ),
        # https://docs.windsurf.com/windsurf/cascade/mcp
        "windsurf": McpClient(
            "Windsurf",
            {_EVERYWHERE: "~/.codeium/windsurf/mcp_config.json"},
            "mcpServers",
            f"${{env:{TOKEN_VARIABLE}}}",
            _started,
            _reached_by("serverUrl"),
        ),
    }
)
