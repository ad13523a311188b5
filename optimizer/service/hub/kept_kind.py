"""The objects of one kind in memory: which there are, how old they are, and pages of them."""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from dsf.api.untrusted_text import InvalidInput
from dsf.kube import kinds
from dsf.kube.kinds import Kind
from dsf.kube.port import Object, ObjectList
from dsf.kube.selectors import FieldSelector, LabelSelector, field_selector, label_selector
from dsf.runtime.reconcile.reflector import Key, View
from optimizer.snapshot.scores.score_row import ScoreRow

CONTINUE = "kept:"
"""How our continue tokens begin."""

_FIELDS = ("metadata.namespace", "metadata.name")


class Selection(NamedTuple):
    """Which of the kept objects a reader wants."""

    labels: LabelSelector
    fields: FieldSelector

    def has(self, key: Key) -> bool:
        """Return whether namespace and name are selected."""
        terms = self.fields.terms
        return not terms or self.fields.matches(dict(zip(_FIELDS, key, strict=True)))


@lru_cache(256)
def selection(kept: str | None, labels: str, fields: str) -> Selection | None:
    """Return the selection of a list; None if only the API server can make it.

    `kept`: the labels of the objects that are in memory; None: none are.
    """
    by_field = field_selector(fields)
    by_label = label_selector("" if labels == kept else labels)
    if kept not in ("", labels) or isinstance(by_label, InvalidInput):
        return None
    if isinstance(by_field, InvalidInput) or {item.field for item in by_field.terms} - {*_FIELDS}:
        return None
    return Selection(by_label, by_field)


class KeptKind:
    """The objects of a kind in memory. `written`: the newest version that this process wrote.

    `refused`: the API server lists it for nobody here: it is not served, or a right is missing.
    """

    def __init__(self, kind: Kind, namespace: str | None, view: View[Any]) -> None:
        self.kind = kind
        self.namespace = namespace
        self.view = view
        self.refused = False
        self.written = ""
        self.deletions = 0
        self._seen_deletions = 0
        self._refreshing = asyncio.Lock()
        self._order = dict[str, Key]()
        self._texts = list[str]()
        self._sorted = True
        view.on_change(self._changed)

    @property
    def age(self) -> float:
        """Return how many seconds ago the API server last told of it."""
        return asyncio.get_running_loop().time() - self.view.heard

    async def catch_up(self) -> None:
        """Return once it has what this process wrote before the call."""
        async with self._refreshing:
            if self._seen_deletions < (deletions := self.deletions):
                await self.view.refresh()
                self._seen_deletions = deletions
        if self.written:
            await self.view.reach(self.written)

    def page(self, chosen: Selection, namespace: str | None, limit: int, after: str) -> ObjectList:
        """Return the objects that follow one, in the order of the API server."""
        matching = self._matching(chosen, namespace or "", after)
        found = list(islice(matching, limit + 1 if limit else None))
        more = bool(limit) and len(found) > limit
        shown = found[:limit] if limit else found
        token = CONTINUE + shown[-1][0] if more else ""
        return ObjectList(tuple(obj for _, obj in shown), self.view.version, token)

    def _changed(self, key: Key) -> None:
        if (key in self.view.items) != ("/".join(key) in self._order):
            self._sorted = False

    def _sort(self) -> None:
        if not self._sorted:
            keys = sorted(("/".join(key), key) for key in self.view.items)
            self._order, self._sorted = dict(keys), True
            self._texts = [text for text, _ in keys]

    def _matching(
        self, chosen: Selection, namespace: str, after: str
    ) -> Iterator[tuple[str, Object]]:
        self._sort()
        for at in range(bisect_right(self._texts, after), len(self._texts)):
            key = self._order[text := self._texts[at]]
            if (not namespace or key[0] == namespace) and chosen.has(key):
                obj = object_of(self.view.items[key])
                if chosen.labels.matches(obj["metadata"].get("labels") or {}):
                    yield text, obj


def object_of(item: Object | ScoreRow) -> Object:
    """Return what is in memory as the object that it was."""
    return item.object if isinstance(item, ScoreRow) else item


def lean(kind: Kind, obj: Object) -> Object:
    """Return an object without what nothing here reads: it is the most of it.

    Of managedFields, times and the fields of the first level are left; of a ManifestWork no spec.
    """
    managed = [
        {
            "time": item.get("time"),
            "subresource": item.get("subresource", ""),
            "fieldsV1": {key: {} for key in item.get("fieldsV1") or ()},
        }
        for item in obj["metadata"].get("managedFields") or ()
    ]
    kept = {**obj, "metadata": {**obj["metadata"], "managedFields": managed}}
    return {**kept, "spec": {}} if kind == kinds.MANIFEST_WORK else kept
