"""Notices when the caller of a request disconnects, so that work without a reader can stop."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.types import Receive

from optimizer.domain.solution import Solution

T = TypeVar("T")


class CallerGone(Exception):
    """The caller disconnected before the work was done."""


class Caller:
    """The caller of one request, who may disconnect at any time; None: who always stays.

    `best`: the best decision that is known while a plan is made for the caller.
    """

    def __init__(self, disconnected: "asyncio.Task[None] | None" = None) -> None:
        self._disconnected = disconnected
        self.best: Solution | None = None

    def was_found(self, solution: Solution) -> None:
        """Keep a decision that is better than those before, also from another thread."""
        self.best = solution

    def is_connected(self) -> bool:
        """Tell whether the caller still waits for the response."""
        return self._disconnected is None or not self._disconnected.done()

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work; cancel it and raise CallerGone if the caller disconnects.

        The work has ended when this returns or raises.
        """
        if self._disconnected is None:
            return await work
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._disconnected}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        raise CallerGone


@asynccontextmanager
async def caller_of(receive: Receive) -> AsyncIterator[Caller]:
    """Yield the caller of a request; its body must have been read.

    The server's message `http.disconnect` tells that the caller is gone.
    """
    disconnected = asyncio.create_task(_disconnect(receive))
    try:
        yield Caller(disconnected)
    finally:
        disconnected.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
