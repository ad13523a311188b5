"""The port: everything the product asks of a Kubernetes API server.

Adapters and wrappers share this protocol, and one contract suite holds them to it. Objects are
plain JSON dictionaries. What a call returns belongs to the caller; what it is given is not kept.
All calls raise the errors of `dsf.kube.errors`.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dsf.kube.kinds import Kind

Object = dict[str, Any]
Subresource = Literal["status"]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list, the resource version it shows, and the token of the next page."""

    items: tuple[Object, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change; of a BOOKMARK only `metadata.resourceVersion` counts."""

    type: EventType
    object: Object


class Kube(Protocol):
    """A Kubernetes API server, real or embedded."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        ...

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
        """Return a page of objects, of all namespaces where none is named.

        `labels` and `fields` are selectors in their string form. Gone is raised for a continue
        token that is too old.
        """
        ...

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str,
        timeout_seconds: int = 270,
    ) -> AsyncIterator[WatchEvent]:
        """Yield every change after `resource_version`, in order and without a gap.

        The iterator ends when the server closes the watch, at the latest after
        `timeout_seconds`; a new watch from the last version seen goes on where it ended. Gone is
        raised where the version is too old.
        """
        ...

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object; its `status` is dropped where the kind has a status subresource."""
        ...

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object, or its status; Conflict where `metadata.resourceVersion` is old."""
        ...

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: Subresource | None = None,
    ) -> Object:
        """Apply a JSON merge patch (RFC 7386); a `resourceVersion` in it is a precondition."""
        ...

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Delete an object, or mark it as being deleted while it has finalizers.

        `uid` and `resource_version` are preconditions: Conflict where they differ.
        """
        ...
