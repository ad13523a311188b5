"""The adapter for a real API server.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ and
https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode

import aiohttp

from dsf.api.times import retry_after
from dsf.kube import errors
from dsf.kube.access_reviews import SYSTEM, UserInfo
from dsf.kube.client.http_session import ApiRequest, lines
from dsf.kube.kinds import TOKEN_REVIEW, Kind
from dsf.kube.port import EventType, Object, ObjectList, Subresource, WatchEvent
from dsf.kube.redaction import Spellings, redact, sent_credentials

if TYPE_CHECKING:
    from dsf.kube.client.connect import Transport

CALL_SECONDS = 30.0
"""Time limit of a call that is not a watch."""
WATCH_GRACE_SECONDS = 15.0
"""Time that a watch may outlast its timeoutSeconds before its connection counts as dead."""
_WITHHELD = (
    "its words are not repeated, because it was sent a credential: look at its log, or at that of a"
    " proxy between"
)
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_FAIRNESS_HEADERS = {
    errors.FLOW_SCHEMA_UID: "X-Kubernetes-PF-FlowSchema-UID",
    errors.PRIORITY_LEVEL_UID: "X-Kubernetes-PF-PriorityLevel-UID",
}
"""https://kubernetes.io/docs/concepts/cluster-administration/flow-control/"""
_LONGEST_UID = 64
"""Characters of such a header that are kept: more than a UUID has."""
_LONGEST_MESSAGE = 200
"""Characters of a body without a Status that a message quotes."""


@dataclass(frozen=True, slots=True, eq=False)
class Client:
    """A client of a real API server; implements `dsf.kube.port.StatusApplier`.

    A call takes at most `call_seconds`, and its answer has at most `answer_bytes` (0: any number),
    or it raises AnswerTooLarge. A watch lasts at most `watch_grace_seconds` longer than
    the server was asked to keep it open, because a dead connection sends no end.
    Clients of different pools wait for no connection of each other; a pool has at most 100.
    """

    transport: "Transport"
    call_seconds: float = CALL_SECONDS
    watch_grace_seconds: float = WATCH_GRACE_SECONDS
    answer_bytes: int = 0
    pool: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self.transport.server

    def impersonating(self, user: UserInfo) -> "Client":
        """Return a client over the same connections that acts with the rights of a user.

        It has none of groups that begin with `system:`, such as `system:masters`.
        """
        # RBAC does not read the uid and the extra fields; each would need a right of its own.
        # The API server adds the groups of all users and of service accounts itself.
        groups = (group for group in user.groups if not group.startswith(SYSTEM))
        headers = (("Impersonate-Group", group) for group in groups)
        return replace(self, headers=(("Impersonate-User", user.name), *headers))

    def on_own_connections(self, pool: str) -> "Client":
        """Return a client whose calls don't wait for a connection while others use them all."""
        return replace(self, pool=pool)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        return await self._call(kind, "GET", _path(kind, namespace, name))

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
        """Return a page of objects; without a namespace, of all namespaces."""
        query = _query(
            labelSelector=labels, fieldSelector=fields, limit=limit, **{"continue": continue_token}
        )
        page = await self._call(kind, "GET", _path(kind, namespace) + query)
        metadata = page.get("metadata") or {}
        return ObjectList(
            items=tuple(_typed(kind, item) for item in page.get("items") or ()),
            resource_version=metadata.get("resourceVersion", ""),
            continue_token=metadata.get("continue", ""),
            remaining=metadata.get("remainingItemCount"),
        )

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
        """Yield every change after `resource_version` until the server closes the watch."""
        query = _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=timeout_seconds,
            labelSelector=labels,
            fieldSelector=fields,
        )
        path = _path(kind, namespace) + query
        seconds = timeout_seconds + self.watch_grace_seconds
        request = ApiRequest("GET", path, seconds, headers=self.headers, pool=self.pool)
        async with self.transport.send(request) as response:
            if not response.ok:
                raise _error(kind, response, await response.read())
            async with aclosing(lines(response.content.iter_any())) as texts:
                async for text in texts:
                    yield _event(kind, text)

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object."""
        namespace = _namespace(kind, obj)
        return await self._call(kind, "POST", _path(kind, namespace), _typed(kind, obj))

    async def update(
        self, kind: Kind, obj: Mapping[str, Any], *, subresource: Subresource | None = None
    ) -> Object:
        """Replace an object, or its status."""
        name = obj.get("metadata", {}).get("name") or ""
        path = _path(kind, _namespace(kind, obj), name, subresource)
        return await self._call(kind, "PUT", path, _typed(kind, obj))

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
        path = _path(kind, namespace, name, subresource)
        return await self._call(kind, "PATCH", path, patch, content_type=MERGE_PATCH)

    async def apply_status(self, kind: Kind, obj: Mapping[str, Any], *, manager: str) -> Object:
        """Apply the status of an object in the name of `manager`."""
        path = _path(kind, _namespace(kind, obj), obj["metadata"]["name"], "status")
        path += _query(fieldManager=manager)
        return await self._call(kind, "PATCH", path, _typed(kind, obj), content_type=APPLY_PATCH)

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
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {key: value for key, value in preconditions.items() if value},
        }
        await self._call(kind, "DELETE", _path(kind, namespace, name), options)

    async def _call(
        self,
        kind: Kind,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        request = ApiRequest(
            method, path, self.call_seconds, body, content_type, self.headers, self.pool
        )
        async with self.transport.send(request) as response:
            data = await self._read(response)
            if not response.ok:
                raise _error(kind, response, data, _token(body))
        return _object(data)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        most = self.answer_bytes
        data = bytearray()
        async for piece in response.content.iter_any():
            data += piece
            if most and len(data) > most:
                raise errors.AnswerTooLarge(f"the answer has more than {most >> 20} MiB")
        return bytes(data)


def _path(
    kind: Kind,
    namespace: str | None = None,
    name: str | None = None,
    subresource: Subresource | None = None,
) -> str:
    path = kind.path(
        namespace and _segment(kind, namespace), name if name is None else _segment(kind, name)
    )
    return f"{path}/{subresource}" if subresource else path


def _segment(kind: Kind, text: str) -> str:
    """Return a name as a path segment; raises NotFound for a name that would change the path."""
    if text in {"", ".", ".."} or "/" in text or "%" in text:
        raise errors.NotFound(f'{kind.resource} "{text}" not found')
    return quote(text, safe="")


def _query(**parameters: str | int) -> str:
    given = {key: value for key, value in parameters.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _namespace(kind: Kind, obj: Mapping[str, Any]) -> str | None:
    namespace: str | None = (obj.get("metadata") or {}).get("namespace")
    if kind.namespaced and not namespace:
        raise errors.BadRequest(f"{kind.kind}: metadata.namespace is missing")
    return namespace


def _typed(kind: Kind, obj: Mapping[str, Any]) -> Object:
    """Return the object with apiVersion and kind, which items of built-in lists lack."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def _event(kind: Kind, text: bytes) -> WatchEvent:
    event = _object(text)
    type_, obj = event.get("type"), event.get("object")
    if not isinstance(obj, dict):
        raise errors.Unreachable("the API server sent a watch event without an object")
    if type_ == "ERROR":
        raise errors.from_status(int(obj.get("code") or errors.ApiError.code), obj)
    return WatchEvent(cast("EventType", type_), _typed(kind, obj))


def _object(data: bytes) -> Object:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise errors.Unreachable("the API server's answer is not a JSON object")
    return value


def _token(body: Mapping[str, Any] | None) -> str:
    """Return the caller's token in a TokenReview; empty in other objects."""
    asked = body and body.get("kind") == TOKEN_REVIEW.kind
    return str(body["spec"]["token"]) if body and asked else ""


def _error(
    kind: Kind, response: aiohttp.ClientResponse, data: bytes, reviewed: str = ""
) -> errors.ApiError:
    own = sent_credentials("", response.request_info.headers.get("Authorization", ""))
    spelled = Spellings((*own, reviewed)).found_in_body(data)
    answered = None if spelled else _status(kind, response.status, data, quoted=not own)
    status = dict(
        answered or {"message": f"the API server answered {response.status}; {_WITHHELD}"}
    )
    added: dict[str, Any] = {}
    if (seconds := retry_after(response.headers)) is not None:
        added["retryAfterSeconds"] = seconds
    for key, header in _FAIRNESS_HEADERS.items():
        if response.status == errors.TooManyRequests.code and header in response.headers:
            added[key] = response.headers[header][:_LONGEST_UID]
    status["details"] = {**added, **(status.get("details") or {})}
    return errors.from_status(response.status, status)


def _status(kind: Kind, code: int, data: bytes, *, quoted: bool) -> Mapping[str, Any] | None:
    """Return the Status of an answer, or one with other words of it; None if not `quoted`."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and body.get("kind") == "Status":
        return body
    if code == errors.NotFound.code:
        return {
            "message": f"the API server does not serve {kind.resource} in version {kind.version}; "
            "is its CustomResourceDefinition installed?"
        }
    start = redact(data[: 4 * _LONGEST_MESSAGE].decode(errors="replace"))
    text = " ".join(start.split())[:_LONGEST_MESSAGE]
    if text and not quoted:
        return None
    return {"message": f"the API server answered {code}: {text}" if text else ""}
