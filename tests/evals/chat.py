"""A conversation with a real model behind an OpenAI-compatible endpoint: it chooses the calls."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.evals.conversation import Conversation, ToolCall, missing_facts, wrong_facts
from tests.evals.fleets import FLEETS
from tests.evals.replay import AssistantClient, Replay, assistant

ROUNDS = 8
"""Answers of the model in one conversation; then it has lost its way."""

ANSWER_SECONDS = 300.0
"""Seconds that a model may take for one answer: small machines run large models slowly."""


@dataclass(frozen=True)
class ModelEndpoint:
    """Where a model is: a base URL such as http://localhost:11434/v1, its name, and a key."""

    url: str
    model: str
    key: str = ""


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
    """Let the model answer the question on a fresh hub, and judge its answer."""
    hub = await FLEETS[conversation.fleet]()
    async with assistant(hub, writes=conversation.writes) as client:
        replay, (answer, used, error) = Replay(conversation), ("", 0, "")
        try:
            answer, used = await _answered(endpoint, client, replay)
        except (httpx.HTTPError, KeyError, ValueError) as failure:
            error = f"{type(failure).__name__}: {failure}"
    return Verdict(
        replay,
        answer,
        tuple(missing_facts(conversation, answer)),
        tuple(wrong_facts(conversation, answer)),
        used,
        error,
    )


async def _answered(
    endpoint: ModelEndpoint, client: AssistantClient, replay: Replay
) -> tuple[str, int]:
    """Return the last words of the model, and how many tokens its prompts had in all."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": client.instructions},
        {"role": "user", "content": replay.conversation.question},
    ]
    used = 0
    headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    async with httpx.AsyncClient(headers=headers, timeout=ANSWER_SECONDS) as http:
        for _ in range(ROUNDS):
            body = {
                "model": endpoint.model,
                "messages": messages,
                "tools": _functions(client),
                "temperature": 0,
            }
            response = await http.post(f"{endpoint.url}/chat/completions", json=body)
            response.raise_for_status()
            document = response.json()
            message = document["choices"][0]["message"]
            used += (document.get("usage") or {}).get("prompt_tokens", 0)
            calls = message.get("tool_calls") or []
            if not calls:
                return message.get("content") or "", used
            messages.append(message)
            messages += [await _result(client, replay, item) for item in calls]
    raise ValueError(f"no answer after {ROUNDS} rounds")


async def _result(
    client: AssistantClient, replay: Replay, item: Mapping[str, Any]
) -> dict[str, Any]:
    function = item["function"]
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except json.JSONDecodeError as error:
        content = f"the arguments are not JSON: {error}"
    else:
        exchange = await client.call(replay, ToolCall(function["name"], arguments))
        content = exchange.read
    return {"role": "tool", "tool_call_id": item["id"], "content": content}


def _functions(client: AssistantClient) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.input_schema,
            },
        }
        for tool in client.tools
    ]
