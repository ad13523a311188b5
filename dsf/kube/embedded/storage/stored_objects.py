"""Stored objects with all that depends on them: served resources, owner graph, namespaces."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsf.kube import kinds
from dsf.kube.embedded.registry import builtin_resources
from dsf.kube.embedded.storage import owner_references
from dsf.kube.embedded.storage.owner_references import ObjectKey, OwnerGraph
from dsf.kube.embedded.storage.revisions import RevisionSnapshot, RevisionStore, key, key_of
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.resources import custom_resource_definitions
from dsf.kube.resources.resource_catalog import Catalog, Resource
from dsf.kube.schema import object_metadata


@dataclass(frozen=True, slots=True)
class StorageSnapshot:
    """Objects, owner graph and served resources at one revision."""

    store: RevisionSnapshot
    graph: OwnerGraph
    resources: list[Resource]


class StoredObjects:
    """All objects; a write also updates the resource catalog, the owner graph and `affected`."""

    def __init__(self, history: int) -> None:
        self.store = RevisionStore(history)
        self.catalog = Catalog(builtin_resources.resources())
        self.graph = OwnerGraph()
        self.affected: deque[ObjectKey] = deque()

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
        self.graph.record(place, old, stored)
        self.affected.append(place)
        if is_definition(resource):
            self._serve(stored)
        return stored

    def remove(self, resource: Resource, last: Object) -> Object:
        """Remove an object, and the terminating namespace or CRD that becomes empty."""
        place = (resource.kind.resource, key_of(last))
        self.affected += self.graph.dependents_of(last)
        owners = owner_references.owner_uids(last)
        self.affected += [self.graph.places[uid] for uid in owners if uid in self.graph.places]
        self.graph.record(place, self.at(place), None)
        removed = self.store.remove(resource.kind.resource, last)
        if is_definition(resource):
            self._withdraw(last)
            self.store.drop(last["metadata"]["name"])
        else:
            self._finish(kinds.NAMESPACE, last["metadata"].get("namespace"))
            self._finish(kinds.CUSTOM_RESOURCE_DEFINITION, resource.kind.resource)
        return removed

    def snapshot(self) -> StorageSnapshot:
        """Return what `reset` needs to undo every write after this."""
        return StorageSnapshot(self.store.snapshot(), self.graph.copy(), self.catalog.all())

    def reset(self, snapshot: StorageSnapshot) -> None:
        """Undo every write since a snapshot."""
        self.store.reset(snapshot.store)
        self.graph = snapshot.graph
        self.catalog.reset(snapshot.resources)
        self.affected.clear()

    def contents(self, resource: Resource, obj: Object) -> Iterator[ObjectKey]:
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

    def is_kept(self, resource: Resource, obj: Object) -> bool:
        """Return whether finalizers or contents delay the removal of a deleted object."""
        if obj["metadata"].get("finalizers"):
            return True
        return next(self.contents(resource, obj), None) is not None

    def dependents(self, obj: Object) -> list[tuple[ObjectKey, Object]]:
        """Return the objects that name this one as their owner, with their keys."""
        places: Iterable[ObjectKey] = self.graph.dependents_of(obj)
        return [(place, found) for place in places if (found := self.at(place))]

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
