"""One line that adds this server to a client: a command of the client, or a link that it opens.

Source: each client's documentation, named beside it.
"""

import base64
import json
import shlex
from collections.abc import Callable, Mapping
from types import MappingProxyType
from urllib.parse import quote, urlencode

from mcp_server.install.clients import CLIENTS, TOKEN_VARIABLE, HttpServer, StdioServer

Server = StdioServer | HttpServer

LINE_ONLY: Mapping[str, str] = MappingProxyType(
    {"copilot": "Copilot CLI", "codex": "Codex", "goose": "goose"}
)
"""Clients whose own file is no JSON, or that have a command for it: their titles."""


def one_line(client: str, name: str, server: Server) -> str | None:
    """Return the line; None if this client has none for such a server."""
    line = _LINES.get(client)
    return line(name, server) if line else None


def _command(*words: str) -> str:
    return shlex.join(words)


def _json(client: str, server: Server) -> str:
    return json.dumps(CLIENTS[client].entry(server), separators=(",", ":"))


def _vscode(name: str, server: Server) -> str | None:
    """Source: https://code.visualstudio.com/docs/agents/reference/mcp-configuration."""
    if CLIENTS["vscode"].needed_inputs(server):
        return None
    entry = CLIENTS["vscode"].entry(server) or {}
    return _command("code", "--add-mcp", json.dumps({"name": name, **entry}))


def _claude(name: str, server: Server) -> str:
    """Source: https://code.claude.com/docs/en/mcp."""
    return _command("claude", "mcp", "add-json", name, _json("claude", server))


def _cursor(name: str, server: Server) -> str:
    """Source: https://cursor.com/docs/context/mcp/install-links."""
    config = base64.b64encode(_json("cursor", server).encode()).decode()
    query = urlencode({"name": name, "config": config})
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"


def _copilot(name: str, server: Server) -> str | None:
    """Source: https://docs.github.com/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers."""
    if isinstance(server, HttpServer):
        return None
    return _command("copilot", "mcp", "add", name, "--", server.command, *server.arguments)


def _codex(name: str, server: Server) -> str:
    """Source: https://developers.openai.com/codex/mcp."""
    if isinstance(server, StdioServer):
        return _command("codex", "mcp", "add", name, "--", server.command, *server.arguments)
    token = ("--bearer-token-env-var", TOKEN_VARIABLE) if server.token else ()
    return _command("codex", "mcp", "add", name, "--url", server.url, *token)


def _goose(name: str, server: Server) -> str | None:
    """Source: https://block.github.io/goose/deeplink-generator."""
    if isinstance(server, HttpServer):
        return None
    words = [("cmd", server.command), *(("arg", each) for each in server.arguments)]
    query = urlencode([*words, ("id", name), ("name", name)], quote_via=quote)
    return f"goose://extension?{query}"


_LINES: Mapping[str, Callable[[str, Server], str | None]] = MappingProxyType(
    {
        "vscode": _vscode,
        "claude": _claude,
        "cursor": _cursor,
        "copilot": _copilot,
        "codex": _codex,
        "goose": _goose,
    }
)
