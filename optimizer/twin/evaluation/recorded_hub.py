"""Reads what a scenario is made of: a hub's objects, and the past scores of a Prometheus."""

from collections.abc import Iterable, Mapping, Sequence

from dsf.cli.prometheus import PastValues, past_values
from dsf.kube.clock import utc_now
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION, PLACEMENT_PLAN, Kind
from dsf.kube.port import Lister, Object
from optimizer.follow.record.plan_history import history_of
from optimizer.follow.record.recorded_plan import read_records
from optimizer.service.observe import list_all, observe
from optimizer.twin.evaluation.recording import QUERY, RecordedRun, recording_of

STEP_SECONDS = 300.0
"""Between two samples of a Prometheus' answer: agents' rounds are rarely shorter."""

_DAY_SECONDS = 86_400.0
"""Of one call: an answer is limited in bytes."""


RECORDS = (PLACEMENT_PLAN, PLACEMENT_OPTIMIZATION)
"""The kinds whose objects say what was placed, and what was to be kept placed."""


async def recorded_run(
    lister: Lister,
    records: Mapping[Kind, Sequence[Object]],
    series: Iterable[PastValues],
    namespace: str,
    optimization: str,
) -> RecordedRun:
    """Return the recording of an optimization; raises KubeError, and ValueError if it lacks some.

    `records`: a namespace's objects of the kinds RECORDS. `series`: what agents published.
    """
    plans = history_of(read_records(records[PLACEMENT_PLAN]), optimization)
    kept = records[PLACEMENT_OPTIMIZATION]
    specs = (obj.get("spec") or {} for obj in kept if obj["metadata"]["name"] == optimization)
    observation = await observe(lister, namespace, utc_now())
    return recording_of(observation, plans, next(specs, None), series)


async def recording_of_hub(
    kube: Lister, url: str, namespace: str, optimization: str, *, seconds: float
) -> RecordedRun:
    """Return the last `seconds` of a hub, whose agents the Prometheus at a URL scrapes.

    Raises KubeError, PrometheusRefused, and ValueError if something lacks.
    """
    series = await past_scores(url, until=utc_now().timestamp(), seconds=seconds)
    records = {kind: await list_all(kube, kind, namespace) for kind in RECORDS}
    return await recorded_run(kube, records, series, namespace, optimization)


async def past_scores(url: str, *, until: float, seconds: float) -> list[PastValues]:
    """Return the scores of the last `seconds`, day by day; raises PrometheusRefused."""
    found = list[PastValues]()
    begins = until - seconds
    while begins < until:
        ends = min(begins + _DAY_SECONDS, until)
        found += await past_values(url, QUERY, start=begins, end=ends, step=STEP_SECONDS)
        begins = ends + STEP_SECONDS
    return found
