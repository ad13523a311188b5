"""The routes of the operations: each reads a request, asks the operation, writes the response."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from inspect import Parameter, Signature, getdoc
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import Body, FastAPI, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dsf.api.untrusted_text import escaped_json
from dsf.kube.errors import KubeError
from dsf.runtime.lru_cache import LruCache
from optimizer.api.http_caching import CachedDocument
from optimizer.api.problem_details import documented, hub_error_response, refusal
from optimizer.follow.overview.fleet_matrix import FleetMatrix
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.access.caller import Caller, PlanProgress, caller_of, progress_of
from optimizer.operations.operation import Operation, Route
from optimizer.operations.table import OPERATIONS
from optimizer.service.hub.fleet_matrices import MOST_KEPT
from optimizer.wire.base import ResultPart
from optimizer.wire.request_problem import RequestProblem

if TYPE_CHECKING:
    from fastapi.openapi.models import Example

HEARTBEAT_SECONDS = 15.0
"""Pause after which a stream sends a comment: proxies close connections that are silent for 60 s.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#authoring-notes
"""

_EVENT_STREAM = "text/event-stream"

OptimizerOf = Callable[[Request, Caller], AuthorizedOptimizer]
"""Returns the optimizer of a request's caller."""


@dataclass(frozen=True)
class _Presentation:
    """A response that is not the JSON of its model; `route`: arguments of FastAPI's route."""

    response: Callable[[Any, Request], Awaitable[Response]]
    route: dict[str, Any] = field(default_factory=dict)
    responses: dict[int | str, dict[str, Any]] = field(default_factory=dict)


def add_operation_routes(app: FastAPI, of: OptimizerOf) -> None:
    """Add the route of each operation of the table."""
    for operation in OPERATIONS:
        _add_route(app, operation, of)


def _add_route(app: FastAPI, operation: Operation[..., Any], of: OptimizerOf) -> None:
    route, shown = operation.route, _PRESENTATIONS.get(operation.name)
    if route is None:
        return

    async def endpoint(connection: Request, **given: Any) -> Any:
        if route.progress and _EVENT_STREAM in connection.headers.get("accept", ""):
            caller = Caller()
            asked = operation(of(connection, caller), **given)
            return await _with_progress(asyncio.ensure_future(asked), caller)
        async with caller_of(connection.receive) as caller:
            asked = operation(of(connection, caller), **given)
            # What may write decides itself until when a caller who leaves cancels it.
            found = await (caller.wait(asked) if route.method == "GET" else asked)
        if isinstance(found, RequestProblem):
            return refusal(found)
        return await shown.response(found, connection) if shown else found

    endpoint.__signature__ = Signature([*_parameters(operation, route)])  # type: ignore[attr-defined]  # FastAPI reads it
    app.add_api_route(
        route.path,
        endpoint,
        methods=[route.method],
        tags=[route.tag],
        summary=route.summary,
        description=getdoc(operation),
        responses={
            **documented(*route.problems),
            **(shown.responses if shown else {}),
            **(_PROGRESS if route.progress else {}),
        },
        **{
            "operation_id": operation.name,
            **(shown.route if shown else {"response_model": operation.response}),
        },
    )


def _parameters(operation: Operation[..., Any], route: Route) -> Iterator[Parameter]:
    """Yield where each part of a request is: a model is the body, the rest in path and query."""
    yield Parameter("connection", Parameter.KEYWORD_ONLY, annotation=Request)
    for name, (hint, default) in operation.parameters.items():
        metadata = reversed(getattr(hint, "__metadata__", ()))
        said = next((item for item in metadata if isinstance(item, FieldInfo)), None)
        text = said.description if said else None
        place: Any
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            place = Body(openapi_examples=cast("dict[str, Example] | None", route.examples))
        elif f"{{{name}}}" in route.path:
            place = Path(description=text)
        else:
            place = Query(description=text)
        yield Parameter(
            name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, place]
        )


_MATRICES = LruCache[int, tuple[FleetMatrix, asyncio.Task[CachedDocument]]](MOST_KEPT)
"""The documents of the latest matrices, by id: many callers get the same one."""


async def _document_of(found: FleetMatrix) -> CachedDocument:
    known = _MATRICES.get(id(found))
    if known is None or known[0] is not found:
        known = found, asyncio.create_task(asyncio.to_thread(matrix_document, found))
        _MATRICES.put(id(found), known)
    return await asyncio.shield(known[1])


async def _matrix_response(found: FleetMatrix, connection: Request) -> Response:
    return (await _document_of(found)).response(connection, "application/json")


class FleetChange(ResultPart):
    """An event of GET /fleet/events: what GET /fleet answers has this ETag now."""

    etag: str


async def _fleet_events_response(changes: AsyncGenerator[FleetMatrix], _: Request) -> Response:
    async def told() -> AsyncGenerator[FleetChange]:
        """Yield another ETag whenever there is one, until the hub can't be read."""
        before = ""
        with suppress(KubeError):
            async with aclosing(changes):
                async for found in changes:
                    tag = (await _document_of(found)).etag
                    if tag != before:
                        before = tag
                        yield FleetChange(etag=tag)

    return _streamed(event_stream(told(), name="changed"))


def matrix_document(found: FleetMatrix) -> CachedDocument:
    """Return the document of a matrix; one that was observed at another time may be equal."""
    identity = found.model_dump_json(exclude={"observed_at"})
    return CachedDocument.of(found.model_dump_json().encode(), identity.encode())


async def _events_response(changes: Any, _: Request) -> Response:
    return _streamed(event_stream(changes))


async def event_stream(
    changes: AsyncGenerator[BaseModel],
    *,
    name: str = "status",
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> AsyncIterator[str]:
    """Yield a server-sent event of a name for each part, and a comment while there is none."""
    async with aclosing(changes):
        following = asyncio.ensure_future(anext(changes, None))
        try:
            while True:
                await asyncio.wait({following}, timeout=heartbeat_seconds)
                if not following.done():
                    yield ": waiting\n\n"
                    continue
                status = following.result()
                if status is None:
                    return
                yield _event(name, status.model_dump_json())
                following = asyncio.ensure_future(anext(changes, None))
        finally:
            following.cancel()
            await asyncio.wait({following})


async def _with_progress(made: "asyncio.Task[Any]", caller: Caller) -> Any:
    """Return what a task returns within a second, else a stream of its progress and its result."""
    following = progress_of(made, caller)
    try:
        first = await anext(following, None)
    except asyncio.CancelledError:
        made.cancel()
        raise
    if first is None:
        found = made.result()
        return refusal(found) if isinstance(found, RequestProblem) else found
    return _streamed(_progress_events(made, first, following))


async def _progress_events(
    made: "asyncio.Task[Any]", first: PlanProgress, following: AsyncIterator[PlanProgress]
) -> AsyncIterator[str]:
    """Yield a `progress` event each second, then `result`, or `problem` with its details."""
    try:
        yield _event("progress", first.model_dump_json())
        async for item in following:
            yield _event("progress", item.model_dump_json())
        try:
            found = made.result()
        except KubeError as error:
            yield _event("problem", bytes(hub_error_response(error).body).decode())
            return
        if isinstance(found, RequestProblem):
            yield _event("problem", bytes(refusal(found).body).decode())
        else:
            yield _event("result", found.model_dump_json())
    finally:
        made.cancel()
        await asyncio.wait({made})


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {escaped_json(data)}\n\n"


def _streamed(events: AsyncIterator[str]) -> Response:
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(events, media_type=_EVENT_STREAM, headers=headers)


async def _metrics_response(found: CollectorRegistry, connection: Request) -> Response:
    encode, content_type = choose_encoder(connection.headers.get("accept", ""))
    return Response(encode(found), media_type=content_type)


_PROGRESS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The plan. To a request that accepts text/event-stream and takes over a"
        " second: server-sent events `progress`, each second, then `result` with the same plan, or"
        " `problem` with its details.",
        "content": {_EVENT_STREAM: {}},
    }
}


def _events(description: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": description, "content": {_EVENT_STREAM: {}}}}


_PRESENTATIONS = {
    "fleet": _Presentation(
        _matrix_response,
        {"response_model": FleetMatrix},
        {304: {"description": "The fleet is as it was: If-None-Match names its ETag."}},
    ),
    "follow_fleet": _Presentation(
        _fleet_events_response,
        {"response_class": StreamingResponse},
        _events('Server-sent events `changed`; the data is {"etag": ...}, the ETag of GET /fleet.'),
    ),
    "follow_rollout": _Presentation(
        _events_response,
        {"response_class": StreamingResponse},
        _events("Server-sent events `status`; the data is a RolloutStatus."),
    ),
    "metrics": _Presentation(
        _metrics_response,
        # The name that FastAPI gave it, which generated clients have.
        {"response_class": PlainTextResponse, "operation_id": "metrics_metrics_get"},
    ),
}
