"""A conversation: what a user asks, the calls that answer it, and what the answer must contain."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "conversations"

REQUESTS = Path(__file__).parent / "requests.yaml"

REQUEST_CALLS, REQUEST_CHARACTERS = 3, 6_000
"""Calls of a request of an operator at most, and characters of all texts and structures."""

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
    with ` | ` in it is one of several; parts of it with ` & ` between them must be in one line. A
    name in braces is one of HubFacts. `writes`: the tools that write are allowed. No text of a tool
    was tuned on the `held_out` ones. `remains`: why today's tools can't answer; empty: they can.
    `written`: our annotations of objects of the hub afterwards, by kind and name.
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
    max_characters: int = 0
    remains: str = ""
    written: dict[str, dict[str, str]] = field(default_factory=dict)


def conversations() -> list[Conversation]:
    """Return all conversations, in the order of the files; then the requests in each wording."""
    return [*_of_fleets(), *_requests()]


def _requests() -> Iterator[Conversation]:
    """Yield what operators ask for, each in three wordings, bounded by calls and characters."""
    for item in yaml.safe_load(REQUESTS.read_text()):
        wordings, calls = item.pop("wordings"), item.pop("calls", ())
        facts, wrong = item.pop("facts"), item.pop("wrong", ())
        name = item.pop("name")
        for number, question in enumerate(wordings, 1):
            yield Conversation(
                name=f"{name} ({number})",
                question=question,
                calls=tuple(ToolCall(**call) for call in calls),
                facts=tuple(facts),
                wrong=tuple(wrong),
                max_calls=REQUEST_CALLS,
                max_tokens=REQUEST_CHARACTERS,
                max_characters=REQUEST_CHARACTERS,
                **item,
            )


def _of_fleets() -> list[Conversation]:
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
    return [fact for fact in conversation.facts if not _says(answer, fact)]


def wrong_facts(conversation: Conversation, answer: str) -> list[str]:
    """Return what an answer says and must not."""
    return [fact for fact in conversation.wrong if _says(answer, fact)]


def _says(answer: str, fact: str) -> bool:
    parts = [[_plain(form) for form in part.split(" | ")] for part in fact.split(" & ")]
    lines = answer.splitlines() if len(parts) > 1 else [answer]
    return any(
        all(any(form in said for form in forms) for forms in parts) for said in map(_plain, lines)
    )


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
