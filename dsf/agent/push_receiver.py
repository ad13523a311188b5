"""Lets a scorer ask for scores now: `POST /score/{scorer}`, with the token of its DynamicScorer.

A push without that token is refused before its body is read. It costs at most one read of a Secret
per scorer and second, and neither counts against the scorer's rate nor starts anything.
"""

import asyncio
import hmac
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from dsf.agent.fetch.bounded_body import TooLarge, UnusableBody, read_body
from dsf.agent.fetch.credentials import CallCredentials, CalledEndpoint
from dsf.agent.metrics import AgentMetrics
from dsf.agent.round_loop import Agent
from dsf.agent.wire.secret_data import Token
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput
from dsf.runtime.endpoints import serving
from dsf.runtime.problem_details import MEDIA_TYPE, problem_type
from dsf.runtime.watched_certificate import WatchedCertificate

log = logging.getLogger(__name__)

MIN_INTERVAL = 10.0
"""Seconds between two accepted pushes of a scorer."""

MAX_BYTES = 1 << 10
"""Bytes of a body, which says nothing: some HTTP clients send `{}`."""

BODY_SECONDS = 10.0
"""Time for a body to arrive."""

TOKEN_SECONDS = 1.0
"""How long a token that was read is used: callers without it can't make the agent read more."""

RETRY_SECONDS = 5.0
"""The Retry-After where nobody knows when the agent can accept a push."""

ACCEPTED = "Accepted"


@dataclass(frozen=True, slots=True)
class PushSettings:
    """Where pushes are received, seconds between those of a scorer, and the certificate for https.

    Without a certificate, tokens are sent over plain HTTP.
    """

    bind_address: str
    min_interval: float = MIN_INTERVAL
    certificate: WatchedCertificate | None = None


class PushRefused(Exception):
    """A push that changes nothing; the message says why, and what to do."""

    def __init__(self, status: int, reason: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> web.Response:
        """Return the problem details."""
        body = {
            "type": problem_type(self.reason),
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": str(self),
            "reason": self.reason,
        }
        return web.json_response(
            body, status=self.status, headers=self.headers, content_type=MEDIA_TYPE
        )


@asynccontextmanager
async def receiving_pushes(
    settings: PushSettings, agent: Agent, secrets: CallCredentials, metrics: AgentMetrics
) -> AsyncIterator[str]:
    """Receive pushes while the context lasts, and yield the base URL. Raises CannotListen."""
    receiver = _PushReceiver(agent, _Tokens(secrets), metrics, settings.min_interval)
    app = web.Application()
    app.router.add_route("*", "/score/{scorer}", receiver.handle)
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    tls = settings.certificate.context if settings.certificate else None
    # aiohttp inflates chunks without a limit; read_body() has one.
    async with serving(
        app, settings.bind_address, flag="--push-bind-address", auto_decompress=False, tls=tls
    ) as url:
        if tls is None and not ip_address(urlsplit(url).hostname or "").is_loopback:
            log.warning(
                "scorers send their tokens over plain HTTP: use --push-tls-cert-file, unless TLS"
                " ends in front of this process",
                extra={"url": url},
            )
        log.info("receiving pushes", extra={"url": url, "min_interval": settings.min_interval})
        yield url


class _Tokens:
    """The tokens of scorers, each read at most once in `TOKEN_SECONDS`."""

    def __init__(self, secrets: CallCredentials) -> None:
        self._secrets = secrets
        self._reads: dict[str, tuple[CalledEndpoint, float, asyncio.Task[Token | None]]] = {}

    async def of(self, summary: ScorerSummary) -> Token | None:
        """Return the token of a scorer; None if it can't be read, and log why."""
        name, key = summary.scoring_endpoint_auth_name, summary.scoring_endpoint_auth_key
        endpoint = CalledEndpoint(summary.scoring_endpoint, name, key)
        now = asyncio.get_running_loop().time()
        known, began, reading = self._reads.get(summary.name, (None, 0.0, None))
        if reading is None or known != endpoint or began + TOKEN_SECONDS <= now:
            reading = asyncio.create_task(self._read(summary.name, endpoint))
            self._reads[summary.name] = endpoint, now, reading
        return await asyncio.shield(reading)

    async def _read(self, scorer: str, endpoint: CalledEndpoint) -> Token | None:
        found = await self._secrets.credentials(endpoint)
        if isinstance(found, InvalidInput):
            why = {"reason": found.reason, "error": found.message}
            log.warning("token for pushes unreadable", extra={"scorer": scorer, **why})
            return None
        return found.token


@dataclass(frozen=True, slots=True)
class _PushReceiver:
    _agent: Agent
    _tokens: _Tokens
    _metrics: AgentMetrics
    _min_interval: float
    _accepted: dict[str, float] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.Response:
        summary = self._agent.summary(request.match_info.get("scorer", ""))
        score_name = summary.score_name if summary else ""
        try:
            await self._accept(request, summary)
        except PushRefused as refused:
            self._metrics.pushes.labels(score_name, refused.reason).inc()
            return refused.response()
        self._metrics.pushes.labels(score_name, ACCEPTED).inc()
        return web.Response(status=HTTPStatus.ACCEPTED)

    async def _accept(self, request: web.Request, summary: ScorerSummary | None) -> None:
        token = _sent_token(request)
        if why := await self._agent.unready_reason():
            message = f"this agent is not ready: {why}"
            raise PushRefused(503, "AgentNotReady", message, **_retry(RETRY_SECONDS))
        if summary is None:
            message = (
                "no scorer of that name runs on this managed cluster: use the name of its"
                " DynamicScorer, and see whether the hub distributes it here"
            )
            raise PushRefused(404, "UnknownScorer", message)
        await self._authenticate(summary, token)
        await _read_nothing(request)
        self._schedule(summary.name)

    async def _authenticate(self, summary: ScorerSummary, sent: bytes) -> None:
        if not summary.scoring_endpoint_auth_name:
            message = (
                f"scorer {summary.name} has no token of its own, so nobody can prove to be it: name"
                " one in spec.scoring.auth.tokenSecretRef of its DynamicScorer"
            )
            raise PushRefused(403, "ScorerHasNoToken", message)
        token = await self._tokens.of(summary)
        if token is None:
            message = f"the agent can't read the token of scorer {summary.name}; its log says why"
            raise PushRefused(503, "TokenUnavailable", message, **_retry(RETRY_SECONDS))
        # In constant time, so that the time of an answer doesn't tell how much of a guess is right.
        if not hmac.compare_digest(sent, token.value.encode()):
            message = (
                f"the token is not that of scorer {summary.name}: send the one that its"
                " spec.scoring.auth.tokenSecretRef names"
            )
            challenge = 'Bearer error="invalid_token"'
            raise PushRefused(401, "WrongToken", message, WWW_Authenticate=challenge)

    def _schedule(self, scorer: str) -> None:
        now = asyncio.get_running_loop().time()
        wait = self._accepted.get(scorer, -math.inf) + self._min_interval - now
        if wait > 0:
            message = (
                f"a push of scorer {scorer} was accepted less than {self._min_interval:g} s ago:"
                " send the next one after Retry-After"
            )
            raise PushRefused(429, "TooManyPushes", message, **_retry(wait))
        if left := self._agent.push(scorer):
            message = (
                f"scorer {scorer} is paused after failures, and starts again by itself: see the"
                " condition Scored of its AddOnPlacementScore"
            )
            raise PushRefused(503, "ScorerPaused", message, **_retry(left))
        self._accepted[scorer] = now


def _sent_token(request: web.Request) -> bytes:
    """Return the bearer token of a push."""
    if "scorer" not in request.match_info:
        message = "the only path here is /score/SCORER, with the name of a DynamicScorer"
        raise PushRefused(404, "NotFound", message)
    if request.method != "POST":
        raise PushRefused(405, "MethodNotAllowed", "a push is a POST", Allow="POST")
    given = request.headers.getall("Authorization", [])
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        message = "send the token of the scorer, once: Authorization: Bearer TOKEN"
        raise PushRefused(401, "TokenMissing", message, WWW_Authenticate="Bearer")
    return token.strip().encode(errors="surrogateescape")


async def _read_nothing(request: web.Request) -> None:
    """Read the body, and refuse what a push can't say."""
    encoding = request.headers.get("Content-Encoding", "")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await read_body(request.content.iter_any(), encoding, MAX_BYTES)
    except TimeoutError:
        message = f"the body was not complete after {BODY_SECONDS:g} s: send none"
        raise PushRefused(408, "BodyIncomplete", message) from None
    except TooLarge:
        message = f"the body is larger than {MAX_BYTES} bytes: send none"
        raise PushRefused(413, "BodyTooLarge", message) from None
    except UnusableBody as error:
        raise PushRefused(400, "MalformedBody", f"the body {error}: send none") from None
    if request.query_string or b"".join(body.split()) not in {b"", b"{}"}:
        message = "a push says nothing but its scorer: send no query parameter, and no body or {}"
        raise PushRefused(422, "UnexpectedContent", message)


def _retry(seconds: float) -> dict[str, str]:
    return {"Retry_After": str(max(1, math.ceil(seconds)))}
