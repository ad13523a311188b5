"""Paginated lists, and watches with bookmarks.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from dsf.api.invalid_input import InvalidInput
from dsf.kube.embedded import status_errors
from dsf.kube.embedded.revisions import Collection, StoredWrite
from dsf.kube.errors import BadRequest, Gone
from dsf.kube.port import Object, ObjectList, WatchEvent
from dsf.kube.resources.resource_catalog import Resource, selectable_fields
from dsf.kube.schema.json_values import copied
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
    return WatchEvent(
        "BOOKMARK",
        {
            "kind": resource.kind.kind,
            "apiVersion": resource.kind.api_version,
            "metadata": {"resourceVersion": str(revision)},
        },
    )


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
