"""One watch of a collection, for any number of readers who each follow one of its objects."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, NamedTuple, TypeVar

from dsf.kube.changes import key
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, find_object
from dsf.runtime.reconcile.reflector import Key, View, is_newer

T = TypeVar("T")


class FollowedView(Generic[T]):
    """Lets readers follow single objects; there is one watch for all of them, and none for nobody.

    `read(object)` is what readers get; None: there is nothing to follow any more. Only objects that
    somebody follows are kept, and each version is read once for all who follow it.
    """

    def __init__(
        self,
        kube: Kube,
        kind: Kind,
        namespace: str | None = None,
        *,
        read: Callable[[Object], Awaitable[T | None]],
    ) -> None:
        self._kube = kube
        self._kind = kind
        self._namespace = namespace
        self._read = read
        self._callbacks: list[Callable[[Key], None]] = [self._tell]
        self._latest: dict[Key, _Latest[T]] = {}
        self._running: _Running | None = None

    def on_change(self, callback: Callable[[Key], None]) -> None:
        """Call `callback` with the key of every object that is added, modified or deleted."""
        self._callbacks.append(callback)
        if self._running:
            self._running.view.on_change(callback)

    @property
    def heard(self) -> float:
        """When the API server last told of the collection; -inf where it is not watched."""
        return self._running.view.heard if self._running else -math.inf

    async def run(self) -> None:
        """Watch until cancelled, whether or not anybody follows an object."""
        async with self._watching() as running:
            await asyncio.wait({running.task})
            running.task.result()

    async def follow(self, obj: Object) -> AsyncGenerator[T]:
        """Yield an object that was just read, then its newest version whenever there is a new one.

        A reader who is slow misses versions, but never the last one. Ends when the object is
        deleted. Raises KubeError if it has to be read again, and can't be.
        """
        at = key(obj)
        latest = self._latest.setdefault(at, _Latest())
        latest.readers += 1
        try:
            async with latest.reading:
                if latest.is_older_than(_version(obj)):
                    latest.put(_version(obj), await self._read(obj))
            del obj  # Thousands of readers share what is read: none keeps a copy of its own.
            async with self._watching() as running:
                shown: T | None = None
                while latest.item is not None:
                    changed = latest.changed
                    if latest.item is not shown:
                        shown = latest.item
                        yield shown
                    await running.view.synced.wait()
                    await self._catch_up(at, latest, running.view)
                    if latest.item is shown:
                        await changed.wait()
        finally:
            latest.readers -= 1
            if not latest.readers:
                self._latest.pop(at, None)
                self._release(at)

    async def _catch_up(self, at: Key, latest: "_Latest[T]", view: "View[_Seen]") -> None:
        """Take what the view has seen; read an object that it has not, or not in full."""
        async with latest.reading:
            seen = view.items.get(at)
            if latest.item is None or (seen and not is_newer(seen.version, latest.version)):
                return
            if seen and seen.obj is not None:
                latest.put(seen.version, await self._read(seen.obj))
                return
            # Deleted, not seen yet, or seen before anybody followed it: only the hub knows.
            namespace, name = at
            obj = await find_object(self._kube, self._kind, name, namespace or None)
            if obj is None:
                latest.put("", None)
            elif is_newer(_version(obj), latest.version):
                latest.put(_version(obj), await self._read(obj))

    @asynccontextmanager
    async def _watching(self) -> "AsyncIterator[_Running]":
        running = self._running = self._running or self._start()
        running.users += 1
        try:
            yield running
        finally:
            running.users -= 1
            if not running.users:
                self._running = None
                running.task.cancel()
                await asyncio.wait({running.task})

    def _start(self) -> "_Running":
        view = View(self._kube, self._kind, self._namespace, read=self._seen)
        for callback in self._callbacks:
            view.on_change(callback)
        return _Running(view)

    def _seen(self, obj: Object) -> "_Seen":
        return _Seen(_version(obj), obj if key(obj) in self._latest else None)

    def _tell(self, at: Key) -> None:
        if latest := self._latest.get(at):
            latest.wake()

    def _release(self, at: Key) -> None:
        """Let go of an object that nobody follows any more."""
        items = self._running.view.items if self._running else {}
        if at in items:
            items[at] = _Seen(items[at].version, None)


class _Seen(NamedTuple):
    """An object as the watch has shown it; `obj` only if somebody followed it then."""

    version: str
    obj: Object | None


class _Running:
    """A view that is being kept up to date for its users."""

    def __init__(self, view: View[_Seen]) -> None:
        self.view = view
        self.task = asyncio.create_task(view.run())
        self.users = 0


class _Latest(Generic[T]):
    """The newest version of an object that somebody follows; without an item, it is gone."""

    def __init__(self) -> None:
        self.version = ""
        self.item: T | None = None
        self.readers = 0
        self.changed = asyncio.Event()
        self.reading = asyncio.Lock()

    def is_older_than(self, version: str) -> bool:
        return self.item is None or is_newer(version, self.version)

    def put(self, version: str, item: T | None) -> None:
        self.version, self.item = version, item
        self.wake()

    def wake(self) -> None:
        """Wake all readers who wait."""
        self.changed.set()
        self.changed = asyncio.Event()


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])
