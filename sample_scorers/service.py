"""A scorer's HTTP shell: GET /healthz, GET /config and POST /scoring around a pure function.

The body limit is our own because the framework's answers in plain text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problem_details import answer_with_problems, problem
from .wire import ScorerConfig, ScoreResult, ScoringRequest, ScoringResponse, Series

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Enough for 1500 pods at one sample every 30 s over an hour."""


@dataclass(frozen=True)
class ServedScorer:
    """A scorer: what it says of itself, its function, and the path in front of its `/config`.

    `score` maps the series to results without I/O; it may be called from several threads.
    """

    config: ScorerConfig
    score: Callable[[Sequence[Series]], list[ScoreResult]]
    base_path: str = ""


def create_app(*scorers: ServedScorer, max_body_bytes: int = MAX_BODY_BYTES) -> FastAPI:
    """Serve one scorer, or several that differ in their base path."""
    app = bare_app(", ".join(scorer.config.name for scorer in scorers), max_body_bytes)
    for scorer in scorers:
        add_config(app, scorer.config, scorer.base_path)
        _add_scoring(app, scorer)
    return app


def bare_app(title: str, max_body_bytes: int = MAX_BODY_BYTES) -> FastAPI:
    """Make an app with `/healthz`, problem details and a body limit, for scorers that do I/O."""
    app = FastAPI(title=title, strict_content_type=False)
    answer_with_problems(app)
    app.add_middleware(_BodyLimit, max_bytes=max_body_bytes)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return app


def add_config(app: FastAPI, config: ScorerConfig, base_path: str = "") -> None:
    """Answer `config` at `<base_path>/config`."""

    @app.get(f"{base_path}/config")
    async def get_config() -> ScorerConfig:
        return config


def _add_scoring(app: FastAPI, scorer: ServedScorer) -> None:
    # Not async: the framework then scores in a thread, and /healthz keeps answering.
    @app.post(scorer.config.scoring.path)
    def scoring(request: ScoringRequest) -> ScoringResponse:
        return ScoringResponse(results=scorer.score(request.data))


class _BodyLimit:
    """ASGI middleware that refuses a long body by its declared and by its true length."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._refusal = (
            f"the body is longer than {max_bytes} bytes: "
            "let the query aggregate more, shorten its range or lengthen its step"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._declares_too_much(Headers(scope=scope)):
            await problem(413, self._refusal)(scope, receive, send)
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
