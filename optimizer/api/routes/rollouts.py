"""The routes of rollouts: their status, a stream of it, and what changes them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Annotated

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from dsf.api.untrusted_text import escaped_json
from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.api.caller import caller_of
from optimizer.api.problem_details import documented, refusal
from optimizer.wire.request import Namespace, OptimizationName
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.rollout import RolloutCommand, RolloutList, RolloutStatus

HEARTBEAT_SECONDS = 15.0
"""Pause after which a stream sends a comment: proxies close connections that are silent for 60 s.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#authoring-notes
"""

_EVENT_STREAM = "text/event-stream"

OptimizationPath = Annotated[OptimizationName, Path(description="Name of the optimization.")]
NamespacePath = Annotated[Namespace, Path(description="Namespace of the optimization.")]


class RolloutFilter(BaseModel, extra="forbid"):
    """Parameters of GET /rollouts; a misspelt one is refused, not ignored."""

    namespace: Namespace


def rollout_routes(app: FastAPI, of: Callable[[Request], AuthorizedOptimizer]) -> None:
    """Add the routes of rollouts; `of` returns the optimizer of a request's caller."""

    @app.get(
        "/rollouts",
        tags=["rollouts"],
        summary="List the rollouts of a namespace",
        operation_id="list_rollouts",
        response_model=RolloutList,
        responses=documented(404, 422),
    )
    async def rollouts(
        only: Annotated[RolloutFilter, Query()], connection: Request
    ) -> RolloutList | Response:
        """Tell how far the newest Stepwise rollout of each optimization is."""
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(of(connection).rollouts(only.namespace))
        return refusal(found) if isinstance(found, RequestProblem) else found

    @app.get(
        "/rollouts/{namespace}/{optimization}",
        tags=["rollouts"],
        summary="Tell how far a rollout is",
        operation_id="rollout_status",
        response_model=RolloutStatus,
        responses=documented(404, 422),
    )
    async def rollout(
        namespace: NamespacePath, optimization: OptimizationPath, connection: Request
    ) -> RolloutStatus | Response:
        """Tell which step is made, what it waits for and since when, with OCM's reason."""
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(of(connection).rollout(namespace, optimization))
        return refusal(found) if isinstance(found, RequestProblem) else found

    @app.get(
        "/rollouts/{namespace}/{optimization}/events",
        tags=["rollouts"],
        summary="Follow a rollout",
        operation_id="follow_rollout",
        response_class=StreamingResponse,
        responses={
            **documented(404, 422),
            200: {
                "description": "Server-sent events `status`; the data is a RolloutStatus.",
                "content": {_EVENT_STREAM: {"schema": {"type": "string"}}},
            },
        },
    )
    async def events(
        namespace: NamespacePath, optimization: OptimizationPath, connection: Request
    ) -> Response:
        """Send the status now and whenever it changes. The stream ends when the rollout has."""
        changes = await of(connection).rollout_changes(namespace, optimization)
        if isinstance(changes, RequestProblem):
            return refusal(changes)
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(event_stream(changes), media_type=_EVENT_STREAM, headers=headers)

    @app.post(
        "/rollouts/{namespace}/{optimization}/{command}",
        tags=["rollouts"],
        summary="Pause, resume, undo or cancel a rollout",
        operation_id="change_rollout",
        response_model=RolloutStatus,
        responses=documented(404, 409, 422),
    )
    async def change(
        namespace: NamespacePath,
        optimization: OptimizationPath,
        command: RolloutCommand,
        connection: Request,
    ) -> RolloutStatus | Response:
        """Change a rollout that has not ended.

        pause: write nothing more until it is resumed. undo: walk back to the start, step by step.
        cancel: end where it is, and let POST /optimize plan from there.
        """
        found = await of(connection).change_rollout(namespace, optimization, command)
        return refusal(found) if isinstance(found, RequestProblem) else found


async def event_stream(
    changes: AsyncGenerator[RolloutStatus], *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncIterator[str]:
    """Yield a server-sent event for each status, and a comment while there is none."""
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
                yield f"event: status\ndata: {escaped_json(status.model_dump_json())}\n\n"
                following = asyncio.ensure_future(anext(changes, None))
        finally:
            following.cancel()
            await asyncio.wait({following})
