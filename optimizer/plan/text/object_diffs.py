"""What the changes of a plan do to each object, as a unified diff of its YAML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

import yaml

from dsf.kube.changes import Change, Create, Delete, Patch
from dsf.kube.json_merge_patch import merged
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.plan.generated_objects import describe
from optimizer.snapshot.object_readers import name_of

_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
"""Fields of metadata that the API server writes."""


@dataclass(frozen=True, slots=True)
class ObjectDiff:
    """An object before and after a change, without what the API server writes; None: none."""

    change: Change
    before: Object | None
    after: Object | None

    def text(self) -> str:
        """Return a unified diff whose head names the object."""
        name = f"{self.change.kind.resource}/{self.change.namespace or ''}/{self.change.name}"
        lines = unified_diff(
            _lines(self.before),
            _lines(self.after),
            f"hub/{name}" if self.before else "/dev/null",
            f"plan/{name}" if self.after else "/dev/null",
        )
        return "".join(lines)

    def document(self) -> dict[str, Any]:
        """Return the change with both objects as a JSON value."""
        described = json.loads(describe(self.change).model_dump_json())
        return {**described, "before": self.before, "after": self.after}


def object_diffs(
    changes: Iterable[Change], current: Mapping[tuple[Kind, str | None], Sequence[Object]]
) -> tuple[ObjectDiff, ...]:
    """Return what each change does; `current`: the objects of each kind and namespace.

    Changes of a status are left out, because others write it.
    """
    known = {
        (kind, namespace, name_of(obj)): _owned(obj)
        for (kind, namespace), objects in current.items()
        for obj in objects
    }
    return tuple(
        _diff(change, known.get((change.kind, change.namespace, change.name)))
        for change in changes
        if not (isinstance(change, Patch) and change.subresource)
    )


def _diff(change: Change, before: Object | None) -> ObjectDiff:
    match change:
        case Create():
            return ObjectDiff(change, before, _owned(change.obj))
        case Delete():
            return ObjectDiff(change, before, None)
        case Patch():
            return ObjectDiff(change, before, _owned(merged(before or {}, change.body)))


def _owned(obj: Object) -> Object:
    metadata = {
        field: value
        for field, value in (obj.get("metadata") or {}).items()
        if field not in _OF_THE_SERVER
    }
    return {
        **{field: value for field, value in obj.items() if field != "status"},
        "metadata": metadata,
    }


def _lines(obj: Object | None) -> list[str]:
    if obj is None:
        return []
    return yaml.safe_dump(obj, sort_keys=True).splitlines(keepends=True)
