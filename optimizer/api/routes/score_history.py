"""The route of the history of a score."""

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel, Field

from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.api.caller import caller_of
from optimizer.api.problem_details import documented, refusal
from optimizer.history.score_history import ScoreHistory
from optimizer.wire.base import ObjectName
from optimizer.wire.request_problem import RequestProblem

MAX_HOURS = 168
"""A week: it shows each day and night of a fleet, and Prometheus keeps two by default."""


class HistoryFilter(BaseModel, extra="forbid"):
    """Parameters of GET /scores/history; a misspelt one is refused, not ignored."""

    score: ObjectName
    cluster: ObjectName
    hours: Annotated[int, Field(ge=1, le=MAX_HOURS, description="Up to now.")] = 24


def add_score_history_route(app: FastAPI, of: Callable[[Request], AuthorizedOptimizer]) -> None:
    """Add the route; `of` returns the optimizer of a request's caller."""

    @app.get(
        "/scores/history",
        tags=["optimize"],
        summary="Show how a score of a cluster changed",
        operation_id="score_history",
        response_model=ScoreHistory,
        responses=documented(404, 422),
    )
    async def history(
        asked: Annotated[HistoryFilter, Query()], connection: Request
    ) -> ScoreHistory | Response:
        """Return what the agent of a cluster published over the last hours, by app and device.

        The Prometheus of `--prometheus-url` is asked; without one the status is 404
        (HistoryNotConfigured). A score is `score`, the name of its AddOnPlacementScore.
        """
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(of(connection).score_history(**asked.model_dump()))
        return refusal(found) if isinstance(found, RequestProblem) else found
