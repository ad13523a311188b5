"""HTTP connections to exactly the addresses that were checked.

Between a check of a name and a connection to that name, an attacker's name server could change its
answer. So a name is resolved once per call and the connection goes to the address, while `Host` and
the TLS server name stay those of the URL.
"""

import httpx

from dsf.outbound.destinations import Destinations
from dsf.outbound.name_lookup import NameLookups

MOST_ADDRESSES = 4
"""Addresses of a name that are tried: IPv4 and IPv6, with a spare one each."""


class DestinationDenied(Exception):
    """A host or an address may not be connected to; the message says why."""


class PinnedTransport(httpx.AsyncBaseTransport):
    """Checks a request's host, looks it up, checks every address, and connects to one of them.

    One denied address denies the host, because the next connection may go to that address.
    Transports may share `lookups`, but not connections.
    """

    def __init__(
        self, inner: httpx.AsyncBaseTransport, destinations: Destinations, lookups: NameLookups
    ) -> None:
        self._inner = inner
        self._destinations = destinations
        self._lookups = lookups

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises DestinationDenied and what httpx raises."""
        host = request.url.raw_host.decode("ascii")
        addresses = await self._checked(host)
        for address in addresses[:-1]:
            try:
                return await self._send(request, host, address, share=len(addresses))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._send(request, host, addresses[-1], share=1)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _checked(self, host: str) -> list[str]:
        if why := self._destinations.why_host_denied(host):
            raise DestinationDenied(why)
        addresses = await self._addresses(host.strip("[]"))
        for address in addresses:
            if why := self._destinations.why_address_denied(address):
                raise DestinationDenied(f"the address of {host!r}: {why}")
        if not addresses:
            raise httpx.ConnectError(f"the host {host!r} has no address")
        return addresses[:MOST_ADDRESSES]

    async def _addresses(self, host: str) -> list[str]:
        try:
            return await self._lookups.addresses(host)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise httpx.ConnectError(f"the host {host!r} is not found: {why}") from error

    async def _send(
        self, request: httpx.Request, host: str, address: str, *, share: int
    ) -> httpx.Response:
        """Connect within a share of the time limit, which leaves time for the next addresses."""
        timeout = dict(request.extensions.get("timeout", {}))
        if timeout.get("connect"):
            timeout["connect"] /= share
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=address.partition("%")[0]),
            headers=request.headers,
            stream=request.stream,
            extensions={
                **request.extensions,
                "timeout": timeout,
                "sni_hostname": host.strip("[]").rstrip("."),
            },
        )
        return await self._inner.handle_async_request(pinned)
