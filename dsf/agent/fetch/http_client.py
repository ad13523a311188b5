"""An agent's connections: one pool for public authorities, one for each that a Secret names."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from dsf import __version__

KEEPALIVE_SECONDS = 3.0
"""Shorter than common servers wait (uvicorn: 5 s), lest a call meets a closing connection."""

AUTHORITIES_LIMIT = 32
"""Pools kept for authorities; those that rotated away are the first to go."""


class HttpClient:
    """Clients that ignore the environment, follow no redirects and keep no cookies."""

    def __init__(self) -> None:
        self._public = _client(True)
        self._pools: dict[str, httpx.AsyncClient] = {}

    def pool(self, ca: str = "") -> httpx.AsyncClient:
        """Return the client that trusts only these PEM certificates; empty: public authorities.

        Raises ssl.SSLError if the text is not a certificate.
        """
        if not ca:
            return self._public
        pool = self._pools.pop(ca, None) or _client(_trusting(ca))
        self._pools[ca] = pool
        if len(self._pools) > AUTHORITIES_LIMIT:
            # Running calls still finish, and then close their connections.
            del self._pools[next(iter(self._pools))]
        return pool

    async def aclose(self) -> None:
        """Close every connection."""
        for client in (self._public, *self._pools.values()):
            await client.aclose()


@asynccontextmanager
async def http_client() -> AsyncIterator[HttpClient]:
    """Yield a client, and close its connections at the end."""
    client = HttpClient()
    try:
        yield client
    finally:
        await client.aclose()


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca)
    except ValueError as error:
        raise ssl.SSLError("not ASCII, or empty") from error


def _client(verify: ssl.SSLContext | bool) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        verify=verify,
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - exchange() sets one deadline over everything
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_SECONDS
        ),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers={
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": f"dynamic-scoring-agent/{__version__}",
        },
    )
