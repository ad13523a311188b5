"""A controller: takes names from a work queue and reconciles them, one call per name at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from prometheus_client import REGISTRY, CollectorRegistry

from dsf.kube.errors import KubeError, retry_after
from dsf.runtime.metrics import controller_metrics
from dsf.runtime.reconcile.work_queue import WorkQueue

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
