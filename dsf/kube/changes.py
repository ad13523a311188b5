"""Desired against observed: what has to change, as data.

A desired object names the fields that are ours. Of `metadata.labels`, `metadata.annotations` and
`status`, the members that it lacks stay as they are. Every other field that it names (`spec`,
`data`, `metadata.finalizers`, ...) is ours as a whole: what it lacks inside is removed, so values
that the API server would default have to be stated. Null means absent, and so does an empty field.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.kube import json_merge_patch
from dsf.kube.errors import KubeError
from dsf.kube.kinds import Kind
from dsf.kube.port import Object, Subresource

_SHARED_METADATA = ("labels", "annotations")
_OWNED_METADATA = ("finalizers", "ownerReferences")
_NOT_DATA = ("apiVersion", "kind", "metadata", "status")


@dataclass(frozen=True, slots=True)
class Create:
    """An object to be created; its content, which may be secret, is not shown."""

    kind: Kind
    obj: Object = field(repr=False)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """Its namespace; None where the kind has none."""
        return key(self.obj)[0] or None

    def __str__(self) -> str:
        return f"create {_label(self)}"


@dataclass(frozen=True, slots=True)
class Patch:
    """A JSON merge patch to be applied to an object or to its status; its content is not shown."""

    kind: Kind
    name: str
    namespace: str | None
    body: dict[str, Any] = field(repr=False)
    subresource: Subresource | None = None

    def __str__(self) -> str:
        return f"patch {_label(self)}" + (f" ({self.subresource})" if self.subresource else "")


@dataclass(frozen=True, slots=True)
class Delete:
    """An object to be deleted; with `uid` only that very object, not a successor of its name."""

    kind: Kind
    name: str
    namespace: str | None
    uid: str | None = None

    def __str__(self) -> str:
        return f"delete {_label(self)}"


Change = Create | Patch | Delete


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """A change and the error that it met, if any."""

    change: Change
    error: KubeError | None = None


def diff(kind: Kind, desired: Iterable[Object], observed: Iterable[Object]) -> list[Change]:
    """Return what turns `observed` into `desired`: creates and patches, then deletes.

    `observed` holds only objects that may be deleted where nobody desires them. A desired `status`
    becomes a patch of its own, since the API server drops it from a create. Objects that are being
    deleted already are not deleted again.
    """
    wanted = {key(obj): obj for obj in desired}
    existing = {key(obj): obj for obj in observed}
    changes = [
        change
        for identity, obj in wanted.items()
        for change in _towards(kind, obj, existing.get(identity))
    ]
    return changes + [
        _delete(kind, obj)
        for identity, obj in existing.items()
        if identity not in wanted and "deletionTimestamp" not in obj["metadata"]
    ]


def merge_patch(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest JSON merge patch of all but the status; empty where nothing differs.

    A `metadata.resourceVersion` in `desired` becomes a precondition of the patch.
    """
    patch = _owned(observed, desired, [field for field in desired if field not in _NOT_DATA])
    metadata = _metadata_patch(observed.get("metadata") or {}, desired.get("metadata") or {})
    if metadata:
        patch["metadata"] = metadata
    return _guarded(patch, desired)


def status_patch(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest JSON merge patch of the status fields that `desired` names."""
    status = desired.get("status") or {}
    patch = _shared(observed.get("status") or {}, status)
    return _guarded({"status": patch} if patch else {}, desired)


def key(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return namespace (empty where there is none) and name."""
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _towards(kind: Kind, desired: Object, observed: Object | None) -> list[Change]:
    changes: list[Change] = []
    namespace, name = key(desired)
    if observed is None:
        changes.append(Create(kind, {k: v for k, v in desired.items() if k != "status"}))
    elif body := merge_patch(observed, desired):
        changes.append(Patch(kind, name, namespace or None, body))
    if body := status_patch(observed or {}, desired):
        changes.append(Patch(kind, name, namespace or None, body, "status"))
    return changes


def _delete(kind: Kind, obj: Object) -> Delete:
    namespace, name = key(obj)
    return Delete(kind, name, namespace or None, obj["metadata"].get("uid"))


def _metadata_patch(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    patch = _owned(observed, desired, [field for field in _OWNED_METADATA if field in desired])
    for shared in _SHARED_METADATA:
        changed = _shared(observed.get(shared) or {}, desired.get(shared) or {})
        if changed:
            patch[shared] = changed
    return patch


def _owned(
    observed: Mapping[str, Any], desired: Mapping[str, Any], fields: Iterable[str]
) -> dict[str, Any]:
    named = [field for field in fields if desired[field] or observed.get(field)]
    return json_merge_patch.patch_between(
        {field: observed.get(field) for field in named}, {field: desired[field] for field in named}
    )


def _shared(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    return json_merge_patch.patch_between(
        {field: observed.get(field) for field in desired}, desired
    )


def _guarded(patch: dict[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    version = (desired.get("metadata") or {}).get("resourceVersion")
    if patch and version:
        patch.setdefault("metadata", {})["resourceVersion"] = version
    return patch


def _label(change: Change) -> str:
    where = f" in {change.namespace}" if change.namespace else ""
    return f"{change.kind.kind} {change.name}{where}"
