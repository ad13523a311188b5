"""Handlers of HTTP requests for objects and collections."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Literal, cast, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from dsf.kube import json_merge_patch
from dsf.kube.clock import utc_now
from dsf.kube.embedded import status_errors
from dsf.kube.embedded.api_server import WriteOptions
from dsf.kube.embedded.http import request_info
from dsf.kube.embedded.http.kubectl import Included, table
from dsf.kube.embedded.http.request_info import RequestInfo
from dsf.kube.embedded.hub import EmbeddedHub
from dsf.kube.errors import ApiError, BadRequest
from dsf.kube.port import Object, WatchEvent
from dsf.kube.schema.json_values import copied

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
SERVER_SIDE_APPLY = frozenset({"application/apply-patch+yaml", "application/apply-patch+cbor"})
WATCH_SECONDS = 1800
"""Duration of a watch without timeoutSeconds: the default `--min-request-timeout`."""

Handler = Callable[[Request, RequestInfo], Awaitable[Response]]


class ResourceHandlers:
    """The request handlers of one hub."""

    def __init__(self, hub: EmbeddedHub) -> None:
        self._hub = hub

    async def answer(self, request: Request, target: RequestInfo) -> Response:
        """Return the response to a request for an object or a collection."""
        method = "GET" if request.method == "HEAD" else request.method
        single = target.name is not None
        watches = not single and request_info.flag(request, "watch")
        handlers: dict[tuple[str, bool], Handler] = {("POST", False): self._create}
        if not target.resource.review:
            handlers |= {
                ("GET", False): self._watch if watches else self._list,
                ("GET", True): self._get,
                ("PUT", True): self._replace,
                ("PATCH", True): self._patch,
            }
            if target.subresource is None:
                handlers["DELETE", True] = self._delete
        if (method, single) not in handlers:
            raise status_errors.method_not_allowed()
        return await handlers[method, single](request, target)

    async def _get(self, request: Request, target: RequestInfo) -> Response:
        kind = target.resource.kind
        found = await self._hub.get(kind, str(target.name), target.namespace)
        return self._shown(request, target, found)

    async def _list(self, request: Request, target: RequestInfo) -> Response:
        kind, query = target.resource.kind, request.query_params
        page = await self._hub.list(
            kind,
            target.namespace,
            labels=query.get("labelSelector", ""),
            fields=query.get("fieldSelector", ""),
            limit=request_info.number(request, "limit"),
            continue_token=query.get("continue", ""),
        )
        metadata: dict[str, Any] = {"resourceVersion": page.resource_version}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        if wants_table(request):
            return _json(self._table(request, target, page.items, metadata))
        return _json(
            {
                "kind": f"{kind.kind}List",
                "apiVersion": kind.api_version,
                "metadata": metadata,
                "items": list(page.items),
            }
        )

    async def _watch(self, request: Request, target: RequestInfo) -> Response:
        query = request.query_params
        version, first = query.get("resourceVersion", ""), list[Object]()
        labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
        kind = target.resource.kind
        initial = request_info.flag(request, "sendInitialEvents")
        if initial:
            page = await self._hub.list(kind, target.namespace, labels=labels, fields=fields)
            version, first = page.resource_version, list(page.items)
        events = self._hub.watch(
            kind,
            target.namespace,
            labels=labels,
            fields=fields,
            resource_version=version,
            timeout_seconds=request_info.number(request, "timeoutSeconds") or WATCH_SECONDS,
        )
        before = [WatchEvent("ADDED", obj) for obj in first]
        if initial:
            before.append(_initial_events_end(kind.api_version, kind.kind, version))
        bookmarks = request_info.flag(request, "allowWatchBookmarks")
        lines = self._lines(request, target, before, events, bookmarks=bookmarks)
        return StreamingResponse(lines, media_type="application/json")

    async def _lines(
        self,
        request: Request,
        target: RequestInfo,
        before: Iterable[WatchEvent],
        events: AsyncGenerator[WatchEvent],
        *,
        bookmarks: bool,
    ) -> AsyncIterator[bytes]:
        for event in before:
            yield self._line(request, target, event)
        try:
            async with aclosing(events):
                async for event in events:
                    if bookmarks or event.type != "BOOKMARK":
                        yield self._line(request, target, event)
        except ApiError as error:
            yield _dumped({"type": "ERROR", "object": error.status()}) + b"\n"

    def _line(self, request: Request, target: RequestInfo, event: WatchEvent) -> bytes:
        shown = event.object
        if wants_table(request):
            rows = [] if event.type == "BOOKMARK" else [shown]
            version = {"resourceVersion": shown["metadata"]["resourceVersion"]}
            shown = self._table(request, target, rows, version)
        return _dumped({"type": event.type, "object": shown}) + b"\n"

    async def _create(self, request: Request, target: RequestInfo) -> Response:
        options = request_info.options(request)
        obj = _in_namespace(target, request_info.mapping(await request_info.body(request)))
        created = await self._hub.create(target.resource.kind, obj, options=options)
        return self._shown(request, target, created, 201, options)

    async def _replace(self, request: Request, target: RequestInfo) -> Response:
        options = request_info.options(request)
        obj = request_info.mapping(await request_info.body(request))
        stored = self._hub.server.replace(
            target.resource.kind,
            str(target.name),
            target.namespace,
            obj,
            subresource=target.subresource,
            options=options,
        )
        return self._shown(request, target, copied(stored), 200, options)

    async def _patch(self, request: Request, target: RequestInfo) -> Response:
        options = request_info.options(request)
        sent_as = request_info.media_type(request)
        if sent_as in SERVER_SIDE_APPLY:
            raise _unsupported(
                "the embedded hub does not record which client owns a field, so it has no"
                " server-side apply; use kubectl apply without --server-side, or a patch"
            )
        accepted = [MERGE, *([] if target.resource.custom else [STRATEGIC])]
        sent = await request_info.body(request, *accepted)
        if sent_as == STRATEGIC and not _merges_maps_only(sent):
            raise _unsupported(
                "the embedded hub merges no lists, so it has strategic merge patches of maps only;"
                " use kubectl patch --type merge, or a patch"
            )
        stored = self._hub.server.patch(
            target.resource.kind,
            str(target.name),
            target.namespace,
            lambda old: json_merge_patch.merged(old, sent),
            subresource=target.subresource,
            options=options,
        )
        return self._shown(request, target, copied(stored), 200, options)

    async def _delete(self, request: Request, target: RequestInfo) -> Response:
        kind, name = target.resource.kind, str(target.name)
        sent, options = await _delete_options(request)
        preconditions = request_info.mapping(sent.get("preconditions") or {})
        last = self._hub.server.delete(
            kind,
            name,
            target.namespace,
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            options=options,
        )
        if "deletionTimestamp" in last["metadata"] and self._exists(target, last):
            return _json(copied(last))
        details = {"name": name, "group": kind.group, "kind": kind.plural}
        return _success({**details, "uid": last["metadata"]["uid"]})

    def _exists(self, target: RequestInfo, obj: Object) -> bool:
        kind, metadata = target.resource.kind, obj["metadata"]
        found = self._hub.server.objects.find(kind, metadata["name"], metadata.get("namespace"))
        return found is not None and found["metadata"]["uid"] == metadata["uid"]

    def _shown(
        self,
        request: Request,
        target: RequestInfo,
        obj: Object,
        code: int = 200,
        options: WriteOptions | None = None,
    ) -> Response:
        shown = {**obj, "apiVersion": target.resource.kind.api_version}
        if wants_table(request):
            version = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            shown = self._table(request, target, [shown], version)
        return _json(shown, code, options.warnings if options else ())

    def _table(
        self,
        request: Request,
        target: RequestInfo,
        objects: Iterable[Object],
        metadata: Mapping[str, Any],
    ) -> Object:
        include = request.query_params.get("includeObject", "Metadata")
        if include not in get_args(Included):
            raise BadRequest(f"includeObject must be None, Metadata or Object, not {include!r}")
        return table(
            target.resource,
            objects,
            now=utc_now(),
            metadata=metadata,
            include=cast("Literal['None', 'Metadata', 'Object']", include),
        )


def wants_table(request: Request) -> bool:
    """Return whether a table is the first acceptable media type that the hub supports."""
    for accepted in request.headers.get("accept", "").split(","):
        media_type, *parameters = (part.strip() for part in accepted.split(";"))
        if media_type in {"application/json", "*/*", "application/*"}:
            return "as=Table" in parameters
    return False


def _in_namespace(target: RequestInfo, obj: Mapping[str, Any]) -> Object:
    metadata = dict(request_info.mapping(obj.get("metadata") or {}))
    if target.namespace and metadata.setdefault("namespace", target.namespace) != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**obj, "metadata": metadata}


def _unsupported(problem: str) -> ApiError:
    return ApiError(f"{problem} of type {MERGE}", code=415, reason="UnsupportedMediaType")


def _merges_maps_only(patch: Any) -> bool:
    """Return whether a strategic merge patch is a merge patch: it has no lists and directives."""
    if not isinstance(patch, Mapping):
        return not isinstance(patch, list)
    return all(not key.startswith("$") and _merges_maps_only(patch[key]) for key in patch)


async def _delete_options(request: Request) -> tuple[Mapping[str, Any], WriteOptions]:
    """Return the options of a deletion; raises BadRequest unless it is one in the background."""
    sent = request_info.mapping(await request_info.body(request, optional=True))
    policy = sent.get("propagationPolicy") or request.query_params.get("propagationPolicy")
    if (policy or "Background") != "Background" or sent.get("orphanDependents"):
        raise BadRequest(
            f"the embedded hub deletes dependents in the background, not as {policy or 'orphans'};"
            " use kubectl delete without --cascade"
        )
    options = request_info.options(request)
    options.dry_run = options.dry_run or bool(sent.get("dryRun"))
    return sent, options


def _initial_events_end(api_version: str, kind: str, version: str) -> WatchEvent:
    annotations = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": version, "annotations": annotations}
    return WatchEvent("BOOKMARK", {"kind": kind, "apiVersion": api_version, "metadata": metadata})


def _success(details: Mapping[str, Any]) -> Response:
    given = {key: value for key, value in details.items() if value}
    return _json(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": given,
        }
    )


def _json(content: Any, code: int = 200, warnings: Iterable[str] = ()) -> Response:
    response = JSONResponse(content, code)
    for warning in warnings:
        text = json.dumps(warning)
        response.headers.append("Warning", f"299 - {text}")
    return response


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
