"""HTTP clients of an agent: for public authorities, and for certificates from Secrets.

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
from dsf.agent.wire.secret_data import ClientCertificate
from dsf.kube.client.certificate_files import certificate_files
from dsf.outbound.destinations import Destinations
from dsf.outbound.pinned_connections import NameLookups, PinnedTransport
from dsf.runtime.lru_cache import LruCache

CERTIFICATES_LIMIT = 32
"""Clients that are kept for certificates; the one not used for longest is dropped first."""

TOLD_LIMIT = 4096
"""Hosts that were sent a credential; the one that was not called for longest is dropped first."""


class UnusableCertificate(Exception):
    """OpenSSL can't use a client certificate with its key."""


class HttpClient:
    """Clients that ignore the environment, follow no redirects and keep no cookies."""

    def __init__(
        self, destinations: Destinations | None = None, lookups: NameLookups | None = None
    ) -> None:
        self._destinations = destinations or Destinations()
        self._lookups = lookups or NameLookups()
        self._public = self._client(True)
        # Running calls of a pool that is evicted still finish, and then close their connections.
        self._pools = LruCache[tuple[str, ClientCertificate | None], httpx.AsyncClient](
            CERTIFICATES_LIMIT
        )
        self._told = LruCache[str, bool](TOLD_LIMIT)

    def pool(self, ca: str = "", certificate: ClientCertificate | None = None) -> httpx.AsyncClient:
        """Return the client that trusts only the PEM certificates `ca`; empty: public authorities.

        It presents `certificate` to servers that ask for one. Raises ssl.SSLError if `ca` is not a
        certificate, UnusableCertificate if the client certificate and its key can't be used.
        """
        if not ca and not certificate:
            return self._public
        pool = self._pools.get((ca, certificate))
        if pool is None:
            context = _trusting(ca) if ca else httpx.create_ssl_context(trust_env=False)
            if certificate:
                _present(context, certificate)
            pool = self._client(context)
            self._pools.put((ca, certificate), pool)
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


def _present(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    with certificate_files(certificate.certificate, certificate.key) as paths:
        try:
            context.load_cert_chain(*paths, password=lambda: b"")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise UnusableCertificate from error


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca)
    except ValueError as error:
        raise ssl.SSLError("not ASCII, or empty") from error
