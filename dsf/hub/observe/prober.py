"""Probes scoring APIs: their health, and the config that they serve.

Trusts neither the URL nor the answer. Only http and https, and only addresses that the
administrator's rules allow. One deadline for a whole call, name lookup included; a limit on the
size; no redirects, no compression, no cookies, no proxies or credentials from the environment.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from dsf.api.scoring.scoring_api import HEALTH_PATH
from dsf.api.untrusted_text import InvalidInput, UntrustedText
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.config_document import ConfigDocument, read_config
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult, ProbeTarget
from dsf.kube.redaction import redact
from dsf.outbound.destinations import Destinations
from dsf.outbound.pinned_connections import (
    DestinationDenied,
    NameLookups,
    PinnedTransport,
    broken_http,
)
from dsf.runtime.lru_cache import LruCache

log = logging.getLogger(__name__)


class UnusableAuthorityFile(Exception):
    """A file of certificate authorities is unusable; the message says which and why."""


class TrustedAuthorities:
    """The public authorities and those in a PEM file, which is read again when it changes.

    The environment adds none. Raises UnusableAuthorityFile if the file is unusable at first. If it
    becomes unusable later, the authorities stay as they are.
    """

    def __init__(self, authority: Path | None = None) -> None:
        self._authority = authority
        self._changed_at = self._modified()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Return a TLS context with the current authorities."""
        modified = self._modified()
        if modified is not None and modified != self._changed_at:
            self._changed_at = modified
            try:
                self._context = self._load()
            except UnusableAuthorityFile as error:
                log.warning(
                    "unusable file of certificate authorities; the previous ones stay in use",
                    extra={"error": str(error)},
                )
        return self._context

    def _modified(self) -> int | None:
        try:
            return self._authority.stat().st_mtime_ns if self._authority else None
        except OSError:
            return None

    def _load(self) -> ssl.SSLContext:
        context = httpx.create_ssl_context(trust_env=False)
        if self._authority:
            try:
                context.load_verify_locations(cafile=self._authority)
            except (OSError, ssl.SSLError) as error:
                why = "it holds no PEM certificate" if isinstance(error, ssl.SSLError) else None
                raise UnusableAuthorityFile(
                    f"{self._authority}: {why or error.strerror or error}"
                ) from error
        return context


REMEMBERED_CONFIGS = 1024
"""Configs kept with their entity tags: more than a hub has scorers."""
LONGEST_ETAG = 256
"""Characters; a longer entity tag is not sent back."""
_SHOWN_CHARACTERS = 200
"""Characters that a message quotes of an answer."""


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """The longest time and the largest body of one call."""

    seconds: float = 5.0
    bytes: int = 256 * 1024


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """A successful answer; `body` is None if it is still that of the entity tag in the request."""

    body: bytes | None
    etag: str = ""


class Prober:
    """Probes targets; every way in which an API can fail becomes part of the result.

    Sends entity tags, so a config that has not changed is neither sent nor parsed again. Every call
    has a connection of its own and says so; its answer is read to the end, errors included, because
    closing a connection with unread data resets it. `wire` makes the connections.
    """

    def __init__(
        self,
        limits: ProbeLimits | None = None,
        *,
        destinations: Destinations | None = None,
        lookups: NameLookups | None = None,
        trust: TrustedAuthorities | None = None,
        wire: Callable[[ssl.SSLContext], httpx.AsyncBaseTransport] | None = None,
    ) -> None:
        self._limits = limits or ProbeLimits()
        self._destinations = destinations or Destinations()
        self._lookups = lookups or NameLookups()
        self._trust = trust or TrustedAuthorities()
        self._wire = wire or _wire
        self._known = LruCache[str, tuple[str, ConfigDocument]](REMEMBERED_CONFIGS)

    async def probe(self, target: ProbeTarget) -> ProbeResult:
        """Call the health endpoint and, if `target.full`, the config endpoint at the same time."""
        health, config = await asyncio.gather(
            self._health(target.config_url), self._config(target) if target.full else _nothing()
        )
        if isinstance(config, ConfigDocument):
            return ProbeResult(health, config.config, tuple(map(redact, config.unknown)))
        return ProbeResult(health, config)

    async def _health(self, config_url: str) -> ProbeFailure | None:
        server = urls.server(config_url, "spec.configURL")
        if isinstance(server, InvalidInput):
            return ProbeFailure(server.reason, server.message)
        answer = await self._get(server + HEALTH_PATH)
        return answer if isinstance(answer, ProbeFailure) else None

    async def _config(self, target: ProbeTarget) -> ConfigDocument | ProbeFailure:
        url = target.config_url
        tag, known = self._known.get(url) or ("", None)
        answer = await self._get(url, tag=tag)
        if isinstance(answer, ProbeFailure):
            return answer
        if answer.body is None and known:
            return known
        config = _read(url, answer.body or b"", self._limits.bytes)
        if answer.etag and isinstance(config, ConfigDocument):
            self._known.put(url, (answer.etag, config))
        else:
            self._known.forget(url)
        return config

    async def _get(self, url: str, *, tag: str = "") -> ProbeResponse | ProbeFailure:
        refused = None
        try:
            async with (
                asyncio.timeout(self._limits.seconds),
                self._client() as client,
                client.stream(
                    "GET", url, headers={"If-None-Match": tag} if tag else {}
                ) as response,
            ):
                if tag and response.status_code == httpx.codes.NOT_MODIFIED:
                    return ProbeResponse(None, tag)
                refused = _refused(url, response)
                content = await self._read(response)
                return refused or ProbeResponse(content, _usable_tag(response))
        except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL, DestinationDenied) as error:
            return refused or self._unanswered(url, error)

    def _unanswered(self, url: str, error: Exception) -> ProbeFailure:
        """Return why no usable answer came; a timeout is an OSError or one of httpx."""
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            message = f"no complete answer within {self._limits.seconds:g} s"
            return _failure(url, "TimedOut", message)
        if isinstance(error, DestinationDenied):
            return _failure(url, "Denied", str(error))
        if broken := broken_http(error):
            return ProbeFailure(broken[0], f"GET {url}: the server {broken[1]}")
        why = str(error)[:_SHOWN_CHARACTERS] or type(error).__name__
        return _failure(url, "Unreachable", why)

    def _client(self) -> httpx.AsyncClient:
        """Return a client for one call, so that APIs share no cookies and no connections."""
        return httpx.AsyncClient(
            transport=PinnedTransport(
                self._wire(self._trust.context()), self._destinations, self._lookups
            ),
            trust_env=False,
            follow_redirects=False,
            timeout=self._limits.seconds,
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "Connection": "close",
            },
        )

    async def _read(self, response: httpx.Response) -> bytes:
        """Return the body, or more than the limit of a body that is longer."""
        content = bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > self._limits.bytes:
                break
        return bytes(content)


def _wire(context: ssl.SSLContext) -> httpx.AsyncBaseTransport:
    return httpx.AsyncHTTPTransport(verify=context, trust_env=False)


def _usable_tag(response: httpx.Response) -> str:
    tag: str = response.headers.get("etag", "")
    usable = len(tag) <= LONGEST_ETAG and tag.isascii() and tag.isprintable()
    return tag if usable else ""


async def _nothing() -> None:
    return None


def _read(url: str, body: bytes, most: int) -> ConfigDocument | ProbeFailure:
    if len(body) > most:
        return _failure(url, "TooLarge", f"the answer is longer than {most} bytes")
    document = read_config(body)
    if isinstance(document, InvalidInput):
        return _failure(url, document.reason, document.message)
    return document


def _failure(url: str, reason: str, text: str) -> ProbeFailure:
    """Return a failure of a call; its text may quote the API, which may repeat credentials."""
    return ProbeFailure(reason, redact(f"GET {url}: {text}"))


def _refused(url: str, response: httpx.Response) -> ProbeFailure | None:
    status = response.status_code
    if response.has_redirect_location:
        location = response.headers.get("location", "")
        return _failure(
            url,
            "Redirected",
            f"answered {status} to {UntrustedText(location)}; redirects are not followed: set"
            " spec.configURL to the final address",
        )
    if not response.is_success:
        return _failure(url, "BadStatus", f"answered {status} instead of 200")
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        message = f"answered in content encoding {UntrustedText(encoding)}, which was not requested"
        return _failure(url, "Compressed", message)
    return None
