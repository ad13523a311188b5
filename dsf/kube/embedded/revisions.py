"""The revision store: current objects, a bounded history of writes, and the waiting watches.

It does what etcd and the watch cache do for a real API server. Stored objects are never changed
in place: a write replaces the old object with a new one.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile

from dsf.kube.errors import Gone
from dsf.kube.port import Object

HISTORY = 10_000
"""Writes of each resource that a watch may be behind; bounds the memory."""


@dataclass(frozen=True, slots=True)
class StoredWrite:
    """One write; `before` is None for a creation, `after` is None for a deletion.

    `last` is the object after the write; for a deletion, the object before it with the resource
    version of the deletion.
    """

    revision: int
    key: str
    before: Object | None
    after: Object | None
    last: Object


class Collection:
    """The objects of one resource by `namespace/name`, and the latest writes.

    `watches_ended` counts the calls of `end_watches`.
    """

    def __init__(self, store: "RevisionStore", history: int, forgotten: int = 0) -> None:
        self._store = store
        self.objects: dict[str, Object] = {}
        self.watches_ended = 0
        self._changes: deque[StoredWrite] = deque()
        self._history = history
        self._forgotten = forgotten
        self._waiting: set[asyncio.Event] = set()

    def record(self, change: StoredWrite) -> None:
        """Record one write and wake the waiting watches."""
        if change.after is None:
            self.objects.pop(change.key, None)
        else:
            self.objects[change.key] = change.after
        self._changes.append(change)
        while len(self._changes) > self._history:
            self._forgotten = self._changes.popleft().revision
        self._wake()

    def end_watches(self) -> None:
        """End the watches that are open now."""
        self.watches_ended += 1
        self._wake()

    def revision(self) -> int:
        """Return the current revision of the store."""
        return self._store.revision

    def since(self, revision: int) -> list[StoredWrite]:
        """Return the writes after a revision, in order; raises Gone if the history is too short."""
        if revision < self._forgotten:
            raise Gone(f"too old resource version: {revision} ({self._forgotten})")
        newest_first = takewhile(lambda change: change.revision > revision, reversed(self._changes))
        return list(newest_first)[::-1]

    def at(self, revision: int) -> dict[str, Object]:
        """Return the objects at a revision; raises Gone if the history is too short."""
        objects = dict(self.objects)
        for change in reversed(self.since(revision)):
            if change.before is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.before
        return objects

    @contextmanager
    def waiting(self) -> Iterator[asyncio.Event]:
        """Yield an event that every write sets."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            yield event
        finally:
            self._waiting.discard(event)

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()


class RevisionStore:
    """All collections; every write increments their common revision."""

    def __init__(self, history: int = HISTORY) -> None:
        self.revision = 1
        self._history = history
        self._collections: dict[str, Collection] = {}
        self._dropped: dict[str, int] = {}

    def collection(self, resource: str) -> Collection:
        """Return the collection of a qualified resource."""
        if resource not in self._collections:
            forgotten = self._dropped.get(resource, 0)
            self._collections[resource] = Collection(self, self._history, forgotten)
        return self._collections[resource]

    def collections(self) -> list[tuple[str, Collection]]:
        """Return all collections with their resources."""
        return list(self._collections.items())

    def drop(self, resource: str) -> None:
        """Drop a collection and end its watches."""
        self._dropped[resource] = self.revision
        if collection := self._collections.pop(resource, None):
            collection.end_watches()

    def end_watches(self) -> None:
        """End the watches that are open now."""
        for collection in self._collections.values():
            collection.end_watches()

    def put(self, resource: str, obj: Object) -> Object:
        """Write an object and return it with its new resource version."""
        self.revision += 1
        stored = _versioned(obj, self.revision)
        collection, key = self.collection(resource), key_of(obj)
        before = collection.objects.get(key)
        collection.record(StoredWrite(self.revision, key, before, stored, stored))
        return stored

    def remove(self, resource: str, obj: Object) -> Object:
        """Remove an object and return it with the deletion's resource version."""
        self.revision += 1
        collection, key = self.collection(resource), key_of(obj)
        last = _versioned(obj, self.revision)
        collection.record(StoredWrite(self.revision, key, collection.objects.get(key), None, last))
        return last


def key_of(obj: Object) -> str:
    """Return the key of an object: `namespace/name`."""
    metadata = obj["metadata"]
    return key(metadata.get("namespace"), metadata["name"])


def key(namespace: str | None, name: str) -> str:
    """Return the key of a namespace and a name; keys sort as in etcd."""
    return f"{namespace or ''}/{name}"


def _versioned(obj: Object, revision: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
