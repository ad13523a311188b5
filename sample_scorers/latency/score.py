# SPDX-License-Identifier: Apache-2.0
"""The config, and the score: a pure function of the series of blackbox probes.

Source of the metrics: https://github.com/prometheus/blackbox_exporter
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from statistics import fmean

from ..scoring_service.application import ServedScorer
from ..scoring_service.wire import (
    PROMETHEUS_URL,
    Labels,
    Normalize,
    PrometheusSource,
    RangeQuery,
    ScoreRange,
    ScorerConfig,
    ScoreResult,
    Scoring,
    ScoringParams,
    Series,
)

SUCCESS = "probe_success"
"""The metric that is 0 at the time of a probe that failed."""

QUANTILE = 0.95
"""Share of the probes that were not slower than the score."""

LIMIT_MS = 2000.0
"""Milliseconds of a probe that failed. Slower probes count as failed, because few users wait."""

CLUSTER = "cluster"
"""The app label of the mean of all apps."""

PROBES = (
    "max by (__name__, app, instance) (probe_duration_seconds);"
    f"min by (__name__, app, instance) ({SUCCESS})"
)
"""PromQL for the duration and the success of each probe of the blackbox exporter: two queries."""

Target = frozenset[tuple[str, str]]


def config(prometheus_url: str = PROMETHEUS_URL, query: str = PROBES) -> ScorerConfig:
    """Return `/config`: lower is better, so the agent turns the scores round."""
    return ScorerConfig(
        name="latency-scorer",
        description="The 95th percentile of probes over the last 15 minutes",
        display_name="Latency",
        unit="ms",
        direction="LowerIsBetter",
        range=ScoreRange(min=0, max=LIMIT_MS),
        source=PrometheusSource(
            host=prometheus_url, params=RangeQuery(query=query, range=900, step=30)
        ),
        scoring=Scoring(
            params=ScoringParams(name="latency_score", interval=30),
            # LIMIT_MS becomes -100, the least that OCM allows.
            normalize=Normalize(min=0, max=LIMIT_MS / 2, invert=True),
        ),
    )


def score(series: Sequence[Series]) -> list[ScoreResult]:
    """Return the latency of each app, and the mean of all apps, in milliseconds.

    An app is the label `app` of a series, or else its `instance`; the series of one app are taken
    together. A probe that failed counts as LIMIT_MS, because a refused connection is fast.
    """
    failures = _failures(series)
    probes = defaultdict[str, list[float]](list)
    for each in series:
        if each.metric.get("__name__") != SUCCESS:
            app = each.metric.get("app") or each.metric.get("instance", "")
            probes[app] += _milliseconds(each, failures.get(_target(each.metric), frozenset()))
    by_app = {app: _quantile(found) for app, found in probes.items() if found}
    overall = {CLUSTER: fmean(by_app.values())} if by_app else {}
    return [
        ScoreResult(metric={"app": app}, score=latency)
        for app, latency in (*overall.items(), *by_app.items())
    ]


def scorer(prometheus_url: str = PROMETHEUS_URL, query: str = PROBES) -> ServedScorer:
    """Return what is served; agents run the query on `prometheus_url`."""
    return ServedScorer(config(prometheus_url, query), score)


def _failures(series: Iterable[Series]) -> Mapping[Target, frozenset[float]]:
    """Return the times at which the probes of each target failed."""
    return {
        _target(each.metric): frozenset(time for time, value in each.finite() if value == 0)
        for each in series
        if each.metric.get("__name__") == SUCCESS
    }


def _target(labels: Labels) -> Target:
    return frozenset((name, value) for name, value in labels.items() if name != "__name__")


def _milliseconds(series: Series, failed: frozenset[float]) -> list[float]:
    return [
        LIMIT_MS if time in failed else min(1000 * seconds, LIMIT_MS)
        for time, seconds in series.finite()
        if seconds >= 0
    ]


def _quantile(values: Sequence[float]) -> float:
    """Return the smallest value that at least QUANTILE of the values do not exceed."""
    return sorted(values)[ceil(QUANTILE * len(values)) - 1]
