"""A local copy of a collection, kept up to date by list and watch.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import asyncio
import logging
import math
import random
import sys
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Generic, TypeVar

from dsf.kube.changes import key
from dsf.kube.errors import AnswerTooLarge, Gone, KubeError, ServerError, retry_after
from dsf.kube.kinds import Kind
from dsf.kube.port import PAGE, ListerWatcher, Object, WatchEvent
from dsf.runtime.backoff import Backoff, Failures

log = logging.getLogger(__name__)

Key = tuple[str, str]
T = TypeVar("T")

WATCH_SECONDS = (240, 300)
"""Shortest and longest duration of a watch; random, so that watches do not end together."""
SHORT_SECONDS = 1.0
"""A watch that ends sooner and without an event counts as a failure, as in client-go."""


class View(Generic[T]):
    """Keeps `items`: `read(object)` by (namespace, name); the namespace is empty if cluster-scoped.

    A change is reported only if the result of `read` differs. `synced` is set once the first list
    is complete. A KubeError does not end `run`: after a back-off it watches again from the last
    version seen, or lists again if that version is gone, which also detects deletions. A watch is
    asked to stay open for a random time between the two `watch_seconds`; `draw` returns random
    numbers in [0, 1). An error of `ends_on` ends `run`, and so does an exception of `read`; then
    nothing is in `items`. A list has at most `page` objects a page, fewer where that is too large.

    `heard`: when the API server last said what there is, by a list, an event or a bookmark, in
    seconds of the loop's clock. All that was written before is in `items`.
    """

    def __init__(
        self,
        kube: ListerWatcher,
        kind: Kind,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        *,
        read: Callable[[Object], T],
        backoff: Backoff | None = None,
        watch_seconds: tuple[int, int] = WATCH_SECONDS,
        draw: Callable[[], float] = random.random,
        ends_on: tuple[type[KubeError], ...] = (),
        page: int = PAGE,
    ) -> None:
        self.items: dict[Key, T] = {}
        self.heard = -math.inf
        self._ends_on = ends_on
        self._page = page
        self._read = read
        self.synced = asyncio.Event()
        self._kube = kube
        self._kind = kind
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._failures = Failures(backoff or Backoff(0.5, 15.0))
        self._watch_seconds = watch_seconds
        self._draw = draw
        self._version: str | None = None
        self._outdated = asyncio.Event()
        self._refreshed = asyncio.Event()
        self._advanced = asyncio.Event()
        self._callbacks: list[Callable[[Key], None]] = []

    def on_change(self, callback: Callable[[Key], None]) -> None:
        """Call `callback` with the key of every object that is added, modified or deleted."""
        self._callbacks.append(callback)

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            while True:
                try:
                    if self._version is None or self._outdated.is_set():
                        await self._replace()
                    await self._until_outdated(self._watch(self._version or ""))
                except KubeError as error:
                    if isinstance(error, self._ends_on):
                        raise
                    await self._recover(error)
        except Exception:
            self._forget()
            raise

    def contains(self, version: str) -> bool:
        """Return whether `items` has the write that made this resource version."""
        return bool(self._version) and not is_newer(version, self._version or "")

    async def reach(self, version: str) -> None:
        """Return once `items` has the write that made this resource version."""
        while not self.contains(version):
            self._advanced.clear()
            await self._advanced.wait()

    async def refresh(self) -> None:
        """List again, and return once `items` contains every write made before the call.

        Use it where a watch may lag behind. `run` does the work, so it must be running.
        """
        self._refreshed.clear()
        self.outdate()
        await self._refreshed.wait()

    def outdate(self) -> None:
        """List again, and open a new watch: this one seems to be dead."""
        self._outdated.set()

    @property
    def version(self) -> str:
        """The resource version that `items` shows; empty before the first list."""
        return self._version or ""

    def _forget(self) -> None:
        gone, self._version, self.heard = list(self.items), None, -math.inf
        self.items.clear()
        self.synced.clear()
        self._notify(*gone)

    async def _until_outdated(self, watch: Coroutine[None, None, None]) -> None:
        tasks = [asyncio.ensure_future(watch), asyncio.ensure_future(self._outdated.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0] in done:
                tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _recover(self, error: KubeError) -> None:
        if isinstance(error, Gone):
            self._version = None
        delay = max(self._failures.delay(error, self._draw()), retry_after(error))
        log.warning(
            "list or watch failed",
            extra={
                "resource": self._kind.resource,
                "error": f"{type(error).__name__}: {error}",
                "retry_in": round(delay, 1),
            },
        )
        await asyncio.sleep(delay)

    async def _replace(self) -> None:
        self._outdated.clear()
        asked = asyncio.get_running_loop().time()
        try:
            after, self._version = await self._list(self._page)
        except KubeError:
            self._version = None
            raise
        self.heard = asked
        differing = [k for k in self.items.keys() | after.keys() if self._differs(k, after.get(k))]
        self.items.clear()
        self.items.update(after)
        self.synced.set()
        self._advanced.set()
        if not self._outdated.is_set():
            self._refreshed.set()
        self._notify(*differing)

    async def _list(self, limit: int) -> tuple[dict[Key, T], str]:
        items: dict[Key, T] = {}
        token = ""
        while True:
            try:
                page = await self._kube.list(
                    self._kind,
                    self._namespace,
                    labels=self._labels,
                    fields=self._fields,
                    limit=limit,
                    continue_token=token,
                )
            except Gone:
                if not token:
                    raise
                # The continue token expired while paging: only one large page is consistent.
                return await self._list(limit=0)
            except AnswerTooLarge:
                if limit <= 1:
                    raise
                return await self._list(limit // 4 or 1)
            items.update((_key(obj), self._read(obj)) for obj in page.items)
            token = page.continue_token
            if not token:
                return items, page.resource_version

    async def _watch(self, version: str) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        shortest, longest = self._watch_seconds
        events = self._kube.watch(
            self._kind,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version=version,
            timeout_seconds=shortest + int(self._draw() * (longest - shortest)),
        )
        async with aclosing(events):
            async for event in events:
                self._take(event)
        if self._version == version and loop.time() - started < SHORT_SECONDS:
            raise ServerError("the API server closed the watch at once")
        self._failures.reset()

    def _take(self, event: WatchEvent) -> None:
        obj = event.object
        self._version = obj["metadata"]["resourceVersion"]
        self.heard = asyncio.get_running_loop().time()
        self._failures.reset()
        if event.type != "BOOKMARK":
            self._put(_key(obj), None if event.type == "DELETED" else self._read(obj))
        self._advanced.set()

    def _put(self, k: Key, item: T | None) -> None:
        differs = self._differs(k, item)
        if item is None:
            self.items.pop(k, None)
        else:
            self.items[k] = item
        if differs:
            self._notify(k)

    def _differs(self, k: Key, item: T | None) -> bool:
        return self.items.get(k) != item

    def _notify(self, *keys: Key) -> None:
        for k in keys:
            for callback in self._callbacks:
                callback(k)


def is_newer(version: str, than: str) -> bool:
    """Return whether a resource version is newer than another one of the same resource.

    Source: KEP-5504, comparable resource versions: they are decimal numbers.
    """
    try:
        return int(version) > int(than)
    except ValueError:
        return version != than


def _key(obj: Object) -> Key:
    """Return (namespace, name), interned because there may be 100,000 of them."""
    namespace, name = key(obj)
    return sys.intern(namespace), sys.intern(name)
