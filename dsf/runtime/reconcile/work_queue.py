"""A work queue of names: deduplicated, with delays and a back-off per name."""

import asyncio
import random
from collections.abc import Callable

from dsf.runtime.backoff import Backoff, Failures
from dsf.runtime.reconcile.due_times import DueTimes


class WorkQueue:
    """Names that wait to be reconciled.

    A name that is added while it is processed is returned again afterwards. `draw` returns random
    numbers in [0, 1).
    """

    def __init__(
        self, backoff: Backoff | None = None, draw: Callable[[], float] = random.random
    ) -> None:
        self._backoff = backoff or Backoff()
        self._draw = draw
        self._schedule = DueTimes()
        self._failures: dict[str, Failures] = {}
        self._changed = asyncio.Event()

    @property
    def ceiling(self) -> float:
        """The longest back-off in seconds."""
        return self._backoff.ceiling

    def __len__(self) -> int:
        return len(self._schedule)

    def add(self, key: str, after: float = 0.0) -> None:
        """Make a name due after some seconds; the earlier of two times wins."""
        self._schedule.add(key, asyncio.get_running_loop().time() + after)
        self._changed.set()

    def retry(self, key: str, error: Exception, at_least: float = 0.0) -> float:
        """Make a name due after its back-off, and return that delay in seconds."""
        failures = self._failures.setdefault(key, Failures(self._backoff))
        delay = max(failures.delay(error, self._draw()), at_least)
        self.add(key, delay)
        return delay

    def rest(self, key: str, seconds: float) -> None:
        """Do not return a name for some seconds, even if it is added meanwhile."""
        self._schedule.rest(key, asyncio.get_running_loop().time() + seconds)

    def forget(self, key: str) -> None:
        """Reset the back-off of a name."""
        self._failures.pop(key, None)

    async def get(self) -> str:
        """Wait for a name that is due and return it; `done` must follow."""
        loop = asyncio.get_running_loop()
        while (key := self._schedule.take(loop.time())) is None:
            self._changed.clear()
            await self._wait_until(self._schedule.next_at())
        return key

    def done(self, key: str) -> None:
        """End the processing of a name."""
        self._schedule.done(key)
        self._changed.set()

    async def _wait_until(self, at: float | None) -> None:
        try:
            async with asyncio.timeout_at(at):
                await self._changed.wait()
        except TimeoutError:
            pass
