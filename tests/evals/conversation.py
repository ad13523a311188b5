"""A conversation: what a user asks, the calls that answer it, and what the answer must contain."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "conversations"

MAX_CALLS = 2
"""Calls of a conversation that states no other number."""

MAX_TOKENS = 1500
"""Tokens of all results of a conversation that states no other number."""


@dataclass(frozen=True)
class ToolCall:
    """One call. A text `$2.digest` in its arguments is that field of the second result."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    fails: bool = False


@dataclass(frozen=True)
class Conversation:
    """A question about a fleet, the calls that answer it, and how an answer is judged.

    `facts` must be in the answer, and in what the calls return; `wrong` may be in neither. A fact
    with ` | ` in it is one of several. `writes`: the tools that write are allowed. No text of a
    tool was tuned on the `held_out` ones.
    """

    name: str
    fleet: str
    question: str
    calls: tuple[ToolCall, ...]
    facts: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    writes: bool = False
    held_out: bool = False
    max_calls: int = MAX_CALLS
    max_tokens: int = MAX_TOKENS


def conversations() -> list[Conversation]:
    """Return all conversations, in the order of the files."""
    return [
        Conversation(
            **{
                **item,
                "fleet": path.stem,
                "calls": tuple(ToolCall(**call) for call in item["calls"]),
                "facts": tuple(item["facts"]),
                "wrong": tuple(item.get("wrong", ())),
            }
        )
        for path in sorted(FOLDER.glob("*.yaml"))
        for item in yaml.safe_load(path.read_text())
    ]


def missing_facts(conversation: Conversation, answer: str) -> list[str]:
    """Return the facts that an answer lacks; letter case and white space do not count."""
    said = _plain(answer)
    return [
        fact
        for fact in conversation.facts
        if not any(_plain(form) in said for form in fact.split(" | "))
    ]


def wrong_facts(conversation: Conversation, answer: str) -> list[str]:
    """Return what an answer says and must not."""
    said = _plain(answer)
    return [fact for fact in conversation.wrong if _plain(fact) in said]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
