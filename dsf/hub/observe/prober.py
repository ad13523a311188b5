"""Asking scoring APIs whether they are well and how they want to be called.

What is asked is not trusted: only addresses that the administrator's rules let through, http and
https only. Nor is what answers: one deadline for a whole call, looking the name up included, a
limit on its size, no redirects, no proxies or credentials from the environment, no cookies, no
compression.
"""

import asyncio
from dataclasses import dataclass

import httpx

from dsf.api.invalid_input import InvalidInput
from dsf.hub.observe.certificate_authorities import TrustedAuthorities
from dsf.hub.observe.destinations import Destinations
from dsf.hub.observe.name_lookup import NameLookups
from dsf.hub.observe.pinned_connections import Denied, PinnedTransport
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.config_document import ConfigDocument, read_config
from dsf.hub.snapshot.probe_result import ProbeFailure, ProbeResult, ProbeTarget
from dsf.runtime.lru_cache import LruCache

HEALTH_PATH = "/healthz"
REMEMBERED_CONFIGS = 1024
LONGEST_ETAG = 256
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """What one call may take."""

    seconds: float = 5.0
    bytes: int = 256 * 1024


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """A successful answer; `body` is None where it is that of the entity tag asked for."""

    body: bytes | None
    etag: str = ""


class Prober:
    """Probes targets; every way in which an API can fail is part of the answer.

    Entity tags are honoured: a config that has not changed is neither sent nor read again.
    """

    def __init__(
        self,
        limits: ProbeLimits | None = None,
        *,
        destinations: Destinations | None = None,
        lookups: NameLookups | None = None,
        trust: TrustedAuthorities | None = None,
    ) -> None:
        self._limits = limits or ProbeLimits()
        self._destinations = destinations or Destinations()
        self._lookups = lookups or NameLookups()
        self._trust = trust or TrustedAuthorities()
        self._known = LruCache[str, tuple[str, ConfigDocument]](REMEMBERED_CONFIGS)

    async def probe(self, target: ProbeTarget) -> ProbeResult:
        """Ask the health endpoint and, in mode Full, the config endpoint at the same time."""
        health, config = await asyncio.gather(
            self._health(target.config_url), self._config(target) if target.full else _nothing()
        )
        if isinstance(config, ConfigDocument):
            return ProbeResult(health, config.config, config.unknown)
        return ProbeResult(health, config)

    async def _health(self, config_url: str) -> ProbeFailure | None:
        server = urls.server(config_url, "spec.configURL")
        if isinstance(server, InvalidInput):
            return ProbeFailure(server.reason, server.message)
        answer = await self._get(server + HEALTH_PATH, body=False)
        return answer if isinstance(answer, ProbeFailure) else None

    async def _config(self, target: ProbeTarget) -> ConfigDocument | ProbeFailure:
        url = target.config_url
        tag, known = self._known.get(url) or ("", None)
        answer = await self._get(url, body=True, tag=tag)
        if isinstance(answer, ProbeFailure):
            return answer
        if answer.body is None and known:
            return known
        config = _read(url, answer.body or b"")
        if answer.etag and isinstance(config, ConfigDocument):
            self._known.put(url, (answer.etag, config))
        else:
            self._known.forget(url)
        return config

    async def _get(self, url: str, *, body: bool, tag: str = "") -> ProbeResponse | ProbeFailure:
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
                return _refused(url, response) or await self._read(url, response, body=body)
        except (TimeoutError, httpx.TimeoutException):
            message = f"GET {url}: no complete answer within {self._limits.seconds:g} s"
            return ProbeFailure("TimedOut", message)
        except Denied as error:
            return ProbeFailure("Denied", f"GET {url}: {error}")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            why = str(error)[:_SHOWN] or type(error).__name__
            return ProbeFailure("Unreachable", f"GET {url}: {why}")

    def _client(self) -> httpx.AsyncClient:
        """Return a client for one call: no API sees a cookie or a connection of another."""
        wire = httpx.AsyncHTTPTransport(verify=self._trust.context(), trust_env=False)
        return httpx.AsyncClient(
            transport=PinnedTransport(wire, self._destinations, self._lookups),
            trust_env=False,
            follow_redirects=False,
            timeout=self._limits.seconds,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )

    async def _read(
        self, url: str, response: httpx.Response, *, body: bool
    ) -> ProbeResponse | ProbeFailure:
        content = bytearray()
        if body:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > self._limits.bytes:
                    message = f"GET {url}: the answer is longer than {self._limits.bytes} bytes"
                    return ProbeFailure("TooLarge", message)
        tag = response.headers.get("etag", "")
        usable = len(tag) <= LONGEST_ETAG and tag.isascii() and tag.isprintable()
        return ProbeResponse(bytes(content), tag if usable else "")


async def _nothing() -> None:
    return None


def _read(url: str, body: bytes) -> ConfigDocument | ProbeFailure:
    document = read_config(body)
    if isinstance(document, InvalidInput):
        return ProbeFailure(document.reason, f"GET {url}: {document.message}")
    return document


def _refused(url: str, response: httpx.Response) -> ProbeFailure | None:
    status = response.status_code
    if response.has_redirect_location:
        location = response.headers.get("location", "")[:_SHOWN]
        return ProbeFailure(
            "Redirected",
            f"GET {url}: answered {status} to {location!r}; redirects are not followed: put the"
            " final address into spec.configURL",
        )
    if not response.is_success:
        return ProbeFailure("BadStatus", f"GET {url}: answered {status} instead of 200")
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        message = f"GET {url}: answered in content encoding {encoding[:_SHOWN]!r}, unasked"
        return ProbeFailure("Compressed", message)
    return None
