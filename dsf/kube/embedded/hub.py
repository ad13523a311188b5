"""The adapter for an API server in memory, with paginated lists, and watches with bookmarks.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

from dsf.api.crd.definitions import crds as product_crds
from dsf.api.untrusted_text import InvalidInput
from dsf.kube import json_merge_patch
from dsf.kube.clock import utc_now
from dsf.kube.embedded import status_errors
from dsf.kube.embedded.api_server import UNCHECKED, ApiServer, WriteOptions
from dsf.kube.embedded.stored_objects import HISTORY, Collection, StoredWrite
from dsf.kube.errors import BadRequest, Gone
from dsf.kube.kinds import Kind
from dsf.kube.port import Object, ObjectList, Subresource, WatchEvent
from dsf.kube.resources.ocm import ocm_crds
from dsf.kube.resources.resource_catalog import Resource, selectable_fields
from dsf.kube.schema.json_values import accepted, copied
from dsf.kube.selectors import FieldSelector, LabelSelector, field_selector, label_selector

BOOKMARK_SECONDS = 60.0
"""Idle time after which a watch sends a bookmark, as in kube-apiserver."""
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """The objects of a resource that a list or a watch selects."""

    resource: Resource
    namespace: str | None
    labels: LabelSelector
    fields: FieldSelector

    @property
    def selects(self) -> bool:
        """Whether it has a label or field selector."""
        return bool(self.labels.requirements or self.fields.terms)

    def has_key(self, key: str) -> bool:
        """Return whether the namespace of a key is selected."""
        return not self.namespace or key.startswith(f"{self.namespace}/")

    def matches(self, obj: Object) -> bool:
        """Return whether the labels and fields of an object are selected."""
        if self.fields.terms and not self.fields.matches(selectable_fields(self.resource, obj)):
            return False
        return self.labels.matches(obj["metadata"].get("labels", {}))

    def shown(self, obj: Object) -> Object:
        """Return a copy of an object in the requested API version."""
        return {**copied(obj), "apiVersion": self.resource.kind.api_version}


def selection(
    resource: Resource, namespace: str | None, labels: str, fields: str
) -> SelectionPredicate:
    """Parse the selectors of a request; raises BadRequest if one is malformed.

    Raises an ApiError (405) for a review, because the hub does not store reviews.
    """
    if resource.review:
        raise status_errors.method_not_allowed()
    label_terms, field_terms = label_selector(labels), field_selector(fields)
    if isinstance(label_terms, InvalidInput):
        raise BadRequest(label_terms.message)
    if isinstance(field_terms, InvalidInput):
        raise BadRequest(field_terms.message)
    for term in field_terms.terms:
        if term.field not in resource.fields:
            known = ", ".join(resource.fields)
            raise BadRequest(f"field label not supported: {term.field}; supported are {known}")
    scope = namespace if resource.kind.namespaced else None
    return SelectionPredicate(resource, scope, label_terms, field_terms)


def page(
    chosen: SelectionPredicate, collection: Collection, revision: int, *, limit: int, token: str
) -> ObjectList:
    """Return one page; raises Gone if the revision of the token is no longer in the history."""
    objects, start = collection.objects, ""
    if token:
        revision, start = _read_token(token)
        try:
            objects = collection.at(revision)
        except Gone as error:
            raise Gone(_TOO_OLD) from error
    keys = sorted(key for key in objects if key > start and chosen.has_key(key))
    matching = (key for key in keys if chosen.matches(objects[key]))
    shown = list(islice(matching, limit or None))
    more = bool(limit) and shown and next(matching, None) is not None
    return ObjectList(
        items=tuple(chosen.shown(objects[key]) for key in shown),
        resource_version=str(revision),
        continue_token=f"{revision}:{shown[-1]}" if more else "",
        remaining=len(keys) - len(shown) if more and not chosen.selects else None,
    )


def changes(
    chosen: SelectionPredicate,
    collection: Collection,
    resource_version: str,
    timeout_seconds: float,
) -> AsyncGenerator[WatchEvent]:
    """Return the events after a resource version, with a bookmark every minute and at the end.

    Without a version, or with version 0, it starts with an ADDED event for each existing object.
    Raises Gone for a version that is no longer in the history, or newer than the current one.
    """
    revision = version_number(resource_version)
    if revision > collection.revision():
        raise Gone(f"too large resource version: {revision}, current: {collection.revision()}")
    present: list[Object] = []
    if revision == 0:
        revision = collection.revision()
        present = _present(chosen, collection)
    collection.since(revision)
    return _followed(chosen, collection, present, revision, timeout_seconds)


async def _followed(
    chosen: SelectionPredicate,
    collection: Collection,
    present: list[Object],
    revision: int,
    timeout_seconds: float,
) -> AsyncGenerator[WatchEvent]:
    for obj in present:
        yield WatchEvent("ADDED", obj)
    ended, loop = collection.watches_ended, asyncio.get_running_loop()
    end = loop.time() + timeout_seconds
    with collection.waiting() as changed:
        while True:
            changed.clear()
            recent = collection.since(revision)
            revision = collection.revision()
            for event in filter(None, (_event(chosen, change) for change in recent)):
                yield event
            if collection.watches_ended != ended:
                return
            await _set_before(changed, min(end, loop.time() + BOOKMARK_SECONDS))
            if not changed.is_set():
                revision = collection.revision()
                yield _bookmark(chosen.resource, revision)
                if loop.time() >= end:
                    return


def version_number(text: str) -> int:
    """Return a resource version as a number, 0 if empty; raises BadRequest for other text."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004 - 64 bits
        raise BadRequest(f'Invalid value: "{text}": a resource version is a number')
    return int(text or 0)


def _present(chosen: SelectionPredicate, collection: Collection) -> list[Object]:
    objects = collection.objects
    keys = sorted(key for key in objects if chosen.has_key(key) and chosen.matches(objects[key]))
    return [chosen.shown(objects[key]) for key in keys]


def _event(chosen: SelectionPredicate, change: StoredWrite) -> WatchEvent | None:
    """Return the event of a write for a watch that sees only the selected objects."""
    if not chosen.has_key(change.key):
        return None
    before = change.before if change.before and chosen.matches(change.before) else None
    after = change.after if change.after and chosen.matches(change.after) else None
    if after:
        return WatchEvent("MODIFIED" if before else "ADDED", chosen.shown(after))
    if not before:
        return None
    last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(change.revision)}}
    return WatchEvent("DELETED", chosen.shown(change.last if change.after is None else last))


def _bookmark(resource: Resource, revision: int) -> WatchEvent:
    metadata = {"resourceVersion": str(revision)}
    return WatchEvent("BOOKMARK", resource.kind.object(metadata=metadata))


async def _set_before(event: asyncio.Event, when: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout_at(when):
            await event.wait()


def _read_token(token: str) -> tuple[int, str]:
    """Return the revision of the first page, and the key after which the next one begins."""
    revision, _, last = token.partition(":")
    if not version_number(revision) or not last:
        raise BadRequest("continue key is not valid: it names no version and no place")
    return version_number(revision), last


@cache
def _product_crds() -> tuple[Object, ...]:
    return tuple(map(accepted, product_crds()))


class EmbeddedHub:
    """A Kubernetes API server in memory; implements `dsf.kube.port.Kube`.

    It serves the built-in kinds that the product needs, OCM's kinds, and the kinds of `crds`, by
    default the product's own. A CRD in `crds` replaces OCM's of the same name. `history` is how
    many writes of each resource a watch may be behind. A namespace must exist before an object is
    created in it. The hub accepts every caller.
    """

    def __init__(
        self,
        *,
        crds: Iterable[Mapping[str, Any]] | None = None,
        now: Callable[[], datetime] = utc_now,
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
        history: int = HISTORY,
    ) -> None:
        own = _product_crds() if crds is None else map(accepted, crds)
        served = {crd["metadata"]["name"]: crd for crd in (*ocm_crds(), *own)}
        self.server = ApiServer(crds=served.values(), now=now, new_uid=new_uid, history=history)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        obj = self.server.current(kind, name, namespace)
        return _shown(kind, obj)

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return a page of objects."""
        resource = self.server.catalog.resource(kind)
        chosen = selection(resource, namespace, labels, fields)
        store = self.server.objects.store
        return page(
            chosen,
            store.collection(kind.resource),
            store.revision,
            limit=limit,
            token=continue_token,
        )

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str,
        timeout_seconds: int = 270,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield every change after a resource version, in order and without a gap."""
        resource = self.server.catalog.resource(kind)
        chosen = selection(resource, namespace, labels, fields)
        collection = self.server.objects.store.collection(kind.resource)
        return changes(chosen, collection, resource_version, timeout_seconds)

    async def create(
        self, kind: Kind, obj: Mapping[str, Any], *, options: WriteOptions = UNCHECKED
    ) -> Object:
        """Create an object; `status` is dropped if the kind has a status subresource."""
        return _shown(kind, self.server.create(kind, obj, options))

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object, or its status."""
        metadata = obj.get("metadata") or {}
        name, namespace = str(metadata.get("name", "")), metadata.get("namespace")
        stored = self.server.replace(kind, name, namespace, obj, subresource=subresource)
        return _shown(kind, stored)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: Subresource | None = None,
    ) -> Object:
        """Apply a JSON merge patch."""
        stored = self.server.patch(
            kind,
            name,
            namespace,
            lambda old: json_merge_patch.merged(old, patch),
            subresource=subresource,
        )
        return _shown(kind, stored)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Delete an object; with finalizers, only set its `deletionTimestamp`."""
        self.server.delete(kind, name, namespace, uid=uid, resource_version=resource_version)

    def end_watches(self) -> None:
        """End all watches, as a server does when it shuts down; clients then watch again."""
        self.server.objects.store.end_watches()


def _shown(kind: Kind, stored: Object) -> Object:
    return {**copied(stored), "apiVersion": kind.api_version}
