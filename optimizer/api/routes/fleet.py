"""The route of the fleet as a matrix."""

import asyncio
from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel

from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.api.cached_document import CachedDocument
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
            **documented(404, 422),
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
        document = await asyncio.to_thread(matrix_document, found)
        return document.response(connection, "application/json")


def matrix_document(found: FleetMatrix) -> CachedDocument:
    """Return the document of a matrix; one that was observed at another time may be equal."""
    identity = found.model_dump_json(exclude={"observed_at"})
    return CachedDocument.of(found.model_dump_json().encode(), identity.encode())
