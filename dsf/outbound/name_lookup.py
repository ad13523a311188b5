"""Looks host names up so that a name that hangs does not delay the others.

The system's resolver blocks for up to a minute and cannot be interrupted. So every lookup runs in a
daemon thread, all who wait for a name share one lookup, and names that were slow share a small
number of places.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address

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
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


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

    def settle(found: list[str] | Exception) -> None:
        if answer.cancelled():
            return
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def work() -> None:
        found: list[str] | Exception
        try:
            found = resolve(host)
        except (OSError, UnicodeError) as error:
            found = error
        with suppress(RuntimeError):  # the loop is closed because the process is about to end
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=work, name="lookup", daemon=True).start()
    return await answer
