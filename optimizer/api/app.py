"""The HTTP API: the routes of the operations, of the page and of health, behind the guards."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse
from fastapi_offline import FastAPIOffline
from starlette.middleware import Middleware

from dsf import __version__
from optimizer.api.caller_limits import DEFAULT_STREAMS, RateLimit, StreamLimit, StreamLimits
from optimizer.api.http_caching import AnswerAge
from optimizer.api.operation_routes import add_operation_routes
from optimizer.api.page_route import PagePolicy, add_page_route
from optimizer.api.problem_details import describe, install
from optimizer.api.request_guards import (
    Authentication,
    BodyLimit,
    DeclaredRoute,
    HostGuard,
    is_open,
    user_of,
)
from optimizer.operations.access.authorized_optimizer import Access, AuthorizedOptimizer
from optimizer.operations.access.caller import Caller
from optimizer.operations.access.shown_plans import ShownPlans
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Largest request body: enough for the largest request that the model accepts."""

_DESCRIPTION = """Decides which policies each managed cluster enforces and where each workload runs,
so that the sum of the chosen scores is highest. Writes the decision as Placements and
PlacementBindings. Errors are `application/problem+json`."""


def create_app(
    optimizer: Optimizer,
    *,
    allowed_hosts: Collection[str] = (),
    access: Access | None = None,
    read_only: bool = True,
    requests_per_second: float = 0.0,
    streams: StreamLimits = DEFAULT_STREAMS,
) -> FastAPI:
    """Return the app.

    If it is `read_only`, requests that would write are refused. The rest is as `guards` says.
    """
    app = FastAPIOffline(
        title="Dynamic Scoring Framework optimizer",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=[{"name": "optimize"}, {"name": "rollouts"}, {"name": "health"}],
        lifespan=_background(optimizer, read_only=read_only),
    )
    app.router.route_class = DeclaredRoute
    app.user_middleware += guards(allowed_hosts, access, requests_per_second, streams)
    install(app)

    shown = ShownPlans()

    def of(request: Request, caller: Caller) -> AuthorizedOptimizer:
        return AuthorizedOptimizer(
            optimizer, user_of(request), access, read_only=read_only, shown=shown, caller=caller
        )

    add_page_route(app)
    _health_routes(app, optimizer)
    add_operation_routes(app, of)
    _document(app)
    return app


def guards(
    allowed_hosts: Collection[str],
    access: Access | None,
    requests_per_second: float,
    streams: StreamLimits,
) -> list[Middleware]:
    """Return what stands before both doors, REST and MCP, the outermost first.

    A request is refused unless its Host header is loopback, the address that it was sent to, or one
    of `allowed_hosts`, and so is its Origin, if it has one. With `access`, callers send a bearer
    token and need rights on the hub. `requests_per_second` are answered of each caller; 0: all.
    As many `streams` are open at once.
    """
    listed = [
        Middleware(HostGuard, allowed=allowed_hosts),
        Middleware(BodyLimit, most=MAX_BODY_BYTES),
        Middleware(PagePolicy),
        Middleware(AnswerAge),
    ]
    if access:
        listed.append(Middleware(Authentication, auth=access.auth, resource=access.resource))
    if requests_per_second:
        listed.append(Middleware(RateLimit, per_second=requests_per_second))
    listed.append(Middleware(StreamLimit, limits=streams))
    return listed


def _background(
    optimizer: Optimizer, *, read_only: bool
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan in which the hub is watched, and rollouts and what is kept go on."""
    kept = OptimizationController(optimizer, read_only=read_only)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        hub, rollouts, landings = optimizer.hub, optimizer.rollouts, optimizer.landings
        loops = (hub.run(), rollouts.run(), landings.run(), kept.run())
        tasks = {asyncio.create_task(loop) for loop in loops}
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    return lifespan


def _health_routes(app: FastAPI, optimizer: Optimizer) -> None:
    @app.get(
        "/healthz",
        tags=["health"],
        summary="Tell whether the process lives",
        response_class=PlainTextResponse,
    )
    async def healthz() -> str:
        return "ok"

    @app.get(
        "/readyz",
        tags=["health"],
        summary="Tell whether the hub can be read",
        response_class=PlainTextResponse,
    )
    async def readyz() -> str:
        await optimizer.ready()
        return "ok"


def _document(app: FastAPI) -> None:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = describe(
                get_openapi(
                    title=app.title,
                    version=app.version,
                    description=app.description,
                    routes=app.routes,
                    tags=app.openapi_tags,
                ),
                is_open,
            )
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way
