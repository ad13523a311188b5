"""A conversation with a real model, which chooses the calls itself.

The endpoint is OpenAI-compatible (POST /chat/completions) or Anthropic's (POST /messages).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import httpx

from tests.evals.conversation import Conversation, ToolCall, missing_facts, wrong_facts
from tests.evals.fleets import FLEETS
from tests.evals.hub_facts import hub_facts, not_written
from tests.evals.recorded_past import PASTS
from tests.evals.replay import AssistantClient, Replay, assistant, true_of
from tests.mcp_server.strict_reader import read_truth
from tests.mcp_server.tool_names import WRITES

ROUNDS = 8
"""Answers of the model in one conversation; then it has lost its way."""

ANSWER_SECONDS = 300.0
"""Seconds that a model may take for one answer: small machines run large models slowly."""


MAX_ANSWER_TOKENS = 4096
"""Tokens of one answer; the API of Anthropic wants to be told a limit."""

Api = Literal["openai", "anthropic"]


@dataclass(frozen=True)
class ModelEndpoint:
    """Where a model is: a base URL such as http://localhost:11434/v1, its name, and a key."""

    url: str
    model: str
    key: str = ""
    api: Api = "openai"


@dataclass(frozen=True)
class Verdict:
    """How a model did in one conversation."""

    replay: Replay
    answer: str
    missing: tuple[str, ...]
    wrong: tuple[str, ...]
    prompt_tokens: int
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer has every fact and nothing wrong, and no name was guessed."""
        return not (self.missing or self.wrong or self.error or self.guessed)

    @property
    def guessed(self) -> tuple[str, ...]:
        """The names in its calls that nobody had told."""
        return tuple(name for item in self.replay.exchanges for name in item.guessed)


async def judged(endpoint: ModelEndpoint, conversation: Conversation) -> Verdict:
    """Let the model answer the question on a fresh hub, and judge its answer by that hub.

    A model that is not asked to write must not write.
    """
    hub, past = await FLEETS[conversation.fleet](), PASTS.get(conversation.fleet)
    conversation = true_of(await hub_facts(hub, past), conversation)
    before = await read_truth(hub, "default")
    async with assistant(hub, writes=conversation.writes, past=past) as client:
        replay, (answer, used, error) = Replay(conversation), ("", 0, "")
        try:
            answer, used = await _answered(endpoint, client, replay)
        except (httpx.HTTPError, KeyError, ValueError) as failure:
            error = f"{type(failure).__name__}: {failure}"
    asked_to_write = any(call.tool in WRITES for call in conversation.calls)
    if not asked_to_write and (await read_truth(hub, "default")).objects != before.objects:
        error = "it wrote to the hub, and nobody asked it to"
    if lacking := await not_written(hub, conversation.written):
        error = error or f"the hub differs: {lacking}"
    return Verdict(
        replay,
        answer,
        tuple(missing_facts(conversation, answer)),
        tuple(wrong_facts(conversation, answer)),
        used,
        error,
    )


class _Turn(NamedTuple):
    """One answer of a model: its words, the calls that it wants by id, and tokens of the prompt."""

    text: str
    calls: tuple[tuple[str, str, str | Mapping[str, Any]], ...]
    message: Any
    used: int


async def _answered(
    endpoint: ModelEndpoint, client: AssistantClient, replay: Replay
) -> tuple[str, int]:
    """Return the last words of the model, and how many tokens its prompts had in all."""
    messages: list[Any] = [{"role": "user", "content": replay.conversation.question}]
    asked, used = (_anthropic if endpoint.api == "anthropic" else _openai), 0
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as http:
        for _ in range(ROUNDS):
            turn = await asked(http, endpoint, client, messages)
            used += turn.used
            if not turn.calls:
                return turn.text, used
            told = [
                (key, await _result(client, replay, name, given)) for key, name, given in turn.calls
            ]
            messages += [turn.message, *_told(endpoint.api, told)]
    raise ValueError(f"no answer after {ROUNDS} rounds")


async def _openai(
    http: httpx.AsyncClient, endpoint: ModelEndpoint, client: AssistantClient, messages: list[Any]
) -> _Turn:
    """Source: https://platform.openai.com/docs/api-reference/chat."""
    functions = [
        {"name": name, "description": said, "parameters": schema}
        for name, said, schema in _tools(client)
    ]
    body = {
        "model": endpoint.model,
        "messages": [{"role": "system", "content": client.instructions}, *messages],
        "tools": [{"type": "function", "function": item} for item in functions],
        "temperature": 0,
    }
    headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    document = await _posted(http, f"{endpoint.url}/chat/completions", headers, body)
    message = document["choices"][0]["message"]
    calls = tuple(
        (item["id"], item["function"]["name"], item["function"].get("arguments") or "{}")
        for item in message.get("tool_calls") or ()
    )
    used = (document.get("usage") or {}).get("prompt_tokens", 0)
    return _Turn(message.get("content") or "", calls, message, used)


async def _anthropic(
    http: httpx.AsyncClient, endpoint: ModelEndpoint, client: AssistantClient, messages: list[Any]
) -> _Turn:
    """Source: https://docs.anthropic.com/en/api/messages, and tool use there."""
    body = {
        "model": endpoint.model,
        "max_tokens": MAX_ANSWER_TOKENS,
        "system": client.instructions,
        "messages": messages,
        "tools": [
            {"name": name, "description": said, "input_schema": schema}
            for name, said, schema in _tools(client)
        ],
    }
    headers = {"anthropic-version": "2023-06-01", "x-api-key": endpoint.key}
    document = await _posted(http, f"{endpoint.url}/messages", headers, body)
    content = document["content"]
    text = "\n".join(item["text"] for item in content if item["type"] == "text")
    calls = tuple(
        (item["id"], item["name"], item["input"]) for item in content if item["type"] == "tool_use"
    )
    used = (document.get("usage") or {}).get("input_tokens", 0)
    return _Turn(text, calls, {"role": "assistant", "content": content}, used)


def _told(api: Api, results: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the messages with the results of calls."""
    if api == "openai":
        return [
            {"role": "tool", "tool_call_id": key, "content": content} for key, content in results
        ]
    blocks = [
        {"type": "tool_result", "tool_use_id": key, "content": content} for key, content in results
    ]
    return [{"role": "user", "content": blocks}]


async def _posted(
    http: httpx.AsyncClient, url: str, headers: Mapping[str, str], body: Any
) -> dict[str, Any]:
    response = await http.post(url, json=body, headers=headers)
    response.raise_for_status()
    document: dict[str, Any] = response.json()
    return document


async def _result(
    client: AssistantClient, replay: Replay, tool: str, given: str | Mapping[str, Any]
) -> str:
    try:
        arguments = json.loads(given) if isinstance(given, str) else dict(given)
    except json.JSONDecodeError as error:
        return f"the arguments are not JSON: {error}"
    return (await client.call(replay, ToolCall(tool, arguments))).read


def _tools(client: AssistantClient) -> list[tuple[str, str, Any]]:
    return [(tool.name, tool.description or "", tool.input_schema) for tool in client.tools]
