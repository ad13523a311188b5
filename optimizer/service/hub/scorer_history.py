"""How scorers did over time, as the metrics of the agents tell: a few curves for each scorer."""

import asyncio
from collections.abc import Iterable, Mapping

from pydantic import Field

from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.names import score_object_name
from optimizer.service.hub.score_history import (
    BAND,
    FLEET_POINTS,
    HistoryWindow,
    Point,
    PrometheusHistory,
    either,
    read_series,
)
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.request_problem import RequestProblem

MAX_SCORERS = 100
"""Scorers of one answer: more panels than a person compares."""

MAX_FAILING = 5
"""Clusters of one scorer, those with the most failed rounds."""


class FailedRounds(ResultPart):
    """Rounds of a scorer that failed on a cluster in the time asked for."""

    cluster: Name = Field(description="The external label `cluster`; empty: Prometheus has none.")
    rounds: float


class ScorerHistory(ResultPart):
    """The curves of a scorer: points of Unix seconds and value; null: there was no value."""

    score: Name = Field(description="Name of its AddOnPlacementScores.")
    median: tuple[Point, ...] = Field(
        (), description="Over the clusters, of the mean of their entries."
    )
    low: tuple[Point, ...] = Field((), description="10th percentile of the same.")
    high: tuple[Point, ...] = Field((), description="90th percentile of the same.")
    age: tuple[Point, ...] = Field(
        (),
        description="Seconds since the last good round, on the cluster where that is longest"
        " ago. Negative: the clock of an agent is ahead of Prometheus'.",
    )
    failed: tuple[Point, ...] = Field(
        (), description="Failed rounds of all clusters, as a share of 1."
    )
    latency: tuple[Point, ...] = Field(
        (), description="Seconds in which 90% of the scoring calls end."
    )
    skill: tuple[Point, ...] = Field(
        (),
        description="1 minus the error of forecasts divided by that of the last value, median"
        " over the clusters; 0 or less: the last value is as good.",
    )
    failing: tuple[FailedRounds, ...] = Field(
        (), description="The clusters where the most rounds failed."
    )


class ScorerHistories(ResultPart):
    """The response of GET /scorers/history."""

    hours: int
    until: int = Field(description="Unix seconds at which the time asked for ends.")
    step_seconds: int
    scorers: tuple[ScorerHistory, ...] = Field(description="By score.")
    omitted_scorers: int
    missing: tuple[Sentence, ...] = Field((), description="Why some curves are not there, if so.")
    warnings: tuple[Sentence, ...] = Field((), description="What Prometheus says of its answers.")


_ROUNDS = "dynamic_scoring_requests_total"
_FAILED = f'{_ROUNDS}{{status!="success"}}'


def scores_query() -> str:
    """Return the PromQL query of the values of all scores, over the clusters."""
    means = "avg by (ds_cluster, ds_score_name) (dynamic_score)"
    named = f'label_replace({means}, "score_name", "$1", "ds_score_name", "(.*)")'
    return either(
        {_BANDS[name]: f"quantile by (score_name) ({at}, {named})" for name, at in BAND.items()}
    )


_BANDS = {"p10": "low", "p50": "median", "p90": "high"}


def rounds_query(window: HistoryWindow) -> str:
    """Return the PromQL query of how the rounds of all scorers went."""
    over = f"[{max(900, 2 * window.step)}s]"
    every = f"sum by (score_name) (rate({_ROUNDS}{over}))"
    calls = f"rate(dynamic_scoring_api_request_seconds_bucket{over})"
    ratio = "dynamic_scoring_forecast_error_ratio"
    last = "dynamic_scoring_last_success_timestamp_seconds"
    return either(
        {
            "age": f"max by (score_name) (time() - {last})",
            "failed": f"(sum by (score_name) (rate({_FAILED}{over})) or 0 * {every}) / {every}",
            "latency": f"histogram_quantile(0.9, sum by (score_name, le) ({calls}))",
            "skill": f"1 - quantile by (score_name) (0.5, {ratio})",
        }
    )


def failing_query(hours: int) -> str:
    """Return the PromQL query of the clusters where the most rounds of each scorer failed."""
    failed = f"sum by (score_name, cluster) (increase({_FAILED}[{hours}h])) > 0"
    return f"topk by (score_name) ({MAX_FAILING}, {failed})"


async def scorer_histories(
    prometheus: PrometheusHistory, hours: int, now: float
) -> ScorerHistories | RequestProblem:
    """Return the curves of all scorers until `now` (Unix seconds), or why there are none at all."""
    window, instant = HistoryWindow(hours, now, FLEET_POINTS), HistoryWindow(hours, now, 0)
    answers = await asyncio.gather(
        prometheus.ask(scores_query(), window),
        prometheus.ask(rounds_query(window), window),
        prometheus.ask(failing_query(hours), instant),
    )
    problems = [item for item in answers if isinstance(item, RequestProblem)]
    if len(problems) == len(answers):
        return problems[0]
    found = [FetchedSeries() if isinstance(it, RequestProblem) else it for it in answers]
    scores, rounds, failing = (item.series for item in found)
    curves = await asyncio.to_thread(_curves, window, (*scores, *rounds))
    worst = _failing(instant, failing)
    listed = sorted({*curves, *worst})
    return ScorerHistories(
        hours=hours,
        until=int(now),
        step_seconds=window.step,
        scorers=tuple(
            ScorerHistory(score=name, **curves.get(name, {}), failing=tuple(worst.get(name, ())))
            for name in listed[:MAX_SCORERS]
        ),
        omitted_scorers=max(0, len(listed) - MAX_SCORERS),
        missing=tuple(dict.fromkeys(item.detail for item in problems)),
        warnings=tuple(dict.fromkeys(said for item in found for said in item.warnings)),
    )


def _curves(
    window: HistoryWindow, found: Iterable[EncodedSeries]
) -> Mapping[str, dict[str, tuple[Point, ...]]]:
    """Return the points by score and curve; a curve that was not asked for is left out."""
    kept: dict[str, dict[str, tuple[Point, ...]]] = {}
    for one in found:
        labels, points = read_series(window, one)
        if labels.get("of") in _CURVES:
            kept.setdefault(_score(labels), {})[labels["of"]] = points
    return kept


_CURVES = frozenset(("low", "median", "high", "age", "failed", "latency", "skill"))


def _failing(
    window: HistoryWindow, found: Iterable[EncodedSeries]
) -> Mapping[str, list[FailedRounds]]:
    kept: dict[str, list[FailedRounds]] = {}
    for labels, points in (read_series(window, one) for one in found):
        for _, rounds in points[-1:]:
            if rounds:
                failed = FailedRounds(cluster=labels.get("cluster", ""), rounds=rounds)
                kept.setdefault(_score(labels), []).append(failed)
    return {
        name: sorted(of, key=lambda item: (-item.rounds, item.cluster))[:MAX_FAILING]
        for name, of in kept.items()
    }


def _score(labels: Mapping[str, str]) -> str:
    return score_object_name(labels.get("score_name", ""))
