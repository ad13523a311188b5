"""HTTP servers on loopback that answer as a test wants."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Call:
    """What a server was sent."""

    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Server:
    """A server whose answer can be replaced at any time; it notes every call."""

    url: str
    answer: Handler
    calls: list[Call] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        form = await request.post() if "form" in request.content_type else request.query
        parameters = {key: str(value) for key, value in form.items()}
        self.calls.append(
            Call(request.method, request.path, parameters, dict(request.headers), body)
        )
        return await self.answer(request)


@asynccontextmanager
async def serving(answer: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server("", answer)
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port = runner.addresses[0][1]
        server.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        yield server
    finally:
        await runner.cleanup()


def replying(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Handler:
    """Answer with bytes as they are, or with anything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(body=raw, status=status, headers=sent)

    return handler


def matrix(*series: tuple[dict[str, str], list[list[Any]]], **more: Any) -> dict[str, Any]:
    """The body of a successful range query."""
    result = [{"metric": metric, "values": values} for metric, values in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}


def scores(*results: tuple[dict[str, str], Any]) -> dict[str, Any]:
    """The body of a scoring response."""
    return {"results": [{"metric": metric, "score": score} for metric, score in results]}


async def hanging(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    raise AssertionError("nobody waits that long")


async def dripping(request: web.Request) -> web.StreamResponse:
    """Send a byte now and then, so that no single read ever times out."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


async def breaking(request: web.Request) -> web.StreamResponse:
    """Break the connection in the middle of the body."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"results": [')
    assert request.transport is not None
    request.transport.abort()
    return response


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65536)
