"""The route of the fleet as a matrix."""

import gzip
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel

from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.api.caller import caller_of
from optimizer.api.problem_details import documented, refusal
from optimizer.overview.fleet_matrix import FleetMatrix
from optimizer.wire.request import Namespace
from optimizer.wire.request_problem import RequestProblem


class FleetFilter(BaseModel, extra="forbid"):
    """Parameters of GET /fleet; a misspelt one is refused, not ignored."""

    namespace: Namespace = "default"


def add_fleet_route(app: FastAPI, of: Callable[[Request], AuthorizedOptimizer]) -> None:
    """Add the route; `of` returns the optimizer of a request's caller."""

    @app.get(
        "/fleet",
        tags=["optimize"],
        summary="Show the fleet as a matrix of clusters and scores",
        operation_id="fleet",
        response_model=FleetMatrix,
        responses={
            304: {"description": "The fleet is as it was: If-None-Match names its ETag."},
            **documented(400, 401, 403, 408, 422, 503),
        },
    )
    async def fleet(only: Annotated[FleetFilter, Query()], connection: Request) -> Response:
        """Return clusters, scores, what is enforced and runs where, scorers, and what is wrong.

        Values of scores are lists in the order of the clusters. The ETag stays the same until
        something else than `observed_at` changes. Scorers are in it for callers who may list
        DynamicScorers.
        """
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(of(connection).fleet_matrix(only.namespace))
        if isinstance(found, RequestProblem):
            return refusal(found)
        return cached_json(found, connection)


def cached_json(found: FleetMatrix, request: Request) -> Response:
    """Return the matrix as JSON, compressed if the client accepts it; 304 if it has the same."""
    tag = f'W/"{sha256(found.model_dump_json(exclude={"observed_at"}).encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    known = {item.strip() for item in request.headers.get("if-none-match", "").split(",")}
    if tag in known:
        return Response(status_code=304, headers=headers)
    body = found.model_dump_json().encode()
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 5, mtime=0), "gzip"
    return Response(body, media_type="application/json", headers=headers)
