"""The operations about scores: their values, and how these changed."""

from typing import Annotated

from prometheus_client import CollectorRegistry
from pydantic import Field

from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.access.rights import describing_rights, listing_rights, scraping_rights
from optimizer.operations.operation import Route, operation
from optimizer.service.hub.score_history import ScoreHistory
from optimizer.service.hub.scorer_history import ScorerHistories
from optimizer.snapshot.ineffective_input import unknown_filters
from optimizer.wire.base import ObjectName
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import ScoreList, ScoreObject

MAX_HOURS = 168
"""A week: it shows each day and night of a fleet, and Prometheus keeps two by default."""

Hours = Annotated[int, Field(ge=1, le=MAX_HOURS, description="Up to now.")]


@operation(rights=listing_rights)
async def scores(
    optimizer: AuthorizedOptimizer, namespace: str | None = None, name: str | None = None
) -> tuple[ScoreObject, ...] | RequestProblem:
    """Return the AddOnPlacementScores of all clusters, or of one namespace or name.

    They are described for users who may list DynamicScorers, because these describe them.
    """
    described = await optimizer.may(describing_rights())
    return await optimizer.service.scores(namespace=namespace, name=name, described=described)


@operation(
    rights=None,
    route=Route(
        "GET", "/addonplacementscores", "List the scores of all managed clusters", problems=(422,)
    ),
)
async def list_scores(
    optimizer: AuthorizedOptimizer,
    namespace: Annotated[
        str | None, Field(description="Only this managed cluster.", max_length=253)
    ] = None,
    name: Annotated[
        str | None, Field(description="Only scores of this name.", max_length=253)
    ] = None,
) -> ScoreList | RequestProblem:
    """List AddOnPlacementScores, ordered by cluster and name.

    If a DynamicScorer fills a score, its description and the format of its entry names are
    included. An expired score is not used for placement. If there are too many entries for
    one response, the status is 422: name a cluster or a score.
    """
    found = await scores(optimizer, namespace, name)
    if isinstance(found, RequestProblem):
        return found
    unknown = None
    if not found and (namespace or name):
        may_list = await optimizer.may(listing_rights(None))
        every = await optimizer.service.score_names() if may_list else ()
        unknown = unknown_filters(every, namespace=namespace, name=name)
    return unknown or ScoreList(items=found)


@operation(
    rights=lambda cluster: listing_rights(cluster),  # noqa: PLW0108 - it names the parameter
    route=Route("GET", "/scores/history", "Show how a score changed"),
)
async def score_history(
    optimizer: AuthorizedOptimizer,
    score: ObjectName,
    cluster: Annotated[
        ObjectName | None, Field(description="A managed cluster. Without it, all count.")
    ] = None,
    app: Annotated[str, Field(max_length=256, description="Only this app; empty: all.")] = "",
    hours: Hours = 24,
) -> ScoreHistory | RequestProblem:
    """Return what the agents published over the last hours, by app and device.

    Of one cluster these are its values, with the quantiles that a forecast has; without a cluster
    the median over all of them, and the 10th to the 90th percentile. The Prometheus of
    `--prometheus-url` is asked; without one the status is 404 (HistoryNotConfigured). A score is
    `score`, the name of its AddOnPlacementScore.
    """
    return await optimizer.service.score_history(score, cluster or "", hours, app)


@operation(
    rights=lambda: listing_rights(None) + describing_rights(),
    route=Route("GET", "/scorers/history", "Show how the scorers did"),
)
async def scorer_history(
    optimizer: AuthorizedOptimizer, hours: Hours = 24
) -> ScorerHistories | RequestProblem:
    """Return curves of each scorer over all clusters, for the last hours.

    They are its scores, the age of the last good round, failed rounds, latency of the scoring API,
    and skill of forecasts against the last value. The Prometheus of `--prometheus-url` is asked, as
    for GET /scores/history. What it does not give is in `missing`.
    """
    return await optimizer.service.scorer_histories(hours)


@operation(
    rights=scraping_rights,
    route=Route(
        "GET",
        "/metrics",
        "Tell what this process has done, for Prometheus",
        problems=(),
        tag="health",
    ),
)
async def metrics(optimizer: AuthorizedOptimizer) -> CollectorRegistry | RequestProblem:
    """Return the metrics in Prometheus' text format, or in OpenMetrics if it is accepted.

    The caller needs the right to `get` the non-resource URL `/metrics`, as for Kubernetes' own
    servers.
    """
    return optimizer.service.registry
