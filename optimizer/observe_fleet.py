"""Reads what answers about a fleet are made of; scores page by page, keeping aggregates only."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from dsf.kube.kinds import DYNAMIC_SCORER
from dsf.kube.port import Lister
from optimizer.observe import list_all, observe_namespace, retry_when_gone, score_pages
from optimizer.overview.fleet_facts import FleetFacts
from optimizer.overview.score_overview import ClusterScore, ClusterScores, cluster_score
from optimizer.overview.scorer_overview import scorer_overview
from optimizer.placement_status.comparison import placement_status
from optimizer.snapshot.scores.score_entries import score_object


async def observe_fleet(
    kube: Lister, namespace: str, *, now: Callable[[], datetime], described: bool
) -> FleetFacts:
    """Return the facts of a namespace; without `described`, no DynamicScorer is read.

    Raises KubeError if the hub can't be read.
    """
    observation, scores, scorers = await asyncio.gather(
        observe_namespace(kube, namespace, now()),
        retry_when_gone(lambda: _cluster_scores(kube, now)),
        list_all(kube, DYNAMIC_SCORER) if described else _none(),
    )
    status = await asyncio.to_thread(placement_status, observation, namespace)
    return FleetFacts(
        namespace=namespace,
        observation=observation,
        status=status,
        scores=scores,
        scorers=tuple(map(scorer_overview, scorers)),
    )


async def _none() -> tuple[()]:
    return ()


async def _cluster_scores(kube: Lister, now: Callable[[], datetime]) -> ClusterScores:
    found: dict[str, list[ClusterScore]] = {}
    async for page in score_pages(kube):
        for obj in page:
            score = score_object(obj, now=now())
            found.setdefault(score.name, []).append(cluster_score(score))
    return found
