"""The HTTP API: routes only."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse
from fastapi_offline import FastAPIOffline
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel, Field
from starlette.middleware import Middleware

from dsf import __version__
from optimizer.access.authorized_optimizer import Access, AuthorizedOptimizer
from optimizer.access.shown_plans import ShownPlans
from optimizer.api.authentication import Authentication, is_open, user_of
from optimizer.api.caller import caller_of
from optimizer.api.examples import RESET_EXAMPLES
from optimizer.api.problem_details import describe, documented, install, refusal
from optimizer.api.rate_limit import RateLimit
from optimizer.api.request_guards import BodyLimit, DeclaredRoute, HostGuard
from optimizer.api.routes.fleet import add_fleet_route
from optimizer.api.routes.page import PagePolicy, add_page_route
from optimizer.api.routes.planning import add_planning_routes
from optimizer.api.routes.recorded_plans import add_plan_routes
from optimizer.api.routes.rollouts import rollout_routes
from optimizer.api.routes.score_history import add_score_history_route
from optimizer.api.stream_limit import DEFAULT_STREAMS, StreamLimit, StreamLimits
from optimizer.service import Optimizer
from optimizer.snapshot.ineffective_input import unknown_filters
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import (
    Namespace,
    OptimizationName,
    ResetRequest,
)
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import ResetResult, ScoreList

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Largest request body: enough for the largest request that the model accepts."""

_DESCRIPTION = """Decides which policies each managed cluster enforces and where each workload runs,
so that the sum of the chosen scores is highest. Writes the decision as Placements and
PlacementBindings. Errors are `application/problem+json`."""


class ScoreFilter(BaseModel, extra="forbid"):
    """Parameters of GET /addonplacementscores; a misspelt one is refused, not ignored."""

    namespace: Annotated[
        str | None, Field(description="Only this managed cluster.", max_length=253)
    ] = None
    name: Annotated[str | None, Field(description="Only scores of this name.", max_length=253)] = (
        None
    )


class StatusFilter(BaseModel, extra="forbid"):
    """Parameters of GET /placements/status; a misspelt one is refused, not ignored."""

    namespace: Namespace
    optimization: Annotated[
        OptimizationName | None, Field(description="Only what this optimization generated.")
    ] = None


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
        lifespan=_background(optimizer),
    )
    app.router.route_class = DeclaredRoute
    app.user_middleware += guards(allowed_hosts, access, requests_per_second, streams)
    install(app)

    def of(request: Request) -> AuthorizedOptimizer:
        return AuthorizedOptimizer(optimizer, user_of(request), access, read_only=read_only)

    _reading_routes(app, of)
    _writing_routes(app, of)
    add_fleet_route(app, of)
    add_score_history_route(app, of)
    shown = ShownPlans()
    add_planning_routes(app, of, shown)
    add_plan_routes(app, of, shown)
    rollout_routes(app, of)
    add_page_route(app)
    _health_routes(app, optimizer)
    _metrics_route(app, of)
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
    ]
    if access:
        listed.append(Middleware(Authentication, auth=access.auth, resource=access.resource))
    if requests_per_second:
        listed.append(Middleware(RateLimit, per_second=requests_per_second))
    listed.append(Middleware(StreamLimit, limits=streams))
    return listed


def _background(optimizer: Optimizer) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan in which rollouts go on and the landing of plans is watched."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loops = (optimizer.rollouts.run(), optimizer.landings.run())
        tasks = {asyncio.create_task(loop) for loop in loops}
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    return lifespan


def _reading_routes(app: FastAPI, of: Callable[[Request], AuthorizedOptimizer]) -> None:
    """Add the routes that write nothing; `of` returns the optimizer of a request's caller."""

    @app.get(
        "/addonplacementscores",
        tags=["optimize"],
        summary="List the scores of all managed clusters",
        operation_id="list_scores",
        response_model=ScoreList,
        responses=documented(422),
    )
    async def scores(
        only: Annotated[ScoreFilter, Query()], connection: Request
    ) -> ScoreList | Response:
        """List AddOnPlacementScores, ordered by cluster and name.

        If a DynamicScorer fills a score, its description and the format of its entry names are
        included. An expired score is not used for placement. If there are too many entries for
        one response, the status is 422: name a cluster or a score.
        """
        named, optimizer = only.model_dump(), of(connection)
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(optimizer.scores(**named))
        if isinstance(found, RequestProblem):
            return refusal(found)
        if not found and any(named.values()):
            unknown = unknown_filters(await optimizer.score_names(), **named)
            if unknown:
                return refusal(unknown)
        return ScoreList(items=found)

    @app.get(
        "/placements/status",
        tags=["optimize"],
        summary="Compare what was decided with what OCM has done",
        operation_id="placement_status",
        response_model=PlacementStatus,
        responses=documented(404, 422),
    )
    async def status(
        only: Annotated[StatusFilter, Query()], connection: Request
    ) -> PlacementStatus | Response:
        """Tell how far OCM is with each workload on each cluster that a plan placed it on.

        Also which policy of a cluster is compliant, and which generated objects were edited or name
        a cluster that was lost. A namespace in which nothing was placed has empty lists.
        """
        optimizer = of(connection)
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(optimizer.placement_status(**only.model_dump()))
        return refusal(found) if isinstance(found, RequestProblem) else found


def _writing_routes(app: FastAPI, of: Callable[[Request], AuthorizedOptimizer]) -> None:
    @app.post(
        "/reset",
        tags=["optimize"],
        summary="Delete what was generated in a namespace",
        operation_id="reset",
        response_model=ResetResult,
        responses=documented(404, 409, 422),
    )
    async def reset(
        connection: Request,
        request: Annotated[ResetRequest, Body(openapi_examples=RESET_EXAMPLES)],
    ) -> ResetResult | Response:
        """Delete the generated Placements, PlacementBindings and Policies of a namespace.

        With `optimization`, only those that were generated for it. The workloads go on running,
        and `running` names them; with `stopWorkloads` they stop.
        If the caller disconnects before the first deletion, nothing is deleted.
        """
        optimizer = of(connection)
        async with caller_of(connection.receive) as caller:
            done = await optimizer.reset(
                request.namespace,
                optimization=request.optimization,
                stop_workloads=request.stop_workloads,
                wanted=caller.is_connected,
            )
        return refusal(done) if isinstance(done, RequestProblem) else done


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


def _metrics_route(app: FastAPI, of: Callable[[Request], AuthorizedOptimizer]) -> None:
    @app.get(
        "/metrics",
        tags=["health"],
        summary="Tell what this process has done, for Prometheus",
        response_class=PlainTextResponse,
    )
    async def metrics(request: Request) -> Response:
        """Return the metrics in Prometheus' text format, or in OpenMetrics if it is accepted.

        The caller needs the right to `get` the non-resource URL `/metrics`, as for Kubernetes' own
        servers.
        """
        found = await of(request).metrics()
        if isinstance(found, RequestProblem):
            return refusal(found)
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(found), media_type=content_type)


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
