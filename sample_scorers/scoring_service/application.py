# SPDX-License-Identifier: Apache-2.0
"""A scorer as an application: /healthz, /config, /scoring and /metrics around a pure function.

The body limit is our own code, because that of Starlette does not respond with problem details.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problem_details import answer_with_problems, problem, refuse
from .wire import ScorerConfig, ScoreResult, ScoringRequest, ScoringResponse, Series

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Enough for 1500 pods with one sample every 30 s over an hour."""

POLICY = (
    "default-src 'none'; script-src https://cdn.jsdelivr.net 'unsafe-inline';"
    " style-src https: 'unsafe-inline'; font-src https:; img-src https: data:; connect-src 'self';"
    " worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What FastAPI's pages need, and no frame."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60)
"""Buckets of the time that a request takes: up to what an agent waits."""

HealthEndpoint = Callable[[], Awaitable[Response]]


@dataclass(frozen=True)
class ServedScorer:
    """A scorer: its `/config` document, its function, and the path in front of `/config`.

    `score` maps series to results without I/O. Several threads may call it at once.
    """

    config: ScorerConfig
    score: Callable[[Sequence[Series]], list[ScoreResult]]
    base_path: str = ""


def create_app(*scorers: ServedScorer, max_body_bytes: int = MAX_BODY_BYTES) -> FastAPI:
    """Return an application for one scorer, or for several with different base paths."""
    app = bare_app(", ".join(scorer.config.name for scorer in scorers), max_body_bytes)
    for scorer in scorers:
        add_config(app, scorer.config, scorer.base_path)
        _add_scoring(app, scorer)
    return app


async def healthy() -> Response:
    """Answer /healthz of a scorer that depends on nothing else."""
    return JSONResponse({"status": "ok"})


def bare_app(
    title: str,
    max_body_bytes: int = MAX_BODY_BYTES,
    health: HealthEndpoint = healthy,
    registry: CollectorRegistry | None = None,
) -> FastAPI:
    """Return an application with `/healthz`, `/metrics`, problem details and a body limit only.

    Scorers that do I/O add their own `/scoring` to it. `registry` has metrics of the scorer's own.
    """
    app = FastAPI(title=title, strict_content_type=False)
    metrics = registry or CollectorRegistry()
    answer_with_problems(app)
    app.add_middleware(_BodyLimit, max_bytes=max_body_bytes)
    app.add_middleware(_NoFrames)
    app.add_middleware(_Measured, registry=metrics)
    app.get("/healthz")(health)

    @app.get("/metrics", response_class=Response)
    async def get_metrics() -> Response:
        return Response(generate_latest(metrics), media_type=CONTENT_TYPE_LATEST)

    return app


def add_config(app: FastAPI, config: ScorerConfig, base_path: str = "") -> None:
    """Add the endpoint `<base_path>/config`, which answers `config`."""

    @app.get(f"{base_path}/config", response_model_exclude_none=True)
    async def get_config() -> ScorerConfig:
        return config


def _add_scoring(app: FastAPI, scorer: ServedScorer) -> None:
    # Not async: FastAPI then calls it in a thread, and /healthz keeps answering.
    @app.post(scorer.config.scoring.path)
    def scoring(request: ScoringRequest) -> ScoringResponse:
        return ScoringResponse(results=scorer.score(request.data))


class _Measured:
    """ASGI middleware that counts requests by path and status, and measures how long they take."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        ProcessCollector(registry=registry)
        self._app = app
        self._requests = Counter(
            "scorer_requests", "Requests by path and status.", ("path", "code"), registry=registry
        )
        self._seconds = Histogram(
            "scorer_request_duration_seconds",
            "Seconds from the headers of a request to the end of its response.",
            ("path",),
            registry=registry,
            buckets=SECONDS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, code = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal code
            code = message.get("status", code)
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            # Of paths that callers make up, one series.
            known = {getattr(route, "path", None) for route in scope["app"].routes}
            path = scope["path"] if scope["path"] in known else "other"
            self._requests.labels(path, str(code)).inc()
            self._seconds.labels(path).observe(time.perf_counter() - began)


class _NoFrames:
    """ASGI middleware: no page of another site shows /docs in a frame, whose buttons send requests.

    The page itself loads its scripts and styles from the sites that FastAPI names.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def unframed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Content-Security-Policy"] = POLICY
            await send(message)

        await self._app(scope, receive, unframed if scope["type"] == "http" else send)


class _BodyLimit:
    """ASGI middleware that refuses a long body, by its Content-Length and by the bytes received."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._refusal = (
            f"the body is longer than {max_bytes} bytes: "
            "aggregate more in the query, shorten its range or lengthen its step"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._declares_too_much(Headers(scope=scope)):
            await refuse(problem(413, self._refusal), receive, send)
        else:
            await self._app(scope, self._counting(receive), send)

    def _declares_too_much(self, headers: Headers) -> bool:
        declared = headers.get("content-length", "")
        return declared.isdecimal() and int(declared[:20]) > self._max_bytes

    def _counting(self, receive: Receive) -> Receive:
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(413, self._refusal)
            return message

        return counted
