"""A chat that shows MCP Apps: one document, built from the extension's own AppBridge."""

import json
import subprocess
from pathlib import Path
from urllib.parse import urlencode

from tests.repository import ROOT

_PAGE = ROOT / "optimizer" / "page"


def build_chat_host(folder: Path) -> str:
    """Build the document with the page's own packages into `folder`, and return it."""
    subprocess.run([_PAGE / "npm.sh", "run", "--silent", "chat-host", "--", folder], check=True)
    return (folder / "chat-host.html").read_text(encoding="utf-8")


def chat_url(service: str, tool: str, arguments: dict[str, object], options: str = "") -> str:
    """The address at which the document calls a tool of a service, and shows its view."""
    asked = urlencode({"tool": tool, "arguments": json.dumps(arguments)})
    return f"{service}/chat?{asked}&{options}"
