"""Reads what a scenario is made of: a hub's objects, and the past scores of a Prometheus."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dsf.cli.prometheus import PastValues, past_values
from dsf.kube.clock import utc_now
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION, PLACEMENT_PLAN, Kind, find
from dsf.kube.port import Lister, Object
from optimizer.follow.record.plan_history import history_of
from optimizer.follow.record.recorded_plan import RecordedPlan, read_records
from optimizer.service.observe import list_all, observe
from optimizer.snapshot.observation import Observation
from optimizer.twin.evaluation.recording import QUERY, RecordedRun, recording_of

STEP_SECONDS = 300.0
"""Between two samples of a Prometheus' answer: agents' rounds are rarely shorter."""

_DAY_SECONDS = 86_400.0
"""Of one call: an answer is limited in bytes."""


class RecordedObjects(NamedTuple):
    """A namespace's objects and plans on record, and the spec of its PlacementOptimization."""

    observation: Observation
    plans: tuple[RecordedPlan, ...]
    spec: Mapping[str, Any] | None

    def recording(self, series: Iterable[PastValues]) -> RecordedRun:
        """Return the recording with these scores; raises ValueError if something lacks."""
        return recording_of(self.observation, self.plans, self.spec, series)


async def recorded_objects(
    lister: Lister,
    records: Sequence[Object],
    namespace: str,
    optimization: str,
    now: datetime,
) -> RecordedObjects:
    """Return what is recorded of an optimization; `records`: plans and PlacementOptimizations."""
    own = [obj for obj in records if obj["metadata"].get("namespace", "default") == namespace]
    specs = [
        obj.get("spec") or {}
        for obj in own
        if find(obj) == PLACEMENT_OPTIMIZATION and obj["metadata"]["name"] == optimization
    ]
    plans = read_records(obj for obj in own if find(obj) == PLACEMENT_PLAN)
    return RecordedObjects(
        await observe(lister, namespace, now),
        history_of(plans, optimization),
        specs[0] if specs else None,
    )


async def recording_of_hub(
    kube: Lister, url: str, namespace: str, optimization: str, *, seconds: float
) -> RecordedRun:
    """Return the last `seconds` of a hub, whose agents the Prometheus at a URL scrapes.

    Raises KubeError, PrometheusRefused, and ValueError if something lacks.
    """
    now = utc_now()
    series = await past_scores(url, until=now.timestamp(), seconds=seconds)

    async def listed(kind: Kind) -> list[Object]:
        items = await list_all(kube, kind, namespace)
        return [{**obj, "apiVersion": kind.api_version, "kind": kind.kind} for obj in items]

    records = [*await listed(PLACEMENT_PLAN), *await listed(PLACEMENT_OPTIMIZATION)]
    found = await recorded_objects(kube, records, namespace, optimization, now)
    return await asyncio.to_thread(found.recording, series)


async def past_scores(url: str, *, until: float, seconds: float) -> list[PastValues]:
    """Return the scores of the last `seconds`, day by day; raises PrometheusRefused."""
    found = list[PastValues]()
    begins = until - seconds
    while begins < until:
        ends = min(begins + _DAY_SECONDS, until)
        found += await past_values(url, QUERY, start=begins, end=ends, step=STEP_SECONDS)
        begins = ends + STEP_SECONDS
    return found
