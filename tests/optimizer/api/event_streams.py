"""A served optimizer over a served hub, with one rollout, and readers of its event stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml
from starlette.types import ASGIApp, Message

from dsf.kube import kinds
from dsf.kube.client.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig
from dsf.kube.embedded.http.server import serving as serving_hub
from optimizer.api.app import create_app
from optimizer.api.caller_limits import StreamLimits
from optimizer.api.serving import ConnectionLimits, listen, serve, url
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.access.rights import record_rights
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.open_watches import OpenWatches
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.build import NOW
from tests.optimizer.follow.record.signing import copy_key, sign
from tests.optimizer.follow.rollout.guide_rollout import guide_rollout
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER, reads, writes

EVENTS = "/rollouts/default/default/events"
PLANS = kinds.PLACEMENT_PLAN.resource
HANGS_SECONDS = 120.0
RIGHTS = {
    READER.name: [*reads("default"), *record_rights("default")],
    WRITER.name: [*reads("default"), *record_rights("default"), *writes("default")],
}


def token_of(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer token-of-{name}"}


@dataclass(frozen=True)
class Served:
    """Where the optimizer answers, and what it asks of its hub."""

    app: Any
    url: str
    hub: EmbeddedHub
    watches: OpenWatches
    http: httpx.AsyncClient
    streams: list["Stream"] = field(default_factory=list)

    async def stream(self, caller: str = "reader") -> "Stream":
        """Open a stream; its head has been read."""
        address = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = (
            f"GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer token-of-{caller}\r\n\r\n"
        )
        writer.write(head.encode())
        status = (await reader.readuntil(b"\r\n\r\n")).split(maxsplit=2)[1]
        self.streams.append(Stream(reader, writer, int(status)))
        return self.streams[-1]

    async def change(self, command: str) -> None:
        """Pause, resume, undo or cancel the rollout."""
        changed = await self.http.post(
            f"/rollouts/default/default/{command}", headers=token_of("writer")
        )
        assert changed.status_code == 200, changed.text

    async def answers(self) -> None:
        """Check that the server answers others."""
        assert (await self.http.get("/readyz")).text == "ok"
        scores = await self.http.get("/addonplacementscores", headers=token_of("reader"))
        assert scores.status_code == 200
        # A token that nobody has used is not in the cache, so the hub is asked.
        refused = await self.http.get("/addonplacementscores", headers=token_of("nobody"))
        assert refused.status_code == 401


@dataclass(frozen=True)
class Stream:
    """A stream over a socket of its own."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int

    async def next_status(self) -> dict[str, Any]:
        """Return the next status that is told."""
        while True:
            line = await self.reader.readuntil(b"\n")
            if line.startswith(b"data: "):
                found: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                return found

    async def last_status(self) -> dict[str, Any]:
        """Read to the end of the stream; return the last status."""
        text = await self.reader.read()
        found: dict[str, Any] = json.loads(text.rpartition(b"data: ")[2].partition(b"\n")[0])
        return found

    async def leave(self) -> None:
        """Close the connection."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class SocketFreeStream:
    """A stream of the app itself; it keeps only the newest status."""

    def __init__(self, caller: str = "reader") -> None:
        self.code = 0
        self.newest = b""
        self.opened = asyncio.Event()
        self._headers = [
            (name.lower().encode(), value.encode())
            for name, value in {"Host": "localhost", **token_of(caller)}.items()
        ]

    async def run(self, app: ASGIApp) -> None:
        """Follow the rollout until its end."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": EVENTS,
            "raw_path": EVENTS.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": self._headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        requested: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Message:
            if not requested:
                await asyncio.Event().wait()
            return requested.pop()

        await app(scope, receive, self._sent)

    @property
    def newest_status(self) -> dict[str, Any]:
        """The newest status that was told."""
        found: dict[str, Any] = json.loads(self.newest.partition(b"data: ")[2])
        return found

    async def _sent(self, message: Message) -> None:
        self.code = message.get("status", self.code)
        body = message.get("body", b"")
        if b"data: " in body:
            self.newest = body
        if body:
            self.opened.set()


@asynccontextmanager
async def served(
    folder: Path,
    streams: StreamLimits,
    *,
    connections: int = 512,
    hangs_seconds: float = HANGS_SECONDS,
) -> AsyncIterator[Served]:
    """Serve the optimizer; callers need tokens and rights, and one rollout is paused."""
    hub = await hub_with_rollout()
    config = folder / "hub.kubeconfig"
    async with serving_hub(hub) as address:
        config.write_text(yaml.safe_dump(kubeconfig(address)), encoding="utf-8")
        async with connect(config) as kube:
            watches = OpenWatches(kube)
            optimizer = Optimizer(
                watches, now=lambda: NOW, health=kube.on_own_connections("health")
            )
            access = Access(DelegatedAuth(kube.on_own_connections("reviews")))
            app = create_app(optimizer, access=access, read_only=False, streams=streams)
            limits = ConnectionLimits(connections=connections)
            with listen("127.0.0.1", 0) as listener:
                task = asyncio.create_task(serve(app, listener, limits=limits))
                try:
                    async with (
                        asyncio.timeout(hangs_seconds),
                        httpx.AsyncClient(
                            base_url=url(listener), trust_env=False, timeout=hangs_seconds
                        ) as http,
                    ):
                        server = Served(app, url(listener), hub, watches, http)
                        yield server
                        for stream in server.streams:
                            await stream.leave()
                finally:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)


async def hub_with_rollout() -> EmbeddedHub:
    """Return a hub on which a rollout has begun and is paused."""
    guide = await guide_rollout()
    name = await guide.begin()
    await guide.command("pause")
    plan = (await guide.record(name)).obj
    hub = await hub_of(access=AccessTable(TOKENS, RIGHTS))
    metadata = {field: plan["metadata"][field] for field in ("name", "namespace", "labels")}
    await hub.create(kinds.PLACEMENT_PLAN, {**plan, "metadata": metadata})
    status = {"status": plan["status"]}
    await hub.patch(kinds.PLACEMENT_PLAN, name, status, "default", subresource="status")
    await copy_key(guide.hub, hub)
    await sign(hub, name)
    return hub
