"""The port to Kubernetes: every call that the product makes to an API server, and common reads.

Adapters and wrappers implement this protocol, and one contract suite tests all of them. Objects
are plain JSON dictionaries. The caller owns what a call returns, and a call keeps none of its
arguments. All calls raise the errors of `dsf.kube.errors`.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dsf.kube.errors import NotFound, Unreachable
from dsf.kube.kinds import Kind

Object = dict[str, Any]
Subresource = Literal["status"]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list, the resource version that it shows, and the token of the next page."""

    items: tuple[Object, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch; a BOOKMARK carries only `metadata.resourceVersion`."""

    type: EventType
    object: Object


class Lister(Protocol):
    """What lists objects: an API server, or one as a what-if question pretends it."""

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
        """Return a page of objects; without a namespace, of all namespaces.

        `labels` and `fields` are selectors in their string form. Raises Gone if the continue
        token is too old.
        """
        ...


class ListerWatcher(Lister, Protocol):
    """What a local copy of a collection is kept up to date by."""

    def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str,
        timeout_seconds: int = 270,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield every change after `resource_version`, in order and without a gap.

        The iterator ends when the server closes the watch, at the latest after
        `timeout_seconds`. A new watch from the last version seen continues without a gap. Raises
        Gone if the version is too old.
        """
        ...


class Kube(ListerWatcher, Protocol):
    """A Kubernetes API server, real or embedded."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        ...

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object; `status` is dropped if the kind has a status subresource."""
        ...

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object or its status; Conflict if `metadata.resourceVersion` is outdated."""
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
    ) -> None:
        """Delete an object; with finalizers, only set its `deletionTimestamp`.

        Its dependents are deleted after it, in the background. `uid` and `resource_version` are
        preconditions: raises Conflict if they differ.
        """
        ...


class StatusApplier(Kube, Protocol):
    """An API server to which statuses are applied, too.

    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/
    """

    async def apply_status(self, kind: Kind, obj: Mapping[str, Any], *, manager: str) -> Object:
        """Apply the status of an object: `manager` owns the fields that it states, and no others.

        A field that `manager` owned, that is not stated and that nobody else owns, is removed.
        Raises Conflict if another client owns a field with another value, or if the object has
        another uid or resource version than `obj` states.
        """
        ...


PAGE = 500
"""Objects per page of a list, as in client-go and kubectl."""

ANSWER_SECONDS = 5.0
"""Time limit of an answer that only tells whether the API server is there; a probe waits 10 s."""


async def require_answer(kube: Lister, kind: Kind, namespace: str | None = None) -> None:
    """Raise KubeError unless the API server lists a kind within ANSWER_SECONDS."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await kube.list(kind, namespace, limit=1)
    except TimeoutError as error:
        raise Unreachable(f"no answer within {ANSWER_SECONDS:g} s") from error


async def find_object(
    kube: Kube, kind: Kind, name: str, namespace: str | None = None
) -> Object | None:
    """Return an object, or None if it does not exist."""
    try:
        return await kube.get(kind, name, namespace)
    except NotFound:
        return None


async def list_objects(
    kube: Lister, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = ""
) -> list[Object]:
    """Return all objects of a kind, read page by page; raises Gone if a page comes too late."""
    objects, token = list[Object](), ""
    while True:
        page = await kube.list(
            kind, namespace, labels=labels, fields=fields, limit=PAGE, continue_token=token
        )
        objects += page.items
        token = page.continue_token
        if not token:
            return objects
