"""A scorer as an HTTP service: GET /healthz, GET /config and POST /scoring around a pure function.

The body limit is our own code, because that of Starlette does not respond with problem details.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
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
    title: str, max_body_bytes: int = MAX_BODY_BYTES, health: HealthEndpoint = healthy
) -> FastAPI:
    """Return an application with `/healthz`, problem details and a body limit only.

    Scorers that do I/O add their own `/scoring` to it.
    """
    app = FastAPI(title=title, strict_content_type=False)
    answer_with_problems(app)
    app.add_middleware(_BodyLimit, max_bytes=max_body_bytes)
    app.add_middleware(_NoFrames)
    app.get("/healthz")(health)
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
