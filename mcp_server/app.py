"""The MCP server as an ASGI application, alone or together with the optimizer's HTTP API."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_server.confirmation import WhenClientCannotAsk
from mcp_server.server import create_mcp
from optimizer.api.app import create_app, guards
from optimizer.api.caller_limits import DEFAULT_STREAMS, StreamLimits
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.service.optimizer import Optimizer

PATH = "/mcp"


def create_service_app(
    optimizer: Optimizer,
    *,
    read_only: bool = True,
    allowed_hosts: Sequence[str] = (),
    when_client_cannot_ask: WhenClientCannotAsk = "digest",
    access: Access | None = None,
    hub_name: str = "",
    toolsets: Collection[str] = (),
    requests_per_second: float = 0.0,
    streams: StreamLimits = DEFAULT_STREAMS,
    alone: bool = False,
) -> Starlette:
    """Return the optimizer's HTTP API with the MCP server at `/mcp`, behind the same guards.

    If it is `read_only`, neither of them writes: there is no tool that does, and POST /optimize,
    POST /reset and the like are refused. `alone`: the MCP server without the API, but `/healthz`.
    """
    mcp = create_mcp(
        lambda: optimizer,
        read_only=read_only,
        when_client_cannot_ask=when_client_cannot_ask,
        access=access,
        hub_name=hub_name,
        toolsets=toolsets,
    )
    sub = mcp.http_app(
        path=PATH,
        stateless_http=True,
        json_response=True,
        host_origin_protection=True,
        allowed_hosts=list(allowed_hosts),
    )
    if alone:
        guard = guards(allowed_hosts, access, requests_per_second, streams)
        routes = [*_routes(sub), Route("/healthz", _healthz)]
        return Starlette(routes=routes, lifespan=sub.lifespan, middleware=guard)
    app = create_app(
        optimizer,
        allowed_hosts=allowed_hosts,
        access=access,
        read_only=read_only,
        requests_per_second=requests_per_second,
        streams=streams,
    )
    app.router.routes.extend(_routes(sub))
    outer = app.router.lifespan_context

    @asynccontextmanager
    async def both(started: FastAPI) -> AsyncIterator[Any]:
        async with outer(started) as state, sub.lifespan(sub):
            yield state

    app.router.lifespan_context = both
    return app


def _routes(sub: ASGIApp) -> list[Route]:
    """Return routes for `/mcp` and `/mcp/`: clients that follow a redirect lose the body."""
    return [Route(path, _Endpoint(sub), include_in_schema=False) for path in (PATH, f"{PATH}/")]


class _Endpoint:
    """Passes a request on with the path `/mcp`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "path": PATH, "root_path": ""}, receive, send)


async def _healthz(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")
