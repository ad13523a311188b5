"""A wrapper that records writes instead of making them."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dsf.kube import json_merge_patch
from dsf.kube.changes import Change, Create, Delete, Patch, key
from dsf.kube.errors import AlreadyExists, Conflict, NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, Propagation, Subresource
from tests.kube_wrappers.wrapper import Wrapper

_FIXED = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
    }
)


class DryRun(Wrapper):
    """Passes reads on, records writes in `changes`, and answers as if they had been made.

    `get` shows recorded writes, `list` and `watch` do not. It checks whether objects exist and
    preconditions hold, but neither schemas nor validation rules.
    """

    def __init__(self, inner: Kube) -> None:
        super().__init__(inner)
        self.changes: list[Change] = []
        self._written: dict[tuple[str, str, str], Object | None] = {}

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return an object as it would be after the recorded writes."""
        place = (kind.resource, namespace or "", name)
        if place not in self._written:
            return await super().get(kind, name, namespace)
        obj = self._written[place]
        if obj is None:
            raise _missing(kind, name)
        return deepcopy(obj)

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Record a creation."""
        number = len(self.changes) + 1
        metadata = {**(obj.get("metadata") or {})}
        metadata.setdefault("name", f"{metadata.pop('generateName', '')}{number}")
        new = deepcopy({**obj, "metadata": metadata})
        new.pop("status", None)
        if await self._exists(kind, new):
            raise AlreadyExists(f'{kind.resource} "{metadata["name"]}" already exists')
        self.changes.append(Create(kind, deepcopy(new)))
        new["metadata"] |= {
            "uid": f"dry-run-{number}",
            "resourceVersion": f"dry-run-{number}",
            "generation": 1,
        }
        return self._keep(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **new})

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Record a replacement as the patch with the same effect."""
        namespace, name = key(obj)
        old = await self.get(kind, name, namespace or None)
        body = json_merge_patch.patch_between(
            _part(old, subresource), _part(_kept(old, obj), subresource)
        )
        if version := obj["metadata"].get("resourceVersion"):
            body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": version}}
        return await self.patch(kind, name, body, namespace or None, subresource=subresource)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: Subresource | None = None,
    ) -> Object:
        """Record a patch."""
        old = await self.get(kind, name, namespace)
        version = (patch.get("metadata") or {}).get("resourceVersion")
        _check(kind, name, "resourceVersion", version, old)
        self.changes.append(Patch(kind, name, namespace, deepcopy(dict(patch)), subresource))
        untouched = _part(old, None if subresource else "status")
        return self._keep(kind, untouched | _part(json_merge_patch.merged(old, patch), subresource))

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",  # noqa: ARG002 - nothing is deleted
    ) -> None:
        """Record a deletion."""
        old = await self.get(kind, name, namespace)
        _check(kind, name, "uid", uid, old)
        _check(kind, name, "resourceVersion", resource_version, old)
        self.changes.append(Delete(kind, name, namespace, uid))
        self._written[kind.resource, namespace or "", name] = None

    async def _exists(self, kind: Kind, obj: Object) -> bool:
        namespace, name = key(obj)
        try:
            await self.get(kind, name, namespace or None)
        except NotFound:
            return False
        return True

    def _keep(self, kind: Kind, obj: Object) -> Object:
        self._written[kind.resource, *key(obj)] = obj
        return deepcopy(obj)


def _part(obj: Mapping[str, Any], subresource: Subresource | None) -> dict[str, Any]:
    """Return the part of an object that a write concerns: its status, or all except its status."""
    status = subresource is not None
    return {field: value for field, value in obj.items() if (field == "status") == status}


def _kept(old: Object, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return `new` with the metadata that clients cannot change taken from the old object."""
    fixed = {field: value for field, value in old["metadata"].items() if field in _FIXED}
    return {**new, "metadata": {**new["metadata"], **fixed}}


def _check(kind: Kind, name: str, field: str, wanted: str | None, observed: Object) -> None:
    actual = observed["metadata"].get(field)
    if wanted and wanted != actual:
        raise Conflict(
            f'{kind.resource} "{name}" cannot be changed: its {field} is {actual}, not {wanted}'
        )


def _missing(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{kind.resource} "{name}" not found')
