"""HTTP clients of an agent: one that trusts public authorities, one for each authority in a Secret.

They connect only to addresses that the administrator's rules allow, and to the very address that
was checked, because a stranger's `/config` may name any host.

Each call has a connection of its own. On a kept connection a server may send an answer that nobody
asked for, which would then be taken for the answer to the next call, maybe of another scorer behind
the same address. Calls are seconds apart, so kept connections would save little.
"""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit

import httpx

from dsf import __version__
from dsf.agent.wire.foreign_text import CallSecrets, call_secrets
from dsf.outbound.destinations import Destinations
from dsf.outbound.pinned_connections import NameLookups, PinnedTransport
from dsf.runtime.lru_cache import LruCache

AUTHORITIES_LIMIT = 32
"""Clients that are kept for authorities; the one that was not used for longest is dropped first."""


TOLD_LIMIT = 4096
"""Hosts that were sent a credential; the one that was not called for longest is dropped first."""


class HttpClient:
    """Clients that ignore the environment, follow no redirects and keep no cookies."""

    def __init__(
        self, destinations: Destinations | None = None, lookups: NameLookups | None = None
    ) -> None:
        self._destinations = destinations or Destinations()
        self._lookups = lookups or NameLookups()
        self._public = self._client(True)
        # Running calls of a pool that is evicted still finish, and then close their connections.
        self._pools = LruCache[str, httpx.AsyncClient](AUTHORITIES_LIMIT)
        self._told = LruCache[str, bool](TOLD_LIMIT)

    def pool(self, ca: str = "") -> httpx.AsyncClient:
        """Return the client that trusts only these PEM certificates; empty: public authorities.

        Raises ssl.SSLError if the text is not a certificate.
        """
        if not ca:
            return self._public
        pool = self._pools.get(ca)
        if pool is None:
            pool = self._client(_trusting(ca))
            self._pools.put(ca, pool)
        return pool

    def secrets(self, url: str, headers: Mapping[str, str]) -> CallSecrets:
        """Return the secrets of a call that is about to be sent to a host.

        The host may remember those of other calls, and repeat them in any later answer.
        """
        host = urlsplit(url).hostname or ""
        secrets = call_secrets(url, headers, sent_before=bool(self._told.get(host)))
        if secrets.withheld:
            self._told.put(host, True)
        return secrets

    async def aclose(self) -> None:
        """Close every connection."""
        for client in (self._public, *self._pools.values()):
            await client.aclose()

    def _client(self, verify: ssl.SSLContext | bool) -> httpx.AsyncClient:
        wire = httpx.AsyncHTTPTransport(
            verify=verify,
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )
        return httpx.AsyncClient(
            transport=PinnedTransport(wire, self._destinations, self._lookups),
            trust_env=False,
            follow_redirects=False,
            timeout=None,  # noqa: S113 - exchange() sets one deadline over everything
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
                "Connection": "close",
                "User-Agent": f"dynamic-scoring-agent/{__version__}",
            },
        )


@asynccontextmanager
async def http_client(
    destinations: Destinations | None = None, lookups: NameLookups | None = None
) -> AsyncIterator[HttpClient]:
    """Yield a client, and close its connections at the end.

    Without `destinations`, only special addresses such as link-local ones are denied.
    """
    client = HttpClient(destinations, lookups)
    try:
        yield client
    finally:
        await client.aclose()


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca)
    except ValueError as error:
        raise ssl.SSLError("not ASCII, or empty") from error
