"""A served optimizer, in a thread with an event loop of its own: clients may block."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from tests.mcp_server.service import generated, serving


async def _serve(ready: "Future[tuple[str, asyncio.Event]]", left: list[str]) -> None:
    async with serving(read_only=True) as service:
        end = asyncio.Event()
        ready.set_result((service.url, end))
        await end.wait()
        left.extend(await generated(service.hub))


@pytest.fixture(scope="module")
def optimizer_url() -> Iterator[str]:
    ready: Future[tuple[str, asyncio.Event]] = Future()
    left: list[str] = []
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=[_serve(ready, left)])
    thread.start()
    url, end = ready.result(timeout=60)
    yield url
    loop.call_soon_threadsafe(end.set)
    thread.join()
    loop.close()
