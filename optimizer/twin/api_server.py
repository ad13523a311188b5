"""An API server as a component of the twin sees it: it may be unreachable, and its writes are told.

What is written matters to simulated controllers, which would need thousands of watches otherwise.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from dsf.kube.errors import Unreachable
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, ObjectList, Subresource, WatchEvent

Wrote = Callable[[Kind, str | None], None]
"""Called after each write with the kind and the namespace of the object."""


class TwinApiServer:
    """A client of an API server; every call raises Unreachable while `reachable` returns False."""

    def __init__(
        self, inner: Kube, wrote: Wrote, reachable: Callable[[], bool] = lambda: True
    ) -> None:
        self._inner = inner
        self._wrote = wrote
        self._reachable = reachable

    def _check(self) -> Kube:
        if not self._reachable():
            raise Unreachable("no route to host")
        return self._inner

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        return await self._check().get(kind, name, namespace)

    async def list(self, kind: Kind, namespace: str | None = None, **selected: Any) -> ObjectList:
        """Return a page of objects."""
        return await self._check().list(kind, namespace, **selected)

    async def watch(
        self, kind: Kind, namespace: str | None = None, **selected: Any
    ) -> AsyncGenerator[WatchEvent]:
        """Yield changes; breaks at the first one while the server is unreachable."""
        async for event in self._check().watch(kind, namespace, **selected):
            self._check()
            yield event

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object."""
        created = await self._check().create(kind, obj)
        self._wrote(kind, created["metadata"].get("namespace"))
        return created

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object or its status."""
        updated = await self._check().update(kind, obj, subresource=subresource)
        self._wrote(kind, updated["metadata"].get("namespace"))
        return updated

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
        patched = await self._check().patch(kind, name, patch, namespace, subresource=subresource)
        self._wrote(kind, namespace)
        return patched

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, **preconditions: Any
    ) -> None:
        """Delete an object."""
        await self._check().delete(kind, name, namespace, **preconditions)
        self._wrote(kind, namespace)
