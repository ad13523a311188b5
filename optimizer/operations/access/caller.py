"""The caller of a request: work stops if it disconnects, and it is told how far a plan is.

That is value, bound and seconds.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, TypeVar

from pydantic import Field
from starlette.types import Receive

from optimizer.domain.solution import Solution
from optimizer.plan.text.approval_questions import best_so_far
from optimizer.wire.base import ResultPart, Sentence

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


TOLD_EVERY_SECONDS = 1.0
"""Pause between two reports; what is answered sooner needs none."""


class PlanProgress(ResultPart):
    """The best decision that is known while a plan is made."""

    seconds: float = Field(description="Since the question.")
    objective_value: float | None = Field(description="Of the best decision; null: none yet.")
    bound: float | None = Field(description="No plan is worth more than this; null: no bound yet.")
    message: Sentence = Field(description="The same in words.")


async def progress_of(
    task: "asyncio.Task[T]", caller: Caller, what: str = "Planning"
) -> AsyncIterator[PlanProgress]:
    """Yield each second how far the plan of a caller is, until the task that makes it has ended."""
    started = monotonic()
    while not (await asyncio.wait({task}, timeout=TOLD_EVERY_SECONDS))[0]:
        seconds, best = monotonic() - started, caller.best
        yield PlanProgress(
            seconds=seconds,
            objective_value=best and best.objective_value,
            bound=best and best.bound,
            message=f"{what}: {seconds:.0f} s{best_so_far(best) if best else ''}",
        )
