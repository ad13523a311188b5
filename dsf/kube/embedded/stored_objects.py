"""Stored objects: their revisions, and what depends on them: served resources, owners, namespaces.

The revision store does what etcd and the watch cache do for a real API server: it has the current
objects, a bounded history of writes, and the waiting watches. Stored objects are never changed in
place: a write replaces the old object with a new one. Dependents are collected in the background.
Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from dsf.kube import kinds
from dsf.kube.embedded import builtin_resources
from dsf.kube.errors import Gone
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.resources import custom_resource_definitions, write_strategy
from dsf.kube.resources.resource_catalog import Catalog, Resource
from dsf.kube.schema import object_metadata

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


ObjectKey = tuple[str, str]
"""A qualified resource and the key of one of its objects."""


class StoredObjects:
    """All objects; a write also updates the resource catalog and the dependents of owners.

    `time`: returns the current time as RFC 3339 text.
    """

    def __init__(self, history: int, time: Callable[[], str]) -> None:
        self.store = RevisionStore(history)
        self.catalog = Catalog(builtin_resources.resources())
        self._time = time
        self._dependents: dict[str, dict[ObjectKey, None]] = {}
        self._affected: deque[ObjectKey] = deque()

    def at(self, place: ObjectKey) -> Object | None:
        """Return the object of a key, or None."""
        return self.store.collection(place[0]).objects.get(place[1])

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return the object of a name, or None."""
        return self.at((kind.resource, key(namespace if kind.namespaced else None, name)))

    def put(self, resource: Resource, old: Object | None, new: Object) -> Object:
        """Store an object in place of the old one, unless they are equal."""
        if new == old:
            return new
        stored = self.store.put(resource.kind.resource, new)
        place = (resource.kind.resource, key_of(stored))
        self._record_owners(place, old, stored)
        self._affected.append(place)
        if is_definition(resource):
            self._serve(stored)
        return stored

    def remove(self, resource: Resource, last: Object) -> Object:
        """Remove an object, and the terminating namespace or CRD that becomes empty."""
        place = (resource.kind.resource, key_of(last))
        self._affected += self._dependents.pop(last["metadata"]["uid"], ())
        self._record_owners(place, self.at(place), None)
        removed = self.store.remove(resource.kind.resource, last)
        if is_definition(resource):
            self._withdraw(last)
            self.store.drop(last["metadata"]["name"])
        else:
            self._finish(kinds.NAMESPACE, last["metadata"].get("namespace"))
            self._finish(kinds.CUSTOM_RESOURCE_DEFINITION, resource.kind.resource)
        return removed

    def is_kept(self, resource: Resource, obj: Object) -> bool:
        """Return whether finalizers or contents delay the removal of a deleted object."""
        if obj["metadata"].get("finalizers"):
            return True
        return next(self._contents(resource, obj), None) is not None

    def delete_contents(self, resource: Resource, obj: Object) -> None:
        """Delete the objects in a namespace, or the instances of a CRD."""
        for place in list(self._contents(resource, obj)):
            self._delete(place)

    def collect_garbage(self) -> None:
        """Delete the objects that no owner is left of; of others, drop the references to such."""
        while self._affected:
            place = self._affected.popleft()
            obj, resource = self.at(place), self.catalog.of(place[0])
            if obj is None or resource is None or object_metadata.is_deleting(obj):
                continue
            exists = {
                reference["uid"]: self._owner_exists(obj, reference)
                for reference in obj["metadata"].get("ownerReferences", ())
            }
            if None in exists.values() or all(exists.values()):
                continue
            if any(exists.values()):
                self.put(resource, obj, _with_owners(obj, exists))
            else:
                self._delete(place)

    def _delete(self, place: ObjectKey) -> None:
        obj, resource = self.at(place), self.catalog.of(place[0])
        if obj is None or resource is None:
            return
        if not obj["metadata"].get("finalizers"):
            self.remove(resource, obj)
        elif not object_metadata.is_deleting(obj):
            self.put(resource, obj, write_strategy.marked(obj, now=self._time()))

    def _owner_exists(self, obj: Object, reference: Mapping[str, Any]) -> bool | None:
        """Return whether an owner exists, in the same namespace or cluster-scoped.

        None if that can't be told: its kind is not served, or has a namespace and `obj` has none.
        """
        resource = self.catalog.by_kind(reference["apiVersion"], reference["kind"])
        namespace = obj["metadata"].get("namespace")
        if resource is None or (resource.kind.namespaced and not namespace):
            return None
        owner = self.find(resource.kind, reference["name"], namespace)
        return owner is not None and bool(owner["metadata"]["uid"] == reference["uid"])

    def _record_owners(self, place: ObjectKey, before: Object | None, after: Object | None) -> None:
        for uid in _owner_uids(before):
            self._dependents.get(uid, {}).pop(place, None)
        for uid in _owner_uids(after):
            self._dependents.setdefault(uid, {})[place] = None

    def _contents(self, resource: Resource, obj: Object) -> Iterator[ObjectKey]:
        """Yield the keys of the objects in a namespace, or of the instances of a CRD."""
        name = obj["metadata"]["name"]
        if resource.kind.resource == kinds.NAMESPACE.resource:
            for other, collection in self.store.collections():
                for object_key in collection.objects:
                    if object_key.startswith(f"{name}/"):
                        yield other, object_key
        elif is_definition(resource):
            for object_key in self.store.collection(name).objects:
                yield name, object_key

    def _finish(self, kind: Kind, name: str | None) -> None:
        """Remove a terminating namespace or CRD once it is empty."""
        owner = self.find(kind, name) if name else None
        if owner and object_metadata.is_deleting(owner):
            resource = self.catalog.resource(kind)
            if not self.is_kept(resource, owner):
                self.remove(resource, owner)

    def _serve(self, crd: Object) -> None:
        self._withdraw(crd)
        for resource in custom_resource_definitions.resources(crd):
            self.catalog.add(resource)

    def _withdraw(self, crd: Object) -> None:
        self.catalog.withdraw(crd["spec"]["group"], crd["spec"]["names"]["plural"])


def is_definition(resource: Resource) -> bool:
    """Return whether the objects of a resource are CustomResourceDefinitions."""
    return resource.kind.resource == kinds.CUSTOM_RESOURCE_DEFINITION.resource


def _owner_uids(obj: Object | None) -> list[str]:
    references = obj["metadata"].get("ownerReferences", ()) if obj else ()
    return [reference["uid"] for reference in references]


def _with_owners(obj: Object, exists: Mapping[str, bool | None]) -> Object:
    kept = [owner for owner in obj["metadata"]["ownerReferences"] if exists[owner["uid"]]]
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}
