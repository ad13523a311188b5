"""Bearer tokens that a token endpoint of OAuth 2.0 issues to a client for its credentials.

A token is kept until shortly before it expires, and all who want one at the same time share one
request. Source: RFC 6749, sections 2.3.1, 4.4 and 5.
"""

import asyncio
import math
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlencode

import msgspec

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import HttpClient
from dsf.agent.fetch.http_exchange import FORM, CallDeadline, OutboundRequest, exchange
from dsf.agent.wire.foreign_text import MALFORMED
from dsf.agent.wire.http_answer import HttpAnswer, display_url
from dsf.agent.wire.secret_data import Token, parse_token
from dsf.api.json_input import json_text
from dsf.api.untrusted_text import InvalidInput
from dsf.runtime.lru_cache import LruCache

TOKENS_LIMIT = 256
"""Tokens that are kept; the one that was not used for longest is dropped first."""

TOKEN_SECONDS, TOKEN_BYTES = 10.0, 1 << 16
"""Limits of one answer of a token endpoint."""

UNKNOWN_LIFETIME_SECONDS = 300.0
"""How long a token is kept whose lifetime the answer does not say: a refused one is dropped."""

LEEWAY_SECONDS, LEEWAY_SHARE = 30.0, 0.1
"""A token is renewed so long before its end, or in this share of its lifetime if that is less."""

NOT_ISSUED = "TokenNotIssued"

_ERRORS = {
    *("invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "invalid_target"),
    *("unauthorized_client", "unsupported_grant_type", "temporarily_unavailable"),
}
"""Source: RFC 6749, section 5.2; RFC 8707, section 2."""


class _TokenAnswer(msgspec.Struct):
    access_token: str = ""
    token_type: str = ""
    expires_in: float | str | None = None
    error: str = ""


_ANSWER = msgspec.json.Decoder(_TokenAnswer)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What a token endpoint is asked; `ca` has the PEM certificates to trust, empty: public ones.

    `repr` does not show the client's secret.
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ()
    audience: str = ""
    ca: str = ""

    @property
    def outbound(self) -> OutboundRequest:
        """The request as it is sent."""
        asked = {"scope": " ".join(self.scopes), "audience": self.audience}
        form = {"grant_type": "client_credentials", **{k: v for k, v in asked.items() if v}}
        basic = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}".encode()
        headers = {"Authorization": f"Basic {b64encode(basic).decode()}", **FORM}
        return OutboundRequest("POST", self.url, urlencode(form).encode(), headers, self.ca)


@dataclass(frozen=True, slots=True)
class KeptToken:
    """A token, and the moment of the event loop's clock until which it is used."""

    token: Token
    until: float


class IssuedTokens:
    """Gets tokens and keeps them."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._kept = LruCache[TokenRequest, KeptToken](TOKENS_LIMIT)
        self._running: dict[TokenRequest, asyncio.Task[KeptToken | InvalidInput]] = {}

    async def token(self, asked: TokenRequest) -> Token | InvalidInput:
        """Return a token; InvalidInput with reason `TokenNotIssued` if the endpoint has none."""
        kept = self._kept.get(asked)
        if kept and asyncio.get_running_loop().time() < kept.until:
            return kept.token
        task = self._running.get(asked)
        if task is None:
            task = self._running[asked] = asyncio.create_task(self._issue(asked))
            task.add_done_callback(lambda _: self._running.pop(asked))
        issued = await asyncio.shield(task)
        return issued if isinstance(issued, InvalidInput) else issued.token

    def drop(self, asked: TokenRequest, token: Token) -> None:
        """Keep a token no longer, because a server refused it."""
        kept = self._kept.get(asked)
        if kept and kept.token == token:
            self._kept.forget(asked)

    async def _issue(self, asked: TokenRequest) -> KeptToken | InvalidInput:
        answer = await exchange(
            self._client,
            asked.outbound,
            stage="scoring",
            deadline=CallDeadline.within(TOKEN_SECONDS),
            max_bytes=TOKEN_BYTES,
        )
        if isinstance(answer, Failure):
            return InvalidInput(NOT_ISSUED, f"the token endpoint of auth.oauth2: {answer.message}")
        issued = read_token_answer(asked.url, answer, asyncio.get_running_loop().time())
        if isinstance(issued, KeptToken):
            self._kept.put(asked, issued)
        return issued


def read_token_answer(url: str, answer: HttpAnswer, now: float) -> KeptToken | InvalidInput:
    """Return the token in an answer that came at `now`, a moment of the event loop's clock."""
    where = f"the token endpoint of auth.oauth2: {display_url(url)} answered {answer.status}"
    try:
        body = _ANSWER.decode(json_text(answer.body))
    except MALFORMED:
        body = _TokenAnswer()
    if not answer.ok:
        code = f" ({body.error})" if body.error in _ERRORS else ""
        advice = "check the client in the Secret of clientSecretRef, scopes and audience"
        return InvalidInput(NOT_ISSUED, f"{where}{code}; {advice}")
    token = parse_token(body.access_token.encode())
    if token is None:
        return InvalidInput(NOT_ISSUED, f"{where}, but without a usable access_token")
    if body.token_type.lower() != "bearer":
        return InvalidInput(NOT_ISSUED, f"{where} with a token that is not of type Bearer")
    lifetime = _seconds(body.expires_in)
    leeway = min(LEEWAY_SECONDS, lifetime * LEEWAY_SHARE)
    return KeptToken(token, now + lifetime - leeway)


def _seconds(text: float | str | None) -> float:
    """Return a lifetime in seconds; some endpoints write it as text."""
    try:
        seconds = float("nan" if text is None else text)
    except ValueError:
        return UNKNOWN_LIFETIME_SECONDS
    return max(seconds, 0.0) if math.isfinite(seconds) else UNKNOWN_LIFETIME_SECONDS
