"""A controller and its work queue: names are reconciled, one call per name at a time.

The queue deduplicates names, and has delays and a back-off per name.
"""

import asyncio
import heapq
import logging
import random
from collections.abc import Awaitable, Callable
from itertools import count

from prometheus_client import REGISTRY, CollectorRegistry

from dsf.kube.errors import KubeError, retry_after
from dsf.runtime.backoff import Backoff, Failures
from dsf.runtime.metrics import controller_metrics


class DueTimes:
    """Keys with due times. Each key occurs once and is never processed twice at the same time."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._rests: dict[str, float] = {}
        self._active: set[str] = set()
        self._heap: list[tuple[float, int, str]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: str, at: float) -> None:
        """Make a key due at a time; the earlier of two times wins, but not before a `rest` ends."""
        at = max(at, self._rests.get(key, at))
        if at < self._due.get(key, float("inf")):
            self._due[key] = at
            self._push(key)

    def rest(self, key: str, until: float) -> None:
        """Do not return a key before a time, even if it is due or added earlier."""
        self._rests[key] = until
        if self._due.get(key, until) < until:
            self._due[key] = until
            self._push(key)

    def take(self, now: float) -> str | None:
        """Return the key that has been due longest, or None; `done` must follow."""
        at = self.next_at()
        if at is None or at > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        self._rests.pop(key, None)
        self._active.add(key)
        return key

    def done(self, key: str) -> None:
        """End the processing of a key; if it was added meanwhile, it becomes available again."""
        self._active.discard(key)
        if key in self._due:
            self._push(key)

    def next_at(self) -> float | None:
        """Return the time at which `take` has a key next, or None without any key."""
        while self._heap and not self._available(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _available(self, at: float, _: int, key: str) -> bool:
        return self._due.get(key) == at and key not in self._active

    def _push(self, key: str) -> None:
        heapq.heappush(self._heap, (self._due[key], next(self._order), key))


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
        self._taking = asyncio.Lock()

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
        # Of many workers one has a timer and hears of changes; the others wait for it.
        async with self._taking:
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


log = logging.getLogger(__name__)

Reconcile = Callable[[str], Awaitable[float | None]]


class Controller:
    """Calls `reconcile` with the names that were enqueued.

    `reconcile` gets a name, never an event. It returns the seconds after which it wants to be
    called again, or None. Every exception leads to another call: after the back-off of the name,
    or after the longest back-off if the error is not retryable. A failing name does not delay
    others. If the API server sets `retryAfterSeconds`, the name waits at least that long.
    Metrics: see `dsf.runtime.metrics`.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = 1,
        queue: WorkQueue | None = None,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self.name = name
        self.queue = WorkQueue() if queue is None else queue
        self._reconcile = reconcile
        self._workers = workers
        self._metrics = controller_metrics(registry)
        self._metrics.depth.labels(name).set_function(lambda: len(self.queue))

    def enqueue(self, key: str, after: float = 0.0) -> None:
        """Reconcile a name after some seconds."""
        self.queue.add(key, after)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._once(key)
            finally:
                self.queue.done(key)

    async def _once(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = await self._attempt(key)
        self._metrics.results.labels(self.name, result).inc()
        self._metrics.seconds.labels(self.name).observe(loop.time() - started)

    async def _attempt(self, key: str) -> str:
        try:
            again = await self._reconcile(key)
        except KubeError as error:
            self._failed(key, error)
            return "error"
        except Exception as error:
            log.exception("reconcile broke", extra={"controller": self.name, "key": key})
            self.queue.retry(key, error)
            return "broken"
        self.queue.forget(key)
        if again is not None:
            self.queue.add(key, again)
        return "success"

    def _failed(self, key: str, error: KubeError) -> None:
        asked = retry_after(error)
        if asked:
            self.queue.rest(key, asked)
        at_least = asked if error.retryable else self.queue.ceiling
        delay = self.queue.retry(key, error, at_least)
        log.warning(
            "reconcile failed",
            extra={
                "controller": self.name,
                "key": key,
                "error": f"{type(error).__name__}: {error}",
                "retry_in": round(delay, 1),
            },
        )
