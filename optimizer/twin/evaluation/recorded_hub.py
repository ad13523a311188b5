"""Reads what a scenario is made of: a hub's objects, and the past scores of a Prometheus."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dsf.cli.prometheus import PastValues, past_values
from dsf.kube.clock import utc_now
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION, PLACEMENT_PLAN, Kind
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

RECORDS = (PLACEMENT_PLAN, PLACEMENT_OPTIMIZATION)
"""The kinds whose objects say what was placed, and what was to be kept placed."""


class HubRecord(NamedTuple):
    """What is on record of an optimization, and the spec of its PlacementOptimization, if any."""

    observation: Observation
    plans: Sequence[RecordedPlan]
    spec: Mapping[str, Any] | None


async def record_of(
    lister: Lister, records: Mapping[Kind, Sequence[Object]], namespace: str, optimization: str
) -> HubRecord:
    """Return what is on record of an optimization; raises KubeError.

    `records`: a namespace's objects of the kinds RECORDS.
    """
    plans = history_of(read_records(records[PLACEMENT_PLAN]), optimization)
    kept = records[PLACEMENT_OPTIMIZATION]
    specs = (obj.get("spec") or {} for obj in kept if obj["metadata"]["name"] == optimization)
    return HubRecord(await observe(lister, namespace, utc_now()), plans, next(specs, None))


async def record_of_hub(kube: Lister, namespace: str, optimization: str) -> HubRecord:
    """Return what a hub has on record of an optimization; raises KubeError."""
    records = {kind: await list_all(kube, kind, namespace) for kind in RECORDS}
    return await record_of(kube, records, namespace, optimization)


async def recording_of_hub(
    kube: Lister, url: str, namespace: str, optimization: str, *, seconds: float
) -> RecordedRun:
    """Return the last `seconds` of a hub, whose agents the Prometheus at a URL scrapes.

    Raises KubeError, PrometheusRefused, and ValueError if something lacks.
    """
    series = await past_scores(url, until=utc_now().timestamp(), seconds=seconds)
    return recording_of(*await record_of_hub(kube, namespace, optimization), series)


async def past_scores(
    url: str, *, until: float, seconds: float, step: float = STEP_SECONDS
) -> list[PastValues]:
    """Return the scores of the last `seconds`, day by day; raises PrometheusRefused.

    `step`: between two samples, in seconds; a day has a whole number of them.
    """
    found = list[PastValues]()
    begins = until - seconds
    while begins < until:
        ends = min(begins + _DAY_SECONDS, until)
        found += await past_values(url, QUERY, start=begins, end=ends, step=step)
        begins = ends + step
    return found
