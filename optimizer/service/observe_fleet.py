"""Reads what answers about a fleet, and about the hub itself, are made of.

Scores are read page by page, and only aggregates are kept.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.crd.definitions import crds
from dsf.api.names import ADDON, HUB_NAMESPACE, SCORING_CONFIG
from dsf.api.times import read_time
from dsf.kube import kinds
from dsf.kube.access_reviews import (
    ResourceAttributes,
    is_allowed,
    own_user_name,
    self_subject_access_review,
)
from dsf.kube.errors import Forbidden, NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Lister, Object, find_object
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue
from optimizer.domain.settings import DEFAULTS
from optimizer.follow.hub_health.hub_installation import (
    OCM_KINDS,
    OPTIMIZER_KINDS,
    OWN_KINDS,
    ClockReading,
    HubInstallation,
    Serving,
    SourceFailure,
)
from optimizer.follow.optimization.kept_optimization import kept_optimization
from optimizer.follow.optimization.what_is_kept import all_asked, with_what_is_kept
from optimizer.follow.overview.capacity import IDLE_SCORE
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.score_overview import ScoreSummary, score_summary, scorer_overview
from optimizer.follow.placement_status.recorded_status import recorded_status
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.service.hub.score_pages import score_pages
from optimizer.service.hub.watched_hub import WatchedHub
from optimizer.service.observe import (
    list_all,
    observe_namespace,
    observe_namespaces,
    retry_when_gone,
)
from optimizer.service.plan_records import recorded_plans
from optimizer.service.record_keys import RecordKeys
from optimizer.snapshot.scores.score_row import ScoreRow

OPTIONAL_KINDS = frozenset(
    (kinds.DYNAMIC_SCORER, kinds.NODE_INVENTORY, kinds.PLACEMENT_OPTIMIZATION)
)
"""Kinds that answers about a fleet are made of for readers who may list them."""


async def observe_fleet(
    kube: Lister,
    namespace: str,
    *,
    now: Callable[[], datetime],
    listed: Collection[Kind] = OPTIONAL_KINDS,
    columns: bool = False,
    records: Sequence[RecordedPlan] | Issue = (),
    cluster_label_key: str = DEFAULTS.cluster_label_key,
) -> FleetFacts:
    """Return the facts of a namespace.

    `listed`: the OPTIONAL_KINDS that are read. `columns`: whether the entries of scores are kept
    too. `records`: the plans of the namespace, with which the hub is compared. Raises KubeError if
    the hub can't be read.
    """
    found = await list_all(kube, kinds.DYNAMIC_SCORER) if kinds.DYNAMIC_SCORER in listed else ()
    scorers = tuple(map(scorer_overview, found))
    observation, scores, kept = await asyncio.gather(
        observe_namespace(kube, namespace, now()),
        retry_when_gone(lambda: _scores(kube, now, rows=columns)),
        _kept(kube, namespace, listed),
    )
    if kinds.NODE_INVENTORY not in listed:
        observation = replace(observation, inventories=None)
    status = await asyncio.to_thread(
        recorded_status, observation, namespace, records, cluster_label_key=cluster_label_key
    )
    facts = FleetFacts(
        namespace=namespace,
        observation=observation,
        status=status,
        scores=scores.summaries,
        scorers=scorers,
        rows=scores.rows,
    )
    if kept is None:
        return facts
    return await asyncio.to_thread(with_what_is_kept, facts, kept, records)


async def _kept(
    kube: Lister, namespace: str | None, listed: Collection[Kind]
) -> tuple[Object, ...] | None:
    """Return the PlacementOptimizations of a namespace, or of all; None if they are not read."""
    if kinds.PLACEMENT_OPTIMIZATION not in listed:
        return None
    try:
        return await list_all(kube, kinds.PLACEMENT_OPTIMIZATION, namespace)
    except NotFound:
        return ()
    except Forbidden:
        return None


class _Scores(NamedTuple):
    """Aggregates by score, and the rows that they were made of: those of IDLE_SCORE, or of all."""

    summaries: dict[str, list[ScoreSummary]]
    rows: dict[str, list[ScoreRow]]


async def _scores(kube: Lister, now: Callable[[], datetime], *, rows: bool) -> _Scores:
    found = _Scores({}, {})
    if isinstance(kube, WatchedHub) and (kept := await kube.rows()) is not None:
        _add(found, kept, now(), rows=rows)
        return found
    async for page in score_pages(kube):
        _add(found, map(ScoreRow, page), now(), rows=rows)
    return found


def _add(found: _Scores, read: Iterable[ScoreRow], now: datetime, *, rows: bool) -> None:
    for row in read:
        found.summaries.setdefault(row.score, []).append(score_summary(row, now=now))
        if rows or row.score == IDLE_SCORE:
            found.rows.setdefault(row.score, []).append(row)


async def observe_fleets(
    kube: Lister, *, keys: RecordKeys, now: Callable[[], datetime]
) -> tuple[FleetFacts, ...]:
    """Return the facts of the hub without a namespace, then of each namespace with workloads.

    `keys`: the key that signs records, without which the hub is not compared with them.
    Raises KubeError if the hub can't be read, or only namespace by namespace.
    """
    observations, scores, scorers, plans, optimizations = await asyncio.gather(
        observe_namespaces(kube, now()),
        retry_when_gone(lambda: _scores(kube, now, rows=False)),
        list_all(kube, kinds.DYNAMIC_SCORER),
        recorded_plans(kube, None, keys),
        _kept(kube, None, OPTIONAL_KINDS),
    )
    overviews = tuple(map(scorer_overview, scorers))

    def compared() -> tuple[FleetFacts, ...]:
        none, read = (plans, ()) if isinstance(plans, Issue) else ((), plans)
        records = members_by_key((item.namespace, item) for item in read)
        kept = members_by_key((obj["metadata"]["namespace"], obj) for obj in optimizations or ())
        statuses = {
            name: recorded_status(observation, name, records.get(name, none))
            for name, observation in observations.items()
        }
        hub, *every = (
            FleetFacts(name, observation, statuses[name], scores.summaries, overviews, scores.rows)
            for name, observation in observations.items()
        )
        if optimizations is None:
            return hub, *every
        told = [
            with_what_is_kept(item, kept.get(item.namespace, ()), records.get(item.namespace, none))
            for item in every
        ]
        return replace(hub, asked_scores=all_asked(told)), *told

    return await asyncio.to_thread(compared)


async def observe_installation(
    kube: Kube,
    server: str,
    *,
    rights: Iterable[ResourceAttributes],
    now: Callable[[], datetime],
    prometheus: str | None = None,
) -> HubInstallation:
    """Return what one look at a hub finds; what the user may not read is left out.

    Raises KubeError if the hub does not answer, or does not accept the user.
    """
    user, clock = await _own_review(kube, now)
    asked = (*OWN_KINDS, *OCM_KINDS, *OPTIMIZER_KINDS)
    serving = await asyncio.gather(*(_serving(kube, kind) for kind in asked))
    served = dict(zip(asked, serving, strict=True))
    add_ons, failures = await asyncio.gather(
        _readable(kube, kinds.MANAGED_CLUSTER_ADD_ON, fields=f"metadata.name={ADDON}"),
        _source_failures(kube, served),
    )
    optimizations = await _readable(kube, kinds.PLACEMENT_OPTIMIZATION)
    return HubInstallation(
        server=server,
        user=user,
        clock=clock,
        served=served,
        definitions=await _definitions(kube),
        shipped={str(item["metadata"]["name"]): item for item in crds()},
        cluster_managers=await _readable(kube, kinds.CLUSTER_MANAGER),
        clusters=await _readable(kube, kinds.MANAGED_CLUSTER),
        add_ons=add_ons,
        config=await _config(kube),
        scorers=await _readable(kube, kinds.DYNAMIC_SCORER),
        kept=tuple(kept_optimization(obj, now()) for obj in optimizations),
        source_failures=failures[0],
        sources_read=failures[1],
        rights=await own_rights(kube, rights),
        prometheus=prometheus,
    )


async def _own_review(kube: Kube, now: Callable[[], datetime]) -> tuple[str, ClockReading | None]:
    """Return who we are and the hub's time; a hub before Kubernetes 1.28 tells neither."""
    before = now()
    try:
        review = await kube.create(kinds.SELF_SUBJECT_REVIEW, {})
    except (Forbidden, NotFound):
        await kube.list(kinds.MANAGED_CLUSTER, limit=1)
        return "", None
    hub_time = read_time(str(review.get("metadata", {}).get("creationTimestamp") or ""))
    return own_user_name(review), ClockReading(before, hub_time, now())


async def _serving(kube: Kube, kind: Kind) -> Serving:
    try:
        await kube.list(kind, limit=1)
    except NotFound:
        return "missing"
    except Forbidden:
        return "forbidden"
    return "served"


async def _readable(kube: Kube, kind: Kind, *, fields: str = "") -> tuple[Object, ...]:
    """Return all objects of a kind; none if the user may not list them."""
    try:
        return await list_all(kube, kind, fields=fields)
    except Forbidden:
        return ()


async def _definitions(kube: Kube) -> dict[str, Object]:
    found: dict[str, Object] = {}
    for kind in OWN_KINDS:
        try:
            found[kind.resource] = await kube.get(kinds.CUSTOM_RESOURCE_DEFINITION, kind.resource)
        except (Forbidden, NotFound):
            continue
    return found


async def _config(kube: Kube) -> Object | None:
    try:
        return await find_object(kube, kinds.DYNAMIC_SCORING_CONFIG, SCORING_CONFIG, HUB_NAMESPACE)
    except Forbidden:
        return None


async def _source_failures(
    kube: Kube, served: Mapping[Kind, Serving]
) -> tuple[tuple[SourceFailure, ...], int]:
    """Return the scores whose source fails, and how many could be read."""
    if served[kinds.ADD_ON_PLACEMENT_SCORE] != "served":
        return (), 0
    return await retry_when_gone(lambda: _read_source_failures(kube))


async def _read_source_failures(kube: Kube) -> tuple[tuple[SourceFailure, ...], int]:
    failures, read = list[SourceFailure](), 0
    async for page in score_pages(kube):
        for obj in page:
            condition = find(conditions_of(obj), "SourceFetched")
            if condition is None:
                continue
            if condition.get("status") == "True":
                read += 1
                continue
            meta = obj["metadata"]
            said = (str(condition.get(field) or "") for field in ("reason", "message"))
            failures.append(SourceFailure(meta["name"], meta["namespace"], *said))
    return tuple(failures), read


async def own_rights(
    kube: Kube, asked: Iterable[ResourceAttributes]
) -> dict[ResourceAttributes, bool]:
    """Return whether we have each right ourselves; nothing if the API server does not say."""
    found: dict[ResourceAttributes, bool] = {}
    for item in asked:
        try:
            review = self_subject_access_review(item)
            found[item] = is_allowed(await kube.create(kinds.SELF_SUBJECT_ACCESS_REVIEW, review))
        except (Forbidden, NotFound):
            return {}
    return found
