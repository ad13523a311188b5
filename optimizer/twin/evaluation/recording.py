"""Makes a scenario of what was recorded: the scores that agents published, and plans applied.

Objects are those of a hub, as files or the API server have them; scores are the series of a
Prometheus that scrapes the agents.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, pairwise
from math import isfinite
from statistics import median
from typing import Any, NamedTuple

from dsf.api.names import score_object_name
from dsf.api.times import rfc3339, shown_duration
from dsf.api.untrusted_text import InvalidInput, UntrustedName, listed
from dsf.cli.prometheus import PastValues
from dsf.placement import SET_LABEL
from optimizer.domain.fleet import Cluster, Workload
from optimizer.domain.mig.gpu_pools import possible_devices
from optimizer.domain.settings import DEFAULTS
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.snapshot.fleet_snapshot import FleetSnapshot, read_objects
from optimizer.snapshot.observation import Observation
from optimizer.twin.evaluation.scenario_file import scenario_of
from optimizer.twin.fleet_objects import spec_of
from optimizer.twin.played import Played
from optimizer.twin.run_history import Outcome, RunHistory
from optimizer.twin.scenario import Scenario
from optimizer.twin.score_series import ScoreSeries
from optimizer.wire.mig_request import requested_gpus
from optimizer.wire.object_specs import WorkloadSpec
from optimizer.wire.request import OptimizeRequest

QUERY = "avg by (ds_cluster, ds_app, ds_device, ds_score_name) (dynamic_score)"
"""PromQL for the scores that agents published."""

GAP_STEPS = 2.5
"""Steps without a sample of a cluster from which on nothing was published there."""

_LISTED_GAPS = 5


class RecordedRun(NamedTuple):
    """A scenario that plays what was recorded, what ran meanwhile, and what is to be told of it.

    `recorded`: None if it is not on record what ran from the start on.
    """

    scenario: Scenario
    recorded: Played | None
    notes: tuple[str, ...]


_LABELS = ("cluster", "app", "device", "score_name")
_Labels = tuple[str, str, str, str]


class _Samples(NamedTuple):
    """A series of a score; `app` and `device` are empty if its entries have none."""

    cluster: str
    score: str
    app: str
    device: str
    times: tuple[float, ...]
    values: tuple[float, ...]


def recording_of(
    observation: Observation,
    plans: Sequence[RecordedPlan],
    spec: Mapping[str, Any] | None,
    series: Iterable[PastValues],
) -> RecordedRun:
    """Return what was recorded as a scenario.

    `plans`: of one optimization. `spec`: of its PlacementOptimization; None: the request of the
    newest plan. Raises ValueError, which says what the recording lacks.
    """
    applied = sorted(
        (plan for plan in plans if plan.was_written and plan.created),
        key=lambda one: one.spec.revision,
    )
    request = _request(applied)
    read = read_objects(observation, request, DEFAULTS)
    fleet = read.fleet
    samples = list(_samples(series, request))
    start, end = min(one.times[0] for one in samples), max(one.times[-1] for one in samples)
    step = (
        median(late - early for one in samples for early, late in pairwise(one.times))
        if any(len(one.times) > 1 for one in samples)
        else 0.0
    )
    if end - start < max(2 * step, 60.0):
        raise ValueError("the recording is shorter than two steps: record for longer")
    gaps = list(_gaps(samples, start, end, step))
    stated = _kept(request) if spec is None else spec
    stated = {key: value for key, value in stated.items() if key not in _OF_FLEET}
    scenario = scenario_of(
        {
            "description": f"recorded from {_time(start)} to {_time(end)}",
            "start": _time(start),
            "duration": end - start,
            "scoringInterval": round(max(step, 10.0)),
            "clusters": [_cluster_group(one, read) for one in fleet.clusters],
            "workloads": [_workload_group(one) for one in fleet.workloads],
            "scores": [*_scores(samples, request, read, start)],
            "failures": [
                {
                    "type": "AgentStopped",
                    "at": begins - start,
                    "until": ends - start,
                    "clusters": [cluster],
                }
                for cluster, begins, ends in gaps
            ],
            "optimization": _played_part(stated),
        },
        "the recording",
    )
    notes = [*_gap_notes(gaps)]
    recorded = _recorded(scenario, applied, start)
    if recorded is None:
        notes.append(
            f"the first plan on record is younger than {_time(start)}, so it is not known what ran"
            " from the start on: ask for fewer hours, or let more plans be kept"
        )
    return RecordedRun(scenario, recorded, tuple(notes))


def _request(applied: Sequence[RecordedPlan]) -> OptimizeRequest:
    content = applied[-1].content() if applied else None
    if content is None:
        raise ValueError(
            "no applied PlacementPlan says what is placed where: record those of the namespace, and"
            " name their optimization"
        )
    asked = content if isinstance(content, InvalidInput) else content.asked()
    if isinstance(asked, InvalidInput):
        raise ValueError(f"PlacementPlan {applied[-1].name}: {asked.message}")  # noqa: TRY004
    return asked


def _kept(request: OptimizeRequest) -> dict[str, Any]:
    """Return what of a request a PlacementOptimization has."""
    others = {
        "namespace",
        "optimization",
        "dry_run",
        "explain",
        "explain_workloads",
        "why_not",
        "pareto",
    }
    return request.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=others)


_OF_FLEET = {"clusters", "targetWorkloads", "clusterSelector", "workloadSelector"}
"""Fields of a spec that the fleet of the plan in force answers."""

_NOT_PLAYED = {"scoreDimensionFormat", "aggregation", "clusterSets", "suspend", "mode"}
"""Fields of a spec without a meaning in the twin: a score has one entry, and all are in one set."""


def _played_part(spec: Any) -> Any:
    if isinstance(spec, Mapping):
        played = (item for item in spec.items() if item[0] not in _NOT_PLAYED)
        return {key: _played_part(value) for key, value in played}
    return [_played_part(item) for item in spec] if isinstance(spec, list | tuple) else spec


def _samples(series: Iterable[PastValues], request: OptimizeRequest) -> Iterator[_Samples]:
    """Yield the series of the scores that are read; raises ValueError if there is none.

    Series with the same labels follow each other, as those of several files do.
    """
    names = request.score_names
    found = defaultdict[_Labels, list[tuple[float, float]]](list)
    for one in series:
        cluster, app, device, score = (one.labels.get(f"ds_{name}", "") for name in _LABELS)
        key = cluster, score_object_name(score), app, device
        if key[1] in names and cluster in request.cluster_names:
            pairs = zip(one.times, one.values, strict=True)
            found[key] += [pair for pair in pairs if isfinite(pair[1])]
    for (cluster, score, app, device), points in sorted(found.items()):
        for (early, _), (late, _) in pairwise(points):
            if late <= early:
                raise ValueError(
                    f"score {UntrustedName(score)} of {UntrustedName(cluster)}: after"
                    f" {_time(early)} comes {_time(late)}: the recording's clock jumped, or its"
                    " files overlap; cut it there"
                )
        if points:
            times, values = zip(*points, strict=True)
            yield _Samples(cluster, score, app, device, times, values)
    if not any(found.values()):
        raise ValueError(
            f"the recording has no samples of {listed(sorted(names))}: it needs the answer of"
            f" Prometheus to {QUERY}"
        )


def _gaps(
    samples: Iterable[_Samples], start: float, end: float, step: float
) -> Iterator[tuple[str, float, float]]:
    """Yield cluster, begin and end of each time in which nothing was published there."""
    times = defaultdict[str, set[float]](set)
    for one in samples:
        times[one.cluster].update(one.times)
    for cluster, found in sorted(times.items()):
        every = [start - step, *sorted(found), end + step]
        for early, late in pairwise(every):
            if late - early > GAP_STEPS * step:
                yield cluster, early + step, late


def _gap_notes(gaps: Sequence[tuple[str, float, float]]) -> Iterator[str]:
    for cluster, begins, ends in gaps[:_LISTED_GAPS]:
        yield (
            f"{UntrustedName(cluster)}: nothing recorded for {shown_duration(ends - begins)} from"
            f" {_time(begins)}; played as an agent that was away"
        )
    if len(gaps) > _LISTED_GAPS:
        yield f"{len(gaps) - _LISTED_GAPS} more gaps are played so"


def _scores(
    samples: Sequence[_Samples], request: OptimizeRequest, read: FleetSnapshot, start: float
) -> Iterator[dict[str, Any]]:
    """Yield each score of each device; samples without a device are those of all."""
    fleet = read.fleet
    devices = {item.device for cluster in fleet.clusters for item in cluster.supplies}
    for pool in chain.from_iterable(read.pools.values()):
        devices.update(possible_devices(pool))
    known = {cluster.name for cluster in fleet.clusters}
    apps = defaultdict[str, list[str]](list)
    for workload in fleet.workloads:
        apps[workload.app].append(workload.name)
    for score in sorted(request.score_names):
        found = defaultdict[str, list[dict[str, Any]]](list)
        for one in samples:
            if one.score != score or one.cluster not in known:
                continue
            times = [time - start for time in one.times]
            series = [
                {"cluster": one.cluster, "workload": name, "times": times, "values": one.values}
                for name in (apps.get(one.app, ()) if one.app else ("",))
            ]
            for device in devices & {one.device} if one.device else devices:
                found[device] += series
        if not any(found.values()):
            raise ValueError(f"the recording has no samples of {score} for what is placed")
        for device, series in sorted(found.items()):
            if series:
                signal = {"type": "Recorded", "series": series}
                yield {"name": score, "device": device, "signals": [signal]}


def _cluster_group(cluster: Cluster, read: FleetSnapshot) -> dict[str, Any]:
    user = next((one.name for one in read.fleet.workloads), "")
    return {
        "name": cluster.name,
        "labels": {key: text for key, text in cluster.labels.items() if key != SET_LABEL},
        **({"allocatable": [one._asdict() for one in cluster.base]} if cluster.base else {}),
        "policies": [
            {
                "name": policy.policy,
                "supplies": [one._asdict() for one in policy.supplies],
                "changeCost": policy.cost,
                **({"pool": policy.pool} if policy.pool else {}),
                **({"uses": dict(policy.uses)} if policy.uses else {}),
            }
            for policy in cluster.candidates
        ],
        "gpus": [
            node for pool in read.pools.get(cluster.name, ()) for node in requested_gpus(pool, user)
        ],
    }


_SAME = sorted(set(WorkloadSpec.model_fields) - {"spread", "spread_group", "tolerations"})


def _workload_group(workload: Workload) -> dict[str, Any]:
    stated = {name: getattr(workload, name) for name in _SAME}
    group = next((item.group for item in workload.spread), "")
    return {
        **{name: value for name, value in stated.items() if value not in ((), "", None)},
        "name": workload.name,
        "labels": dict(workload.labels),
        "kind": workload.kind,
        "amount": workload.amount,
        "requests": dict(workload.requests) or None,
        "uses": dict(workload.uses) or None,
        "spread": [{"key": one.key, "most": one.most} for one in workload.spread] or None,
        "spread_group": group or None,
    }


def _recorded(scenario: Scenario, applied: Sequence[RecordedPlan], start: float) -> Played | None:
    """Return what came of the plans on record; None if none was in force at the start."""
    known, history = {one.workload for one in scenario.tenures()}, RunHistory()
    times = [max(0.0, (plan.created or scenario.start).timestamp() - start) for plan in applied]
    if not times or times[0] > 0:
        return None
    for plan, at in zip(applied, times, strict=True):
        content = plan.content()
        if isinstance(content, InvalidInput):
            return None
        if at < scenario.duration:
            placed = {one for one in content.assignments if one.workload in known}
            history.see({(*one,) for one in placed}, at)
    series = ScoreSeries(scenario, scenario.seed)
    plans = sum(0 < at < scenario.duration for at in times)
    stays = history.finish(scenario.duration)
    return Outcome(scenario, series, series.worth(spec_of(scenario)), stays).played(
        controller="Recorded",
        seed=scenario.seed,
        plans=plans,
        applied=plans,
        toleration_seconds=DEFAULTS.default_toleration_seconds,
    )


def _time(seconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(seconds, UTC))
