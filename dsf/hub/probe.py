"""Asking scoring APIs whether they are well and how they want to be called.

What answers is not trusted: one deadline for a whole call, a limit on its size, no redirects, no
proxies or credentials from the environment, no cookies, no compression.
"""

import asyncio
from dataclasses import dataclass

import httpx
from pydantic import ValidationError

from dsf.api.invalid import Invalid
from dsf.api.scoring_api import ScorerConfig
from dsf.hub import urls
from dsf.hub.registration import problem
from dsf.hub.snapshot import Probe, ProbeFailure, Target

HEALTH_PATH = "/healthz"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take."""

    seconds: float = 5.0
    bytes: int = 256 * 1024


class Prober:
    """Probes targets; every way in which an API can fail is part of the answer."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._tls = httpx.create_ssl_context(trust_env=False)

    async def probe(self, target: Target) -> Probe:
        """Ask the health endpoint and, in mode Full, the config endpoint at the same time."""
        health, config = await asyncio.gather(
            self._health(target.config_url), self._config(target) if target.full else _nothing()
        )
        return Probe(health, config)

    async def _health(self, config_url: str) -> ProbeFailure | None:
        server = urls.server(config_url, "spec.configURL")
        if isinstance(server, Invalid):
            return ProbeFailure(server.reason, server.message)
        answer = await self._get(server + HEALTH_PATH, body=False)
        return answer if isinstance(answer, ProbeFailure) else None

    async def _config(self, target: Target) -> ScorerConfig | ProbeFailure:
        body = await self._get(target.config_url, body=True)
        if isinstance(body, ProbeFailure):
            return body
        try:
            return ScorerConfig.model_validate_json(body)
        except ValidationError as error:
            broken = error.errors()[0]["type"] == "json_invalid"
            reason = "NotJSON" if broken else "InvalidConfig"
            return ProbeFailure(reason, f"GET {target.config_url}: {problem(error)}")

    async def _get(self, url: str, *, body: bool) -> bytes | ProbeFailure:
        try:
            async with (
                asyncio.timeout(self._limits.seconds),
                self._client() as client,
                client.stream("GET", url) as response,
            ):
                return _refused(url, response) or await self._read(url, response, body=body)
        except (TimeoutError, httpx.TimeoutException):
            message = f"GET {url}: no complete answer within {self._limits.seconds:g} s"
            return ProbeFailure("TimedOut", message)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            why = str(error)[:_SHOWN] or type(error).__name__
            return ProbeFailure("Unreachable", f"GET {url}: {why}")

    def _client(self) -> httpx.AsyncClient:
        """Return a client for one call: no API sees a cookie or a connection of another."""
        return httpx.AsyncClient(
            verify=self._tls,
            trust_env=False,
            follow_redirects=False,
            timeout=self._limits.seconds,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )

    async def _read(
        self, url: str, response: httpx.Response, *, body: bool
    ) -> bytes | ProbeFailure:
        content = bytearray()
        if body:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > self._limits.bytes:
                    message = f"GET {url}: the answer is longer than {self._limits.bytes} bytes"
                    return ProbeFailure("TooLarge", message)
        return bytes(content)


async def _nothing() -> None:
    return None


def _refused(url: str, response: httpx.Response) -> ProbeFailure | None:
    status = response.status_code
    if response.is_redirect:
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
