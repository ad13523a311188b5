"""The API server of the embedded hub: every write, and its consequences.

Writes are synchronous and strictly sequential. Garbage collection and the clean-up of namespaces
and CustomResourceDefinitions, which controllers do in a real cluster, end before a write returns.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import status_errors
from dsf.kube.embedded.reviews import review_resources
from dsf.kube.embedded.stored_objects import StoredObjects, is_definition
from dsf.kube.errors import BadRequest
from dsf.kube.kinds import Kind
from dsf.kube.port import Object, Subresource
from dsf.kube.resources import custom_resource_definitions, write_strategy
from dsf.kube.resources.resource_catalog import Resource
from dsf.kube.schema import object_metadata
from dsf.kube.schema.json_values import accepted

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_BASE = 58
"""Characters of generateName that a generated name keeps: 63 less the suffix of 5."""
_GENERATE_ATTEMPTS = 8
"""Attempts to find a free generated name, as in kube-apiserver."""
_ALWAYS = ("default", "kube-node-lease", "kube-public", "kube-system")
_NEVER_DELETED = frozenset({"default", "kube-public", "kube-system"})

FieldValidation = Literal["Ignore", "Warn", "Strict"]


@dataclass(slots=True)
class WriteOptions:
    """Options of a write: dry run, and how to treat unknown fields."""

    field_validation: FieldValidation = "Warn"
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)


UNCHECKED = WriteOptions("Ignore")
"""The options of writes from within the process, which read no warnings."""


class ApiServer:
    """The stored objects, the resources that they belong to, and the writes that change them.

    `crds` are accepted JSON values. They are not copied, so that many hubs share them.
    """

    def __init__(
        self,
        *,
        crds: Iterable[Object],
        now: Callable[[], datetime],
        new_uid: Callable[[], str],
        history: int,
    ) -> None:
        self.objects = StoredObjects(history, self._time)
        self.catalog = self.objects.catalog
        for review in review_resources():
            self.catalog.add(review)
        self._now = now
        self._new_uid = new_uid
        for name in _ALWAYS:
            self.create(kinds.NAMESPACE, {"metadata": {"name": name}})
        for crd in crds:
            self._create(kinds.CUSTOM_RESOURCE_DEFINITION, crd, WriteOptions("Strict"))

    def current(self, kind: Kind, name: str, namespace: str | None) -> Object:
        """Return the stored object; raises NotFound if it does not exist."""
        resource = self.catalog.resource(kind)
        obj = self.objects.find(resource.kind, name, namespace)
        if obj is None:
            raise status_errors.not_found(kind, name)
        return obj

    def create(
        self, kind: Kind, obj: Mapping[str, Any], options: WriteOptions = UNCHECKED
    ) -> Object:
        """Create an object, or answer a review."""
        return self._create(kind, accepted(obj), options)

    def _create(self, kind: Kind, obj: Object, options: WriteOptions) -> Object:
        resource = self.catalog.resource(kind)
        sent = self._decoded(resource, obj, options)
        if "resourceVersion" in sent["metadata"]:
            raise BadRequest("resourceVersion should not be set on objects to be created")
        if resource.review:
            return self._reviewed(kind, sent, resource.review(sent))
        if kind.namespaced and not sent["metadata"].get("namespace"):
            raise BadRequest("an empty namespace may not be set during creation")
        self._check_room(resource, sent)
        new = self._created(resource, sent)
        return self._commit(resource, None, new, options)

    def _reviewed(self, kind: Kind, sent: Object, answer: Object) -> Object:
        """Return a review with its answer; a review of the caller itself also tells the time."""
        if kind == kinds.SELF_SUBJECT_REVIEW:
            sent = {**sent, "metadata": {**sent["metadata"], "creationTimestamp": self._time()}}
        return {**sent, "status": answer}

    def replace(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        obj: Mapping[str, Any],
        *,
        subresource: Subresource | None = None,
        options: WriteOptions = UNCHECKED,
    ) -> Object:
        """Replace an object, or its status."""
        resource = self.catalog.resource(kind)
        sent = self._decoded(resource, accepted(obj), options)
        _check_name(sent, name, namespace if kind.namespaced else None)
        old = self.objects.find(kind, name, namespace)
        if old is None:
            if resource.create_on_update and subresource is None:
                return self.create(kind, _without_version(sent), options)
            raise status_errors.not_found(kind, name)
        uid = sent["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            raise status_errors.other_uid(kind, name, uid, old["metadata"]["uid"])
        return self._update(resource, old, sent, subresource, options)

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        change: Callable[[Object], Any],
        *,
        subresource: Subresource | None = None,
        options: WriteOptions = UNCHECKED,
    ) -> Object:
        """Replace an object, or its status, with the result of a function of it."""
        resource = self.catalog.resource(kind)
        old = self.current(kind, name, namespace)
        patched = accepted(change({**old, "apiVersion": kind.api_version}))
        if not isinstance(patched, Mapping):
            raise BadRequest("a patch must leave an object")
        try:
            sent = self._decoded(resource, patched, options)
        except BadRequest as error:
            raise status_errors.unreadable_patch(error) from error
        _check_name(sent, name, namespace if kind.namespaced else None)
        return self._update(resource, old, sent, subresource, options)

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        options: WriteOptions = UNCHECKED,
    ) -> Object:
        """Delete an object and return its last state."""
        resource = self.catalog.resource(kind)
        old = self.current(kind, name, namespace)
        if refusal := status_errors.precondition(kind, old, uid, resource_version):
            raise refusal
        if resource.kind.resource == kinds.NAMESPACE.resource and name in _NEVER_DELETED:
            raise status_errors.forbidden(kind, name, "this namespace may not be deleted")
        if options.dry_run:
            return old
        if self.objects.is_kept(resource, old):
            marked = write_strategy.marked(old, now=self._time())
            result = self.objects.put(resource, old, _terminating(resource, marked))
            self.objects.delete_contents(resource, old)
        else:
            result = self.objects.remove(resource, old)
        self.objects.collect_garbage()
        return result

    def _decoded(self, resource: Resource, obj: Any, options: WriteOptions) -> Object:
        if not isinstance(obj, Mapping):
            raise BadRequest("an object is a mapping")
        decoded = write_strategy.decoded(resource, obj)
        if decoded.unknown and options.field_validation == "Strict":
            raise BadRequest(write_strategy.strict_problem(resource, decoded.unknown))
        if options.field_validation == "Warn":
            options.warnings += map(str, decoded.unknown)
        return decoded.obj

    def _created(self, resource: Resource, sent: Object) -> Object:
        """Return the new object, with a generated name if it asks for one."""
        kind, metadata = resource.kind, sent["metadata"]
        name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
        for _ in range(_GENERATE_ATTEMPTS if prefix and not name else 1):
            uid = self._new_uid()
            chosen = name or (_generated(prefix, uid) if prefix else "")
            new = write_strategy.created(resource, sent, name=chosen, uid=uid, now=self._time())
            write_strategy.check_created(resource, new)
            existing = self.objects.find(kind, chosen, metadata.get("namespace"))
            if existing is None:
                return new
        raise status_errors.already_exists(kind, chosen, existing or new, generated=not name)

    def _check_room(self, resource: Resource, sent: Object) -> None:
        """Raise if the namespace or the CustomResourceDefinition is terminating."""
        kind, metadata = resource.kind, sent["metadata"]
        name, namespace = metadata.get("name", ""), metadata.get("namespace")
        scope = (
            self.current(kinds.NAMESPACE, namespace, None)
            if kind.namespaced and namespace
            else None
        )
        if scope and object_metadata.is_deleting(scope):
            raise status_errors.terminating_namespace(kind, name, namespace)
        crd = self.objects.find(kinds.CUSTOM_RESOURCE_DEFINITION, kind.resource)
        if crd and object_metadata.is_deleting(crd):
            problem = "create not allowed while custom resource definition is terminating"
            raise status_errors.forbidden(kind, name, problem)

    def _update(
        self,
        resource: Resource,
        old: Object,
        sent: Object,
        subresource: Subresource | None,
        options: WriteOptions,
    ) -> Object:
        kind, name = resource.kind, old["metadata"]["name"]
        version = sent["metadata"].get("resourceVersion", "")
        if not version and not resource.unconditional_update:
            raise status_errors.unversioned(kind, name)
        if version and version != old["metadata"]["resourceVersion"]:
            raise status_errors.conflict(kind, name, status_errors.MODIFIED)
        if subresource is not None:
            if not resource.has_status:
                raise status_errors.not_found(kind, name)
            new = write_strategy.with_status(old, sent)
            write_strategy.check_status(resource, new, old)
            if new != old:
                new = write_strategy.status_written(new, now=self._time())
        else:
            new = write_strategy.replaced(resource, old, sent)
            write_strategy.check_replaced(resource, new, old)
        return old if new == old else self._commit(resource, old, new, options)

    def _commit(
        self, resource: Resource, old: Object | None, new: Object, options: WriteOptions
    ) -> Object:
        """Store an object, or remove it if it is being deleted and nothing holds it back."""
        if is_definition(resource):
            new = custom_resource_definitions.established(new, self._time())
        if options.dry_run:
            return new
        if old and object_metadata.is_deleting(new) and not self.objects.is_kept(resource, new):
            result = self.objects.remove(resource, new)
        else:
            result = self.objects.put(resource, old, new)
        self.objects.collect_garbage()
        return result

    def _time(self) -> str:
        return rfc3339(self._now())


def _generated(prefix: str, uid: str) -> str:
    digest = hashlib.sha256(uid.encode()).digest()
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])
    return prefix[:_GENERATED_BASE] + suffix


def _terminating(resource: Resource, marked: Object) -> Object:
    if resource.kind.resource != kinds.NAMESPACE.resource:
        return marked
    return {**marked, "status": {**marked.get("status", {}), "phase": "Terminating"}}


def _without_version(obj: Object) -> Object:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    return {**obj, "metadata": metadata}


def _check_name(sent: Object, name: str, namespace: str | None) -> None:
    metadata = sent["metadata"]
    if (sent_name := metadata.get("name", "")) != name:
        raise BadRequest(
            f"the name of the object ({sent_name}) does not match the name on the URL ({name})"
        )
    if namespace and metadata.setdefault("namespace", namespace) != namespace:
        raise BadRequest(
            f"the namespace of the object ({metadata['namespace']}) does not match the namespace "
            f"on the request ({namespace})"
        )
