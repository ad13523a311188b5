"""The scores of a fleet over time, as a Prometheus that scrapes its agents would answer.

A demo has no Prometheus. What its agents published is read from the hub since the start; before
that, a score that is the mean of recorded series is computed from the fleet's day, which repeats
without end. Forecasts have no value before the start. It evaluates no PromQL: of the optimizer's
queries it reads which scores, cluster, app and quantiles they ask for.
"""

import asyncio
import math
import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean, median

from prometheus_client import CollectorRegistry

from dsf.api.crd.score_rules import Normalize, published_value
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.port import Kube, Object
from dsf.scorer_kit.prometheus_replay import Matrix
from dsf.sim.fleet.fleet_load import DAY_SECONDS, STEP_SECONDS, recording, scorers
from dsf.sim.fleet.generated_fleet import FleetCluster

SAMPLE_SECONDS = 15.0
"""Seconds between two reads of the scores on the hub."""

KEPT_SAMPLES = 6000
"""Samples of each entry that are kept: those of a day."""

STALE_SECONDS = 300.0
"""Age of a sample that counts no more, as in Prometheus."""

DAY_STEP = 60
"""Seconds between two values of the day before the start."""

_SELECTED = re.compile(r'(ds_cluster|ds_app|ds_score_name)=~?"((?:[^"\\]|\\.)*)"')
_QUANTILE = re.compile(r'\(([\d.]+), .*?"of", "(\w+)"')

_Key = tuple[str, str, str, str]
"""Cluster, score, app and device; or "", score, "" and the name of a curve of its rounds."""


class ScoreCurves:
    """The scores that a fleet published since `began`, and the days before.

    `registries`: where the agent of each cluster keeps its metrics.
    """

    def __init__(self, fleet: Iterable[FleetCluster]) -> None:
        self._began = utc_now().timestamp()
        self._times: array[float] = array("d")
        self._values: dict[_Key, array[float]] = {}
        self._days = {key: day for cluster in fleet for key, day in _days(cluster)}
        self.registries = defaultdict[str, CollectorRegistry](CollectorRegistry)
        self._failed = FailedRounds()

    @property
    def told(self) -> str:
        """Where the curves come from."""
        began = datetime.fromtimestamp(self._began, UTC)
        return (
            f"This demo has no Prometheus. From its start at {began:%H:%M} UTC on, curves are the"
            " scores that its agents published. What is drawn before did not happen: it repeats one"
            " day of recorded metrics. Forecasts have nothing before the start. Failures and"
            " latency of scorers count all rounds since the start"
        )

    async def follow(self, hub: Kube) -> None:
        """Read the scores on the hub again and again, until cancelled."""
        while True:
            scores = (await hub.list(kinds.ADD_ON_PLACEMENT_SCORE)).items
            self.add(utc_now().timestamp(), scores)
            await asyncio.sleep(SAMPLE_SECONDS)

    def add(self, time: float, scores: Iterable[Object]) -> None:
        """Keep what AddOnPlacementScores say at a time in unix seconds."""
        found = {
            (score["metadata"]["namespace"], score["metadata"]["name"], *_entry(entry["name"])): (
                float(entry["value"])
            )
            for score in scores
            for entry in score.get("status", {}).get("scores", ())
        }
        rounds, self._failed = round_curves(self.registries, time)
        found |= {("", score, "", curve): value for (score, curve), value in rounds.items()}
        for key in found.keys() - self._values.keys():
            self._values[key] = array("d", [math.nan]) * len(self._times)
        self._times.append(time)
        for key, kept in self._values.items():
            kept.append(found.get(key, math.nan))
        for kept in (self._times, *self._values.values()):
            del kept[:-KEPT_SAMPLES]

    def samples(self, query: str, times: Sequence[float]) -> Matrix | None:
        """Return the answer to a query in matrix form."""
        if "dynamic_scoring" in query:
            return self._of_rounds("topk" in query, times)
        wanted = dict(_SELECTED.findall(query))
        score = re.compile(wanted.get("ds_score_name", ".*"))
        by_score = "by (score_name)" in query
        groups = defaultdict[tuple[str, str, str], dict[str, list[_Key]]](lambda: defaultdict(list))
        for key in sorted({*self._values, *self._days}):
            cluster, name, app, device = key
            asked = wanted.get("ds_cluster", cluster), wanted.get("ds_app", app)
            if cluster and asked == (cluster, app) and score.fullmatch(name):
                group = (name, "", "") if by_score else ("", app, device)
                groups[group][cluster].append(key)
        shares = [(float(share), of) for share, of in _QUANTILE.findall(query)] or [(0.5, "")]
        newest = [self._newest(time) for time in times]
        found: Matrix = []
        for (name, app, device), clusters in groups.items():
            labels = {"score_name": name, "ds_app": app, "ds_device": device}
            moments = [*zip(times, newest, strict=True)]
            means = [
                [_mean(self._at(key, *moment) for key in keys) for moment in moments]
                for keys in clusters.values()
            ]
            for share, of in shares:
                values = (_quantile(column, share) for column in zip(*means, strict=True))
                points = [
                    [time, format(value, ".6g")]
                    for time, value in zip(times, values, strict=True)
                    if math.isfinite(value)
                ]
                found.append({"metric": {**labels, "of": of}, "values": points})
        return [one for one in found if one["values"]]

    def _of_rounds(self, failing: bool, times: Sequence[float]) -> Matrix:
        """Return the curves of all scorers, or how many rounds failed by cluster."""
        moments = [(time, self._newest(time)) for time in times]
        if failing:
            return [
                {"metric": {"score_name": score, "cluster": cluster}, "values": [[time, str(n)]]}
                for (score, cluster), n in self._failed.items()
                for time in times[-1:]
            ]
        return [
            {
                "metric": {"score_name": key[1], "of": key[3]},
                "values": [
                    [time, format(value, ".6g")]
                    for time, newest in moments
                    if math.isfinite(value := self._at(key, time, newest))
                ],
            }
            for key in self._values
            if not key[0]
        ]

    def _newest(self, time: float) -> int:
        """Return the position of the newest sample that counts at a time; -1: there is none."""
        at = bisect_right(self._times, time) - 1
        return at if at >= 0 and time - self._times[at] <= STALE_SECONDS else -1

    def _at(self, key: _Key, time: float, newest: int) -> float:
        """Return a value, NaN where there is none."""
        if time < self._began:
            day = self._days.get(key)
            return day[int(time % DAY_SECONDS) // DAY_STEP] if day else math.nan
        kept = self._values.get(key)
        return kept[newest] if kept and newest >= 0 else math.nan


def _entry(name: str) -> tuple[str, str]:
    """Return app and device of an entry."""
    app, _, device = name.rpartition(";")
    return app, device


def _mean(values: Iterable[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return fmean(finite) if finite else math.nan


def _quantile(values: Iterable[float], share: float) -> float:
    """Return a quantile as Prometheus does, between the two values that are nearest."""
    finite = sorted(value for value in values if math.isfinite(value))
    if not finite:
        return math.nan
    rank = share * (len(finite) - 1)
    low, high = finite[math.floor(rank)], finite[math.ceil(rank)]
    return low + (high - low) * (rank - math.floor(rank))


def _days(cluster: FleetCluster) -> Iterator[tuple[_Key, Sequence[float]]]:
    """Yield the scores of a day that are means of recorded series, one for each DAY_STEP."""
    recorded = recording(cluster)
    for scorer in scorers("", ""):
        spec, params = scorer["spec"], scorer["spec"]["source"]["params"]
        if "forecast" in spec:
            continue
        length = params["range"] // STEP_SECONDS
        normalize = spec["scoring"].get("normalize")
        scale = Normalize(**normalize) if normalize else None
        for series in recorded.answer(params["query"]) or ():
            twice = [value for value in series.values if value is not None] * 2
            ends = range(len(series.values), len(twice), DAY_STEP // STEP_SECONDS)
            means = (fmean(twice[end - length + 1 : end + 1]) for end in ends)
            day = [published_value(scale.of(mean) if scale else mean) for mean in means]
            labels = series.metric.get("app", ""), series.metric["device"]
            yield (cluster.name, scorer["metadata"]["name"], *labels), day


FailedRounds = dict[tuple[str, str], float]
"""By score and cluster."""


def round_curves(
    registries: Mapping[str, CollectorRegistry], time: float
) -> tuple[dict[tuple[str, str], float], FailedRounds]:
    """Return values by score and curve at a time in unix seconds, and failed rounds.

    `registries`: the metrics of agents by cluster.
    """
    failed, rounds = defaultdict[tuple[str, str], float](float), defaultdict[str, float](float)
    calls = defaultdict[str, defaultdict[float, float]](lambda: defaultdict(float))
    found, ratios = dict[tuple[str, str], float](), defaultdict[str, list[float]](list)
    for cluster, registry in registries.items():
        for one in (sample for family in registry.collect() for sample in family.samples):
            score, value = one.labels.get("score_name", ""), one.value
            match one.name.removeprefix("dynamic_scoring_"):
                case "requests_total":
                    rounds[score] += value
                    failed[score, cluster] += value * (one.labels["status"] != "success")
                case "api_request_seconds_bucket":
                    calls[score][float(one.labels["le"])] += value
                case "last_success_timestamp_seconds":
                    found[score, "age"] = max(found.get((score, "age"), 0.0), time - value)
                case "forecast_error_ratio":
                    ratios[score].append(value)
    for score in (name for name in rounds if rounds[name]):
        lost = sum(count for key, count in failed.items() if key[0] == score)
        found[score, "failed"] = lost / rounds[score]
        found[score, "latency"] = _latency(calls[score])
    found |= {(score, "skill"): 1 - median(own) for score, own in ratios.items()}
    return found, {key: count for key, count in failed.items() if count}


def _latency(calls: Mapping[float, float]) -> float:
    """Return the seconds in which 90% of calls end, of cumulative buckets; NaN: unknown."""
    wanted = 0.9 * max(calls.values(), default=0.0)
    for lower, upper in pairwise([0.0, *sorted(calls)]):
        if calls[upper] >= wanted > 0 and math.isfinite(upper):
            below = calls.get(lower, 0.0)
            return lower + (upper - lower) * (wanted - below) / (calls[upper] - below or 1.0)
    return math.nan
