"""Scoring APIs on loopback: one that keeps the contract, and others that break it in one way."""

import asyncio
import json
import math
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import web

TOKEN = "a-token-of-the-test"
QUERY = "sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total[1m]))"
Json = dict[str, Any]
Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


def config(base: str, source: Json | None = None, **scoring: Any) -> Json:
    return {
        "name": "test-scorer",
        "description": "Percent of a core",
        "source": source
        or {
            "type": "Prometheus",
            "host": "http://prometheus:9090",
            "params": {"query": QUERY, "range": 600, "step": 60},
        },
        "scoring": {
            "path": f"{base}/scoring",
            "params": {"name": "test_score", "interval": 30},
            **scoring,
        },
    }


def results(data: list[Json]) -> list[Json]:
    """Return the mean of each series, in percent."""
    found = []
    for series in data:
        values = [float(text) for _, text in series["values"]]
        finite = [value for value in values if math.isfinite(value)]
        if finite:
            score = 100 * sum(finite) / len(finite)
            found.append({"metric": dict(series["metric"]), "score": score})
    return found


async def parsed(request: web.Request) -> list[Json]:
    """Return the series of a request; raises an answer of 4xx."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    try:
        data = json.loads(await request.read())["data"]
        results(data)
    except (ValueError, KeyError, TypeError) as error:
        raise web.HTTPUnprocessableEntity(text="not a scoring request") from error
    return data


async def correct(request: web.Request) -> web.StreamResponse:
    return web.json_response({"results": results(await parsed(request))})


def changed(change: Callable[[list[Json]], Any]) -> Respond:
    """Respond with a change of the correct results."""

    async def respond(request: web.Request) -> web.StreamResponse:
        return web.json_response({"results": change(results(await parsed(request)))})

    return respond


def unless(
    trouble: Callable[[bytes, Mapping[str, str]], bool], answer: Callable[[], web.StreamResponse]
) -> Respond:
    """Respond correctly, except to the bodies and headers that are trouble."""

    async def respond(request: web.Request) -> web.StreamResponse:
        if trouble(await request.read(), request.headers):
            return answer()
        return await correct(request)

    return respond


def broken() -> web.StreamResponse:
    return web.Response(status=500, text="Traceback")


@dataclass
class TestApi:
    """A scoring API below a path of its own; `health` is the status of the server's /healthz."""

    __test__ = False

    respond: Respond = correct
    config: Callable[[str], Json | bytes] = config
    asked: list[str] = field(default_factory=list)

    async def get_config(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        served = self.config(request.path.removesuffix("/config"))
        if isinstance(served, bytes):
            return web.Response(body=served)
        return web.json_response(served)

    async def post(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        return await self.respond(request)


@asynccontextmanager
async def served(
    apis: Mapping[str, TestApi],
    health: Callable[[], int] = lambda: 200,
    tls: ssl.SSLContext | None = None,
    port: int = 0,
) -> AsyncIterator[str]:
    """Serve APIs below their names, on any free port if it is 0; yield the base URL."""
    app = web.Application(client_max_size=1 << 26)

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(status=health())

    app.router.add_get("/healthz", healthz)
    for name, api in apis.items():
        app.router.add_get(f"/{name}/config", api.get_config)
        app.router.add_post(f"/{name}/scoring", api.post)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def never(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * (1 << 20))


def counting() -> Respond:
    """Respond with scores that grow from call to call."""
    calls = count()
    return changed(
        lambda found: [{**one, "score": one["score"] + 0.25 * next(calls)} for one in found]
    )


def protected(request_token: str = TOKEN) -> Respond:
    async def respond(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {request_token}":
            return web.Response(status=401)
        return await correct(request)

    return respond
