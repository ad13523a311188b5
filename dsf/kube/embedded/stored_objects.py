"""Stored objects with all that depends on them: served resources, owners, namespaces.

Dependents are collected in the background. Source:
https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dsf.kube import kinds
from dsf.kube.embedded import builtin_resources
from dsf.kube.embedded.revisions import RevisionStore, key, key_of
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.resources import custom_resource_definitions, write_strategy
from dsf.kube.resources.resource_catalog import Catalog, Resource
from dsf.kube.schema import object_metadata

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
