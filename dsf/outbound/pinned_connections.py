"""HTTP connections to exactly the addresses that were checked.

Between a check of a name and a connection to that name, an attacker's name server could change its
answer. So a name is resolved once per call and the connection goes to the address, while `Host` and
the TLS server name stay those of the URL.

The system's resolver blocks for up to a minute and cannot be interrupted. So every lookup runs in a
daemon thread, all who wait for a name share one lookup, and names that were slow share a small
number of places.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_address

import httpx

from dsf.outbound.destinations import Destinations
from dsf.runtime.lru_cache import LruCache

Resolve = Callable[[str], list[str]]

QUICK_PLACES = 32
"""Concurrent lookups of names that were quick last time: one for each probe at once."""
SLOW_PLACES = 4
"""Concurrent lookups of names that were slow last time."""
SLOW_SECONDS = 1.0
"""A lookup that takes this long is slow; one from a cache takes milliseconds."""
REMEMBERED_NAMES = 4096
"""Slow names remembered at most."""


def system_resolver(host: str) -> list[str]:
    """Return the addresses of a host from the system's resolver. Raises OSError, UnicodeError."""
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in infos))


class NameLookups:
    """Looks names up with a blocking resolver, a bounded number at a time."""

    def __init__(self, resolve: Resolve = system_resolver) -> None:
        self._resolve = resolve
        self._running: dict[str, asyncio.Task[list[str]]] = {}
        self._slow = LruCache[str, bool](REMEMBERED_NAMES)
        self._quick_places = asyncio.Semaphore(QUICK_PLACES)
        self._slow_places = asyncio.Semaphore(SLOW_PLACES)

    async def addresses(self, host: str) -> list[str]:
        """Return the addresses of a host; an address is returned as it is.

        A caller that is cancelled does not end the lookup: the next caller waits for the same one.
        Raises OSError, UnicodeError.
        """
        if _is_address(host):
            return [host]
        task = self._running.get(host)
        if task is None:
            task = self._running[host] = asyncio.ensure_future(self._look_up(host))
            task.add_done_callback(lambda done: self._ended(host, done))
        return await asyncio.shield(task)

    def _ended(self, host: str, task: asyncio.Task[list[str]]) -> None:
        del self._running[host]
        if not task.cancelled():
            task.exception()  # retrieved here because perhaps nobody waits for it any more

    async def _look_up(self, host: str) -> list[str]:
        async with self._slow_places if self._slow.get(host) else self._quick_places:
            self._slow.put(host, True)
            loop = asyncio.get_running_loop()
            started = loop.time()
            try:
                return await _in_thread(self._resolve, host)
            finally:
                if loop.time() - started < SLOW_SECONDS:
                    self._slow.forget(host)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def _in_thread(resolve: Resolve, host: str) -> list[str]:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def settle(outcome: list[str] | Exception) -> None:
        if answer.cancelled():
            return
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    def work() -> None:
        outcome: list[str] | Exception
        try:
            outcome = resolve(host)
        except (OSError, UnicodeError) as error:
            outcome = error
        with suppress(RuntimeError):  # the loop is closed because the process is about to end
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name="lookup", daemon=True).start()
    return await answer


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


_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}

_SILENT = ("Server disconnected", "peer closed connection")


def broken_http(error: BaseException) -> tuple[str, str] | None:
    """Return a reason and a sentence without subject, in our own words; None for other errors.

    The subject of the sentence is the server. h11 and OpenSSL name the faults in their messages.
    """
    for cause in causes(error):
        if isinstance(cause, ssl.SSLError) and cause.reason in _NOT_TLS:
            return "NotTLS", "does not speak TLS on that port: use http, or the port for https"
    text = str(error)
    if not isinstance(error, httpx.RemoteProtocolError) or text.startswith(_SILENT):
        return None
    if text.startswith("illegal request line"):  # h11: the first byte is a control character
        return "NotHTTP", "answers in binary, not in HTTP: does that port need https?"
    if text.startswith("illegal status line"):
        return "NotHTTP", "does not answer in HTTP: is the port right?"
    if "Content-Length" in text:
        return "InvalidHTTP", "sends contradictory or malformed Content-Length headers"
    return "InvalidHTTP", "sends a malformed HTTP answer: a header or a chunk is invalid"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, outermost first; of a group, those of its first error."""
    while error:
        yield error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__
