"""A client of the API server whose writes are noted, so that a cache is read as they left it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, ObjectList, Subresource, WatchEvent


class NotedWrites:
    """Passes all calls on. Implements `Kube`.

    `wrote` is called with the kind, the namespace and the resource version of each object that was
    written; after a deletion without the version, because the API server does not tell it.
    """

    def __init__(self, kube: Kube, wrote: Callable[[Kind, str | None, str | None], None]) -> None:
        self._inner = kube
        self._wrote = wrote

    def _kube(self) -> Kube:
        """Return the client to call; a subclass may raise the KubeError of one that fails."""
        return self._inner

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        return await self._kube().get(kind, name, namespace)

    async def list(self, kind: Kind, namespace: str | None = None, **selected: Any) -> ObjectList:
        """Return a page of objects."""
        return await self._kube().list(kind, namespace, **selected)

    def watch(
        self, kind: Kind, namespace: str | None = None, **selected: Any
    ) -> AsyncGenerator[WatchEvent]:
        """Yield changes."""
        return self._kube().watch(kind, namespace, **selected)

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object."""
        return self._noted(kind, await self._kube().create(kind, obj))

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object, or its status."""
        return self._noted(kind, await self._kube().update(kind, obj, subresource=subresource))

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
        patched = self._kube().patch(kind, name, patch, namespace, subresource=subresource)
        return self._noted(kind, await patched)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Delete an object; one that can't be told to be there or not counts as deleted."""
        try:
            await self._kube().delete(
                kind, name, namespace, uid=uid, resource_version=resource_version
            )
        finally:
            self._wrote(kind, namespace, None)

    def _noted(self, kind: Kind, obj: Object) -> Object:
        metadata = obj["metadata"]
        version = str(metadata.get("resourceVersion") or "") or None
        self._wrote(kind, metadata.get("namespace"), version)
        return obj
