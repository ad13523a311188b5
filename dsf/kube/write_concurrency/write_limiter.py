"""Lets writes wait for their turn, and measures them for the limit of writes in flight."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dsf.kube.errors import (
    FLOW_SCHEMA_UID,
    PRIORITY_LEVEL_UID,
    KubeError,
    ServerError,
    TooManyRequests,
    Unreachable,
    retry_after,
)
from dsf.kube.write_concurrency.concurrency_limit import (
    IDLE_SECONDS,
    ConcurrencyBounds,
    ConcurrencyLimit,
    WriteSample,
    after_write,
    restarted,
)

log = logging.getLogger(__name__)

WriteEnded = Callable[[float, KubeError | None], None]


class WriteLimiter:
    """Limits the writes to one API server; all that share it share the limit.

    After a 429 with Retry-After no write starts until that time is over. `on_write`, if set, gets
    the seconds and the error of every write.
    """

    def __init__(self, bounds: ConcurrencyBounds | None = None) -> None:
        self.bounds = bounds or ConcurrencyBounds()
        self.in_flight = 0
        self.on_write: WriteEnded | None = None
        self._limit = ConcurrencyLimit(self.bounds.minimum)
        self._paused_until = 0.0
        self._last_ended = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many writes may be in flight now."""
        return self._limit.current

    @property
    def floor_seconds(self) -> float | None:
        """The latency of writes when the fewest are in flight; None before it is known."""
        return self._limit.floor_seconds

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a write may start; measure it until the block ends."""
        await self._wait()
        loop = asyncio.get_running_loop()
        if not self.in_flight and loop.time() - self._last_ended > IDLE_SECONDS:
            self._limit = restarted(self._limit, self.bounds)
        self.in_flight += 1
        epoch, in_flight, started = self._limit.epoch, self.in_flight, loop.time()
        try:
            yield
        except KubeError as error:
            self._ended(
                WriteSample(epoch, in_flight, loop.time() - started, _refused(error)), error
            )
            raise
        else:
            self._ended(WriteSample(epoch, in_flight, loop.time() - started), None)
        finally:
            self.in_flight -= 1
            self._last_ended = loop.time()
            self._wake()

    def _ended(self, sample: WriteSample, error: KubeError | None) -> None:
        self._limit = after_write(self._limit, sample, self.bounds)
        if self.on_write:
            self.on_write(sample.seconds, error)
        if isinstance(error, TooManyRequests):
            seconds = retry_after(error)
            self._paused_until = max(
                self._paused_until, asyncio.get_running_loop().time() + seconds
            )
            log.warning(
                "the API server refuses writes",
                extra={
                    "retry_in": seconds,
                    "limit": self.limit,
                    "flow_schema": error.details.get(FLOW_SCHEMA_UID, ""),
                    "priority_level": error.details.get(PRIORITY_LEVEL_UID, ""),
                },
            )

    async def _wait(self) -> None:
        while True:
            pause = self._paused_until - asyncio.get_running_loop().time()
            if pause > 0:
                await asyncio.sleep(pause)
            elif self.in_flight < self.limit:
                return
            else:
                await self._freed()

    async def _freed(self) -> None:
        """Wait until a write ends, in the order of the calls."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():
                self._wake()
            raise

    def _wake(self) -> None:
        """Wake as many as may start."""
        free = self.limit - self.in_flight
        while self._waiting and free > 0:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                free -= 1


def _refused(error: KubeError) -> bool:
    return isinstance(error, TooManyRequests | ServerError | Unreachable)
