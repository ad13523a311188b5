"""The garbage collector: deletes dependents and removes the finalizers of propagation policies."""

from collections.abc import Callable, Mapping
from typing import Any

from dsf.kube.embedded.storage import owner_references
from dsf.kube.embedded.storage.owner_references import ObjectKey, OwnerState
from dsf.kube.embedded.storage.revisions import key
from dsf.kube.embedded.storage.stored_objects import StoredObjects
from dsf.kube.port import Object, Propagation
from dsf.kube.resources import write_strategy
from dsf.kube.resources.resource_catalog import Resource
from dsf.kube.schema import object_metadata
from dsf.kube.schema.object_metadata import FOREGROUND, ORPHAN


class GarbageCollector:
    """Deletes objects without owners and orphans dependents, until nothing is left to do."""

    def __init__(self, objects: StoredObjects, time: Callable[[], str]) -> None:
        self._objects = objects
        self._time = time

    def collect(self) -> None:
        """Process every object that a write has affected."""
        affected = self._objects.affected
        while affected:
            place = affected.popleft()
            found, resource = self._objects.at(place), self._objects.catalog.of(place[0])
            if found is None or resource is None:
                continue
            if owner_references.waits_for(found, ORPHAN):
                self._orphan(resource, found)
            elif owner_references.waits_for(found, FOREGROUND):
                self._delete_dependents(resource, found)
            else:
                self._decide(place, resource, found)

    def delete_contents(self, resource: Resource, obj: Object) -> None:
        """Delete the objects in a namespace, or the instances of a CRD."""
        for place in list(self._objects.contents(resource, obj)):
            self._delete(place, "Background")

    def _delete(self, place: ObjectKey, propagation: Propagation) -> None:
        found, resource = self._objects.at(place), self._objects.catalog.of(place[0])
        if found is None or resource is None:
            return
        finalizers = owner_references.finalizers_for(found, propagation)
        if not finalizers:
            self._objects.remove(resource, found)
        elif not object_metadata.is_deleting(found):
            marked = write_strategy.marked(found, now=self._time(), finalizers=finalizers)
            self._objects.put(resource, found, marked)

    def _decide(self, place: ObjectKey, resource: Resource, obj: Object) -> None:
        owners = [
            (reference["uid"], self._state(obj, reference))
            for reference in obj["metadata"].get("ownerReferences", ())
        ]
        has_dependents = bool(self._objects.dependents(obj))
        match owner_references.decide(obj, owners, has_dependents=has_dependents):
            case owner_references.Keep(uids) if uids:
                self._objects.put(resource, obj, owner_references.without_owners(obj, uids))
            case owner_references.Collect(propagation):
                self._delete(place, propagation)

    def _state(self, obj: Object, reference: Mapping[str, Any]) -> OwnerState:
        """Return the state of an owner, which must be in the same namespace or cluster-scoped."""
        resource = self._objects.catalog.by_kind(reference["apiVersion"], reference["kind"])
        namespace = obj["metadata"].get("namespace")
        if resource is None or (resource.kind.namespaced and not namespace):
            return "unresolvable"
        scope = namespace if resource.kind.namespaced else None
        owner = self._objects.at((resource.kind.resource, key(scope, reference["name"])))
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            return "dangling"
        return "waiting" if owner_references.waits_for(owner, FOREGROUND) else "solid"

    def _orphan(self, resource: Resource, owner: Object) -> None:
        uid = frozenset({owner["metadata"]["uid"]})
        for place, dependent in self._objects.dependents(owner):
            if other := self._objects.catalog.of(place[0]):
                self._objects.put(other, dependent, owner_references.without_owners(dependent, uid))
        self._unfinalize(resource, owner, ORPHAN)

    def _delete_dependents(self, resource: Resource, owner: Object) -> None:
        dependents = self._objects.dependents(owner)
        if not any(owner_references.blocks(dependent, owner) for _, dependent in dependents):
            self._unfinalize(resource, owner, FOREGROUND)
        else:
            self._objects.affected += [
                place
                for place, dependent in dependents
                if not object_metadata.is_deleting(dependent)
            ]

    def _unfinalize(self, resource: Resource, obj: Object, finalizer: str) -> None:
        new = owner_references.without(obj, finalizer)
        if self._objects.is_kept(resource, new):
            self._objects.put(resource, obj, new)
        else:
            self._objects.remove(resource, new)
