"""Follows a fleet by the HTTP API of an optimizer: reads it again whenever an event says so."""

import asyncio
import json
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

LEAST_SECONDS = 1.0
"""Seconds between two reads, however many events come."""

RETRY_SECONDS = 3.0
TIMEOUT_SECONDS = 20.0

MAX_BYTES = 64 << 20
"""Bytes of an answer: several times what a fleet of 10,000 clusters takes."""


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """What the optimizer answered, as JSON: the fleet, what is kept placed, and the rollouts.

    The latter are None for who may not read them.
    """

    fleet: dict[str, Any]
    kept: list[dict[str, Any]] | None
    rollouts: list[dict[str, Any]] | None


class RefusedRead(Exception):
    """The optimizer answered something else than a fleet; the message says what, without tokens."""


@dataclass(frozen=True, slots=True)
class FleetFollower:
    """The fleet of a namespace at an optimizer; `token` is empty where it asks for none."""

    url: str
    namespace: str
    token: str = ""
    tls: ssl.SSLContext | None = None

    async def follow(self, tell: Callable[[FleetAnswer | str], None]) -> None:
        """Tell each answer, or in a line why there is none, until cancelled; it tries again."""
        while True:
            try:
                async with self._client() as client:
                    await self._follow(client, tell)
            except* (httpx.HTTPError, httpx.InvalidURL, UnicodeError, RefusedRead) as errors:
                tell(_line(errors.exceptions[0]))
            await asyncio.sleep(RETRY_SECONDS)

    def _client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            params={"namespace": self.namespace},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            verify=self.tls or ssl.create_default_context(),
        )

    async def _follow(
        self, client: httpx.AsyncClient, tell: Callable[[FleetAnswer | str], None]
    ) -> None:
        changed = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            events = tasks.create_task(_listen(client, changed))
            while not events.done():
                changed.clear()
                tell(await _read(client))
                await asyncio.sleep(LEAST_SECONDS)
                await changed.wait()


async def _listen(client: httpx.AsyncClient, changed: asyncio.Event) -> None:
    """Set `changed` at each event, and when the stream ends: it lasts for minutes."""
    try:
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=None)
        async with client.stream("GET", "/fleet/events", timeout=timeout) as events:
            if not events.is_success:
                raise RefusedRead(_refusal(events, await _object(events)))
            async for line in events.aiter_lines():
                if line.startswith("data:"):
                    changed.set()
    finally:
        changed.set()


async def _read(client: httpx.AsyncClient) -> FleetAnswer:
    fleet = await _json(client, "/fleet", "clusters")
    return FleetAnswer(
        fleet, await _items(client, "/placementoptimizations"), await _items(client, "/rollouts")
    )


async def _items(client: httpx.AsyncClient, path: str) -> list[dict[str, Any]] | None:
    with suppress(RefusedRead):
        found: list[dict[str, Any]] = (await _json(client, path, "items"))["items"]
        return found
    return None


async def _json(client: httpx.AsyncClient, path: str, listed: str) -> dict[str, Any]:
    """Return an answer, which has a list. Raises RefusedRead."""
    async with client.stream("GET", path) as answer:
        found = await _object(answer)
    if not answer.is_success:
        raise RefusedRead(_refusal(answer, found))
    if found is None or not isinstance(found.get(listed), list):
        raise RefusedRead(f"GET {path}: the answer lists no {listed}: is it an optimizer?")
    return found


async def _object(answer: httpx.Response) -> dict[str, Any] | None:
    """Return the JSON object of an answer, None if it is none. Raises RefusedRead."""
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > MAX_BYTES:
            raise RefusedRead(f"{answer.request.url.path}: more than {MAX_BYTES} bytes")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refusal(answer: httpx.Response, found: dict[str, Any] | None) -> str:
    said = f": {found['detail']}" if found and "detail" in found else ""
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        said += "; name the file of a token with --token-file"
    return f"GET {answer.request.url.path} was answered {answer.status_code}{said}"


def _line(error: BaseException) -> str:
    if isinstance(error, RefusedRead):
        return str(error)
    return f"the optimizer can't be reached: {type(error).__name__}: {error}"
