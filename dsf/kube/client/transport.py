"""Requests to one API server that always use the current credentials."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from http import HTTPStatus

import aiohttp

from dsf.kube.client.client_config import BadKubeconfig
from dsf.kube.client.credentials import CredentialSource
from dsf.kube.client.http_session import ApiRequest, HttpSession
from dsf.kube.clock import utc_now

log = logging.getLogger(__name__)

EARLY = timedelta(seconds=10)


class Transport:
    """Sends requests, and opens a new session when the credentials change.

    It reloads the credentials when one of their files has changed, shortly before they expire, and
    when the API server answers 401; then it sends the request once more. If loading fails, the old
    credentials stay. Requests in flight finish on the session that they started on.
    """

    def __init__(self, source: CredentialSource, *, now: Callable[[], datetime] = utc_now) -> None:
        self._source = source
        self._now = now
        self._loading = asyncio.Lock()
        self._loaded_at = now()
        self._connection: HttpSession | None = None
        self._retired: list[HttpSession] = []

    @property
    def server(self) -> str:
        """The URL of the API server; empty before `open`."""
        return self._connection.credentials.server if self._connection else ""

    async def open(self) -> None:
        """Load the credentials for the first time. Raises BadKubeconfig."""
        await self._current()

    async def close(self) -> None:
        """Close all sessions."""
        for connection in (self._connection, *self._retired):
            if connection:
                await connection.close()

    @asynccontextmanager
    async def send(self, request: ApiRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the answer, whatever its status. Raises Unreachable."""
        connection = await self._current()
        async with AsyncExitStack() as stack:
            response = await stack.enter_async_context(connection.send(request))
            if response.status == HTTPStatus.UNAUTHORIZED:
                renewed = await self._renewed(connection)
                if renewed is not connection:
                    response = await stack.enter_async_context(renewed.send(request))
            yield response

    async def _current(self) -> HttpSession:
        connection = self._connection
        if connection is not None and not self._outdated(connection):
            return connection
        async with self._loading:
            if self._connection is None:
                self._connection = await self._load()
            elif self._outdated(self._connection):
                await self._reload(self._connection)
            return self._connection

    async def _renewed(self, refused: HttpSession) -> HttpSession:
        async with self._loading:
            if self._connection is refused:
                await self._reload(refused)
            return self._connection or refused

    def _outdated(self, connection: HttpSession) -> bool:
        expires = connection.credentials.expires
        if expires and self._now() >= max(expires - EARLY, self._loaded_at + EARLY):
            return True
        return self._source.changed()

    async def _reload(self, old: HttpSession) -> None:
        try:
            new = await self._load()
        except BadKubeconfig as error:
            log.warning("credentials not renewed", extra={"error": str(error)})
            return
        if new.credentials == old.credentials:
            await new.close()
            return
        self._connection = new
        self._retired = [*(c for c in self._retired if not c.closed), old]
        await old.retire()

    async def _load(self) -> HttpSession:
        self._loaded_at = self._now()
        return HttpSession(await self._source.load())
