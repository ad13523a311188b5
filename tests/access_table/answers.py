"""How one caller asks a served optimizer, and what its answers say."""

import json
import re
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.access_table.callers import Caller, words_of

HANGS_SECONDS = 120
PER_CALL = frozenset(
    {"digest", "seconds", "record", "observed_at", "tag", "created", "since", "age_seconds"}
)
"""Fields that differ from call to call."""

_LACKING = re.compile(
    r"(?:list|create|patch|delete) [a-z]+\.[a-z0-9.-]+ in (?:namespace [\w-]+|all namespaces)"
    r"|get the non-resource URL /\w+"
)
_HEADERS = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Answer:
    """What a caller got: `refused` is empty, a status, or a status with the rights that it lacks.

    `shown`: what it was told, without what differs from call to call.
    """

    refused: str = ""
    lacking: frozenset[str] = frozenset()
    shown: Any = None

    @property
    def words(self) -> str:
        """Return the words for the rights that the caller lacks."""
        return ", ".join(sorted({words_of(item) for item in self.lacking}))


class Refused(Exception):
    """An answer before the last one of an operation was a refusal."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.refused)
        self.answer = answer


@dataclass(frozen=True)
class Asker:
    """One caller of a server at a URL."""

    url: str
    caller: Caller

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url, headers=self.caller.headers, trust_env=False, timeout=HANGS_SECONDS
        )

    async def rest(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask by REST."""
        async with self.client() as http:
            found = await http.request(method, path, json=body)
        if found.is_success:
            told = found.headers["content-type"].startswith("application/json")
            return Answer(shown=seen(found.json()) if told else bool(found.content))
        return refusal(found)

    async def events(self, path: str) -> Answer:
        """Open an event stream by REST; read its first event."""
        async with self.client() as http, http.stream("GET", path) as found:
            if not found.is_success:
                await found.aread()
                return refusal(found)
            async for line in found.aiter_lines():
                if line.startswith("data: "):
                    return Answer(shown=seen(json.loads(line.removeprefix("data: "))))
        raise AssertionError("the stream ended without an event")

    async def mcp(self, method: str, /, **params: Any) -> Answer:
        """Ask by a method of MCP."""
        answer = await self._answered(method, **params)
        if isinstance(answer, Answer):
            return answer
        return Answer(shown=seen(answer.get("structuredContent", answer)))

    async def _answered(self, method: str, /, **params: Any) -> dict[str, Any] | Answer:
        """Return the result of a method, or the refusal."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self.client() as http:
            found = await http.post("/mcp", json=call, headers=_HEADERS)
        if not found.is_success:
            return refusal(found)
        answer = found.json()
        if "error" in answer:
            return of_text(answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return of_text(result["content"][0]["text"]) if result.get("isError") else result

    async def tool(self, name: str, /, **arguments: Any) -> Answer:
        """Call a tool."""
        return await self.mcp("tools/call", name=name, arguments=arguments)

    async def result_of(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its whole result. Raises Refused."""
        answer = await self._answered("tools/call", name=name, arguments=arguments)
        if isinstance(answer, Answer):
            raise Refused(answer)
        found: dict[str, Any] = answer["structuredContent"]
        return found

    async def subscription(self, uri: str) -> Answer:
        """Subscribe to a resource; what is shown are the resources that are honored."""
        if not self.caller.has_token:  # The SDK's client does not tell the status.
            return await self.mcp("subscriptions/listen", notifications={})
        async with (
            httpx2.AsyncClient(headers=self.caller.headers, timeout=HANGS_SECONDS) as http,
            Client(streamable_http_client(f"{self.url}/mcp", http_client=http)) as client,
            client.listen(resource_subscriptions=[uri]) as stream,
        ):
            return Answer(shown=stream.honored.resource_subscriptions)


def refusal(found: httpx.Response) -> Answer:
    """Read a refusal by problem details."""
    problem = found.json()
    if problem["reason"] in ("Forbidden", "NoWaitingPlan"):
        return of_text(problem["detail"])
    assert found.status_code == 401, problem
    return Answer("401")


def of_text(text: str) -> Answer:
    """Read a refusal that names the rights that the caller lacks.

    That a process which started later has no plan that waits is told to those who may see it.
    """
    if "made before the optimizer started" in text:
        return Answer(shown=text)
    lacking = frozenset(_LACKING.findall(text))
    assert lacking, text
    return Answer("403", lacking)


def seen(answer: Any) -> Any:
    """Return what an answer says apart from what differs from call to call."""
    if isinstance(answer, dict):
        return {key: seen(value) for key, value in answer.items() if key not in PER_CALL}
    return [seen(item) for item in answer] if isinstance(answer, list) else answer
