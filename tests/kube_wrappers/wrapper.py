"""The base of all wrappers: it passes every call on and shows it to its subclass."""

from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, ObjectList, Subresource, WatchEvent

Answer = TypeVar("Answer")
Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete"]
WRITES: frozenset[Verb] = frozenset({"create", "update", "patch", "delete"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its number, counted from 1, its verb and the object or collection that it names."""

    number: int
    verb: Verb
    kind: Kind
    namespace: str | None = None
    name: str | None = None


class Wrapper:
    """Passes every call on between `before` and `after`, which may raise KubeErrors."""

    def __init__(self, inner: Kube) -> None:
        self._inner = inner
        self._number = 0

    def before(self, call: Call) -> None:
        """Handle a call before it is passed on."""

    def after(self, call: Call) -> None:
        """Handle a call that was answered; for a watch, once per event."""

    async def answer(self, _: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the answer of a call that is no watch; a subclass may delay it, or close it."""
        return await answering

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        call = self._called("get", kind, namespace, name)
        return await self._answered(call, self._inner.get(kind, name, namespace))

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
        call = self._called("list", kind, namespace)
        page = self._inner.list(
            kind,
            namespace,
            labels=labels,
            fields=fields,
            limit=limit,
            continue_token=continue_token,
        )
        return await self._answered(call, page)

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str,
        timeout_seconds: int = 270,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield every change after a resource version."""
        call = self._called("watch", kind, namespace)
        events = self._inner.watch(
            kind,
            namespace,
            labels=labels,
            fields=fields,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
        )
        async with aclosing(events):
            async for event in events:
                self.after(call)
                yield event

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object."""
        call = self._called("create", kind, *_where(obj))
        return await self._answered(call, self._inner.create(kind, obj))

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object, or its status."""
        call = self._called("update", kind, *_where(obj))
        return await self._answered(call, self._inner.update(kind, obj, subresource=subresource))

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
        call = self._called("patch", kind, namespace, name)
        patched = self._inner.patch(kind, name, patch, namespace, subresource=subresource)
        return await self._answered(call, patched)

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
        call = self._called("delete", kind, namespace, name)
        deleted = self._inner.delete(
            kind, name, namespace, uid=uid, resource_version=resource_version
        )
        await self._answered(call, deleted)

    async def _answered(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        answer = await self.answer(call, answering)
        self.after(call)
        return answer

    def _called(
        self, verb: Verb, kind: Kind, namespace: str | None = None, name: str | None = None
    ) -> Call:
        self._number += 1
        call = Call(self._number, verb, kind, namespace, name)
        self.before(call)
        return call


def _where(obj: Mapping[str, Any]) -> tuple[str | None, str | None]:
    metadata = obj.get("metadata") or {}
    return metadata.get("namespace"), metadata.get("name") or metadata.get("generateName")
