"""Connect to an API server: requests that always use the current credentials, and a client."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import aiohttp

from dsf.kube.client.credentials import CredentialSource, find_source
from dsf.kube.client.http_session import ApiRequest, HttpSession
from dsf.kube.client.kube_client import Client
from dsf.kube.client.kubeconfig import SERVICE_ACCOUNT, BadKubeconfig
from dsf.kube.clock import utc_now

__all__ = ["BadKubeconfig", "Transport", "connect"]

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


@asynccontextmanager
async def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    answer_bytes: int = 0,
) -> AsyncIterator[Client]:
    """Yield a client for the API server that kubectl would talk to.

    It takes the first of: an explicit file, $KUBECONFIG, ~/.kube/config, a pod's service account.
    It sends nothing yet; `answer_bytes` limits each answer, 0 does not. Raises BadKubeconfig
    with a message of one line for the user.
    """
    transport = Transport(
        find_source(kubeconfig, context, environ=environ, service_account=service_account)
    )
    await transport.open()
    try:
        yield Client(transport, answer_bytes=answer_bytes)
    finally:
        await transport.close()
