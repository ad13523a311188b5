"""Apply changes to a cluster: concurrently, and in order where the order matters.

How many writes are in flight follows the latency of the API server: see
`dsf.kube.concurrency_limit`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby

from dsf.kube import errors
from dsf.kube.changes import Change, ChangeResult, Create, Delete, Patch, merge_patch
from dsf.kube.concurrency_limit import (
    IDLE_SECONDS,
    ConcurrencyBounds,
    ConcurrencyLimit,
    WriteSample,
    after_write,
    checked,
)
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube

ATTEMPTS = 4
"""How often a write is sent that the API server refuses with 429 and Retry-After, in all."""

log = logging.getLogger(__name__)

_Numbered = tuple[int, Change]

WriteEnded = Callable[[float, errors.KubeError | None], None]


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
            self._limit = checked(self._limit, self.bounds, idle=True)
        self.in_flight += 1
        epoch, in_flight, started = self._limit.epoch, self.in_flight, loop.time()
        try:
            yield
        except errors.KubeError as error:
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

    def _ended(self, sample: WriteSample, error: errors.KubeError | None) -> None:
        self._limit = after_write(self._limit, sample, self.bounds)
        if self.on_write:
            self.on_write(sample.seconds, error)
        if isinstance(error, errors.TooManyRequests):
            seconds = errors.retry_after(error)
            self._paused_until = max(
                self._paused_until, asyncio.get_running_loop().time() + seconds
            )
            log.warning(
                "the API server refuses writes",
                extra={
                    "retry_in": seconds,
                    "limit": self.limit,
                    "flow_schema": error.details.get(errors.FLOW_SCHEMA_UID, ""),
                    "priority_level": error.details.get(errors.PRIORITY_LEVEL_UID, ""),
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


def _refused(error: errors.KubeError) -> bool:
    return isinstance(error, errors.TooManyRequests | errors.ServerError | errors.Unreachable)


async def apply(
    kube: Kube, changes: Iterable[Change], *, limiter: WriteLimiter | None = None
) -> list[ChangeResult]:
    """Apply every change and return a result for each, in order; a KubeError becomes its error.

    Neighbouring changes of one kind run concurrently, as many as the limiter allows; without one,
    this call has its own. Changes of one object stay in order, and deletes wait for the changes
    before them. The next kind starts once all changes of the kind before it have ended. One failure
    does not stop the others. A write that the API server refuses with 429 and Retry-After was not
    executed, and is sent again after that time.

    Two outcomes count as success: creating an object that already exists as desired, and deleting
    an object that is gone, that was re-created under its name, or that was written since it was
    read where the deletion names its resource version.
    """
    numbered = list(enumerate(changes))
    outcomes: dict[int, ChangeResult] = {}
    limiter = limiter or WriteLimiter()
    for _, stage in groupby(numbered, key=_stage):
        chains = iter(_by_object(list(stage)))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(limiter.bounds.maximum, len(numbered))):
                group.create_task(_work(kube, limiter, chains, outcomes))
    return [outcomes[number] for number, _ in numbered]


def _stage(numbered: _Numbered) -> tuple[Kind, bool]:
    _, change = numbered
    return change.kind, isinstance(change, Delete)


def _by_object(stage: Sequence[_Numbered]) -> list[list[_Numbered]]:
    chains: dict[tuple[str | None, str], list[_Numbered]] = {}
    for number, change in stage:
        chains.setdefault((change.namespace, change.name), []).append((number, change))
    return list(chains.values())


async def _work(
    kube: Kube,
    limiter: WriteLimiter,
    chains: Iterator[Sequence[_Numbered]],
    outcomes: dict[int, ChangeResult],
) -> None:
    for chain in chains:
        for number, change in chain:
            error = await _error_of(kube, limiter, change)
            if error and await _benign(kube, change, error):
                error = None
            outcomes[number] = ChangeResult(change, error)


async def _error_of(kube: Kube, limiter: WriteLimiter, change: Change) -> errors.KubeError | None:
    error: errors.KubeError | None = None
    for _ in range(ATTEMPTS):
        try:
            async with limiter.turn():
                await _apply_one(kube, change)
        except errors.TooManyRequests as refusal:
            error = refusal
            if not errors.retry_after(refusal):
                return error
        except errors.KubeError as failure:
            return failure
        else:
            return None
    return error


async def _apply_one(kube: Kube, change: Change) -> None:
    match change:
        case Create(kind, obj):
            await kube.create(kind, obj)
        case Patch(kind, name, namespace, body, subresource):
            await kube.patch(kind, name, body, namespace, subresource=subresource)
        case Delete(kind, name, namespace, uid, version):
            await kube.delete(kind, name, namespace, uid=uid, resource_version=version)


async def _benign(kube: Kube, change: Change, error: errors.KubeError) -> bool:
    match change, error:
        case Delete(), errors.NotFound():
            return True
        case Delete(uid=uid, resource_version=version), errors.Conflict():
            return bool(uid or version)
        case Create(), errors.AlreadyExists():
            return await _exists_as_desired(kube, change)
        case _:
            return False


async def _exists_as_desired(kube: Kube, change: Create) -> bool:
    try:
        observed = await kube.get(change.kind, change.name, change.namespace)
    except errors.KubeError:
        return False
    return not merge_patch(observed, change.obj)
