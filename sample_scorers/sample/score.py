# SPDX-License-Identifier: Apache-2.0
"""The config, and the score: a pure function of the series. Change this file."""

from collections.abc import Sequence
from statistics import fmean

from ..scoring_service.application import ServedScorer
from ..scoring_service.wire import (
    CPU_CORES_BY_POD,
    PROMETHEUS_URL,
    PrometheusSource,
    RangeQuery,
    ScorerConfig,
    ScoreResult,
    Scoring,
    ScoringParams,
    Series,
)

META = "my_something_meta_by_sample_scorer"


def config(prometheus_url: str = PROMETHEUS_URL) -> ScorerConfig:
    """Return `/config`: the query that the agent runs, and how often it asks for scores."""
    return ScorerConfig(
        name="sample-scorer",
        description="A sample score for time series data",
        source=PrometheusSource(
            host=prometheus_url, params=RangeQuery(query=CPU_CORES_BY_POD, range=3600, step=60)
        ),
        scoring=Scoring(params=ScoringParams(name="sample_my_score", interval=30)),
    )


def score(series: Sequence[Series]) -> list[ScoreResult]:
    """Return the mean of the finite samples of each series: the CPU cores used over the window.

    A result has the labels of its series, and `meta`. A series without a finite sample has none.
    """
    return [
        ScoreResult(metric={**each.metric, "meta": META}, score=fmean(value for _, value in points))
        for each in series
        if (points := each.finite())
    ]


def scorer(prometheus_url: str = PROMETHEUS_URL) -> ServedScorer:
    """Return what is served; agents run the query on `prometheus_url`."""
    return ServedScorer(config(prometheus_url), score)
