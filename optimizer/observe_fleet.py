"""Reads what answers about a fleet are made of; scores page by page, keeping aggregates only."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from dsf.kube.kinds import DYNAMIC_SCORER
from dsf.kube.port import Lister
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue
from optimizer.domain.settings import DEFAULTS
from optimizer.observe import (
    list_all,
    observe_namespace,
    observe_namespaces,
    retry_when_gone,
    score_pages,
)
from optimizer.overview.fleet_facts import FleetFacts
from optimizer.overview.score_columns import FleetColumns
from optimizer.overview.score_overview import (
    ClusterScore,
    ClusterScores,
    ScorerOverview,
    cluster_score,
    scorer_overview,
)
from optimizer.placement_status.record_drift import recorded_status
from optimizer.plan_records import recorded_plans
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.record_keys import RecordKeys
from optimizer.snapshot.object_readers import name_of


async def observe_fleet(
    kube: Lister,
    namespace: str,
    *,
    now: Callable[[], datetime],
    described: bool,
    columns: bool = False,
    records: Sequence[RecordedPlan] | Issue = (),
    cluster_label_key: str = DEFAULTS.cluster_label_key,
) -> FleetFacts:
    """Return the facts of a namespace; without `described`, no DynamicScorer is read.

    `columns`: whether the entries of scores are kept too, by app and device. `records`: the plans
    of the namespace, with which the hub is compared. Raises KubeError if the hub can't be read.
    """
    found = await list_all(kube, DYNAMIC_SCORER) if described else ()
    scorers = tuple(map(scorer_overview, found))
    observation, (scores, kept) = await asyncio.gather(
        observe_namespace(kube, namespace, now()),
        retry_when_gone(lambda: _scores(kube, now, scorers if columns else None)),
    )
    status = await asyncio.to_thread(
        recorded_status, observation, namespace, records, cluster_label_key=cluster_label_key
    )
    return FleetFacts(
        namespace=namespace,
        observation=observation,
        status=status,
        scores=scores,
        scorers=scorers,
        columns=kept.scores,
    )


async def _scores(
    kube: Lister, now: Callable[[], datetime], scorers: tuple[ScorerOverview, ...] | None
) -> tuple[ClusterScores, FleetColumns]:
    """Return the aggregates by score, and the columns unless `scorers` is None."""
    found: dict[str, list[ClusterScore]] = {}
    columns = FleetColumns(scorers or ())
    async for page in score_pages(kube):
        for obj in page:
            found.setdefault(name_of(obj), []).append(cluster_score(obj, now=now()))
            if scorers is not None:
                columns.add(obj)
    return found, columns


async def observe_fleets(
    kube: Lister, *, keys: RecordKeys, now: Callable[[], datetime]
) -> tuple[FleetFacts, ...]:
    """Return the facts of the hub without a namespace, then of each namespace with workloads.

    `keys`: the key that signs records, without which the hub is not compared with them.
    Raises KubeError if the hub can't be read, or only namespace by namespace.
    """
    observations, (scores, _), scorers, plans = await asyncio.gather(
        observe_namespaces(kube, now()),
        retry_when_gone(lambda: _scores(kube, now, None)),
        list_all(kube, DYNAMIC_SCORER),
        recorded_plans(kube, None, keys),
    )
    overviews = tuple(map(scorer_overview, scorers))

    def compared() -> tuple[FleetFacts, ...]:
        none, read = (plans, ()) if isinstance(plans, Issue) else ((), plans)
        records = members_by_key((item.namespace, item) for item in read)
        statuses = {
            name: recorded_status(observation, name, records.get(name, none))
            for name, observation in observations.items()
        }
        return tuple(
            FleetFacts(name, observation, statuses[name], scores, overviews)
            for name, observation in observations.items()
        )

    return await asyncio.to_thread(compared)
