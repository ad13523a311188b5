"""Served optimizers, each in a thread with its own event loop, so that clients may block."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager

import pytest

from optimizer.api.app import create_app
from optimizer.api.serving import listen, serve, url
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.service.optimizer import Optimizer
from tests.mcp_server.service import serving
from tests.optimizer.build import NOW
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import table


@asynccontextmanager
async def _open_door() -> AsyncIterator[str]:
    async with serving(read_only=False) as service:
        yield service.url


@asynccontextmanager
async def _guarded_door() -> AsyncIterator[str]:
    hub = await hub_of(access=table())
    app = create_app(
        Optimizer(hub, now=lambda: NOW), access=Access(DelegatedAuth(hub)), read_only=False
    )
    with listen("127.0.0.1", 0) as listener:
        task = asyncio.create_task(serve(app, listener))
        try:
            yield url(listener)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _serve(
    door: AbstractAsyncContextManager[str], ready: "Future[tuple[str, asyncio.Event]]"
) -> None:
    async with door as address:
        end = asyncio.Event()
        ready.set_result((address, end))
        await end.wait()


@contextmanager
def _in_a_thread(door: AbstractAsyncContextManager[str]) -> Iterator[str]:
    ready: Future[tuple[str, asyncio.Event]] = Future()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=[_serve(door, ready)])
    thread.start()
    address, end = ready.result(timeout=60)
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def optimizer_url() -> Iterator[str]:
    """URL of a server with REST and read-only MCP tools, without authentication."""
    with _in_a_thread(_open_door()) as address:
        yield address


@pytest.fixture(scope="module")
def guarded_url() -> Iterator[str]:
    """URL of a server whose REST API requires a token that the hub verifies."""
    with _in_a_thread(_guarded_door()) as address:
        yield address
