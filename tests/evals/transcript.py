"""The page with a whole conversation: the questions, the calls and what the tools answer."""

import json
import re
from pathlib import Path

import yaml

from dsf.kube.clock import utc_now
from tests.evals.conversation import Conversation, ToolCall
from tests.evals.fleets import guide
from tests.evals.replay import Exchange, Replay, assistant

FILE = Path(__file__).with_suffix(".yaml")

_HEAD = """\
# A conversation with an assistant

For people who want to see what an assistant reads and does before they
[connect one](../how-to/assistants.md). At its end you have seen a plan shown, applied, explained
and taken back.

The questions are a user's, the calls are what an assistant makes of them, and the texts are what
the tools answer. Each answer also has a structured result, which is not shown. The server runs
with `--allow-writes` on the fleet of the [development guide](development-guide.md), which also has
a score for the carbon intensity of the grid. `python -m tests.evals --transcript` prints this page,
and a test compares it.
"""


async def transcript() -> str:
    """Return the page."""
    parts = yaml.safe_load(FILE.read_text())
    replay = Replay(Conversation("transcript", "guide", "", (), (), writes=True))
    sections = [_HEAD]
    start = utc_now()
    async with assistant(await guide(now=lambda: start), writes=True) as client:
        for part in parts:
            made = [await client.call(replay, ToolCall(**call)) for call in part["calls"]]
            sections.append(f"## {part['question']}\n\n" + "\n".join(map(_shown, made)))
    return "\n".join(sections)


def _shown(exchange: Exchange) -> str:
    arguments = json.dumps(exchange.call.arguments)
    text = re.sub(r"\d+s ago", "2s ago", exchange.text)
    text = re.sub(r"since \S+Z", "since 2026-11-20T12:00:00Z", text)
    return f"```text\n> {exchange.call.tool} {arguments}\n{text}\n```\n"
