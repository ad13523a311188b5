"""Changes as data: what turns observed objects into desired ones.

A desired object names the fields that we own. In `metadata.labels`, `metadata.annotations` and
`status` we own only the members that it names. Every other field that it names (`spec`, `data`,
`metadata.finalizers`, ...) we own as a whole: members that it lacks are removed, so it must also
state the values that the API server would default. A null or an empty field means absent.
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
NOT_DATA = ("apiVersion", "kind", "metadata", "status")
"""The fields of an object that are no data: what it is, whose it is, and what became of it."""


@dataclass(frozen=True, slots=True)
class Create:
    """An object to create. Its text form omits the content, which may be secret."""

    kind: Kind
    obj: Object = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        """The namespace of the object; None if the kind is cluster-scoped."""
        return key(self.obj)[0] or None

    def __str__(self) -> str:
        return f"create {_label(self)}"


@dataclass(frozen=True, slots=True)
class Patch:
    """A JSON merge patch of an object or its status. Its text form omits the content."""

    kind: Kind
    name: str
    namespace: str | None
    body: dict[str, Any] = field(repr=False)
    subresource: Subresource | None = None

    def __str__(self) -> str:
        return f"patch {_label(self)}" + (f" ({self.subresource})" if self.subresource else "")


@dataclass(frozen=True, slots=True)
class Delete:
    """An object to delete; with `uid`, only that object and not one re-created under its name.

    With `resource_version`, only if nobody has written it since.
    """

    kind: Kind
    name: str
    namespace: str | None
    uid: str | None = None
    resource_version: str | None = None

    def __str__(self) -> str:
        return f"delete {_label(self)}"


Change = Create | Patch | Delete


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """A change, and the error if it failed."""

    change: Change
    error: KubeError | None = None


def diff(kind: Kind, desired: Iterable[Object], observed: Iterable[Object]) -> list[Change]:
    """Return the changes that turn `observed` into `desired`: creates and patches, then deletes.

    Every object of `observed` that is not desired is deleted, so pass only objects that we own. A
    desired `status` becomes a separate patch, because the API server drops it from a create.
    Objects that are already being deleted are not deleted again.
    """
    desired_by_key = {key(obj): obj for obj in desired}
    observed_by_key = {key(obj): obj for obj in observed}
    changes = [
        change
        for identity, obj in desired_by_key.items()
        for change in _towards(kind, obj, observed_by_key.get(identity))
    ]
    return changes + [
        _delete(kind, obj)
        for identity, obj in observed_by_key.items()
        if identity not in desired_by_key and "deletionTimestamp" not in obj["metadata"]
    ]


def merge_patch(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest JSON merge patch of everything except the status; empty if equal.

    A `metadata.resourceVersion` in `desired` becomes a precondition of the patch.
    """
    patch = _owned(observed, desired, [field for field in desired if field not in NOT_DATA])
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
    """Return the namespace (empty for a cluster-scoped object) and the name."""
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def without_managed_fields(obj: Object) -> Object:
    """Return an object without managedFields, which are large and which nothing here reads."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


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
