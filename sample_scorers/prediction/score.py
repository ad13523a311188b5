# SPDX-License-Identifier: Apache-2.0
"""The config, and the score: a forecast by the last season. Change this file.

The seasonal naive forecast is the method to beat (Hyndman and Athanasopoulos, "Forecasting:
Principles and Practice", section 5.2): replace `SeriesHistory.forecast` by yours.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil, floor
from statistics import fmean

from ..scoring_service.application import ServedScorer
from ..scoring_service.wire import (
    CPU_CORES_BY_POD,
    PROMETHEUS_URL,
    DeclaredForecast,
    PrometheusSource,
    RangeQuery,
    ScorerConfig,
    ScoreResult,
    Scoring,
    ScoringParams,
    Series,
    TruthQuery,
)

WINDOW_SECONDS = 3600
STEP_SECONDS = 30

HORIZON_SECONDS = 600
"""Seconds after the last sample whose mean is forecast."""

QUANTILES = (0.1, 0.9)
"""Probabilities of the quantiles in a result."""

FEWEST_ERRORS = 9
"""Past errors from which one in ten is known on either side."""

MOST_ERRORS = 100
"""Past horizons that are judged, the newest ones: so the work is bounded."""


def config(
    prometheus_url: str = PROMETHEUS_URL,
    query: str = CPU_CORES_BY_POD,
    window: int = WINDOW_SECONDS,
    step: int = STEP_SECONDS,
    horizon: int = HORIZON_SECONDS,
) -> ScorerConfig:
    """Return `/config`: the query that the agent runs, and what the scores forecast.

    `window` and `horizon` are the seconds of history and of the forecast. Agents run the query for
    the truth when the horizon is over, and report how good the forecasts were.
    """
    truth = TruthQuery(query=f"avg_over_time(({query})[{horizon}s:{step}s])")
    return ScorerConfig(
        name="simple-prediction-scorer",
        description="A simple prediction score for time series data",
        source=PrometheusSource(
            host=prometheus_url, params=RangeQuery(query=query, range=window, step=step)
        ),
        scoring=Scoring(params=ScoringParams(name="simple_prediction_score", interval=30)),
        forecast=DeclaredForecast(horizon=horizon, truth=truth),
    )


def score(
    series: Sequence[Series], horizon: int = HORIZON_SECONDS, season: int | None = None
) -> list[ScoreResult]:
    """Return the forecast of each series, with its labels. Without a finite sample it has none.

    `season` is in seconds. A result has quantiles if FEWEST_ERRORS past horizons can be judged.
    """
    results = []
    for each in series:
        if points := each.finite():
            past = SeriesHistory(points, horizon, season)
            value = past.forecast(points[-1][0])
            if value is not None:
                results.append(
                    ScoreResult(metric=each.metric, score=value, quantiles=past.quantiles(value))
                )
    return results


class SeriesHistory:
    """The samples of one series, oldest first, and forecasts of its mean over a horizon."""

    def __init__(
        self, points: Sequence[tuple[float, float]], horizon: int, season: int | None
    ) -> None:
        self._times = [time for time, _ in points]
        self._values = [value for _, value in points]
        self._horizon = horizon
        self._season = season

    def forecast(self, now: float) -> float | None:
        """Return the forecast at a time, from what was known then: the same time of last season.

        Without a season in the history, it is the mean of the last horizon.
        """
        if self._season:
            then = now - self._season * ceil(self._horizon / self._season)
            if then >= self._times[0]:
                last = self._mean(then, then + self._horizon)
                if last is not None:
                    return last
        return self._mean(now - self._horizon, now)

    def quantiles(self, value: float) -> list[tuple[float, float]] | None:
        """Return quantiles of the truth by the errors of past forecasts; None if there are few."""
        errors = sorted(self._errors())
        if len(errors) < FEWEST_ERRORS:
            return None
        low, high = (
            errors[rank(probability * (len(errors) + 1)) - 1]
            for probability, rank in zip(QUANTILES, (floor, ceil), strict=True)
        )
        # What was never negative is not forecast to be.
        bounds = max(value + min(low, 0), min(*self._values, 0)), value + max(high, 0)
        return list(zip(QUANTILES, bounds, strict=True))

    def _errors(self) -> list[float]:
        """Return truth - forecast of the past horizons, which do not overlap."""
        end, found = self._times[-1], []
        for ago in range(1, MOST_ERRORS + 1):
            now = end - ago * self._horizon
            if now < self._times[0]:
                break
            forecast, truth = self.forecast(now), self._mean(now, now + self._horizon)
            if forecast is not None and truth is not None:
                found.append(truth - forecast)
        return found

    def _mean(self, begin: float, end: float) -> float | None:
        """Return the mean of the samples after `begin` until `end`; None without any."""
        first, last = bisect_right(self._times, begin), bisect_right(self._times, end)
        return fmean(self._values[first:last]) if first < last else None


def scorer(
    served: ScorerConfig, horizon: int = HORIZON_SECONDS, season: int | None = None
) -> ServedScorer:
    """Return what is served under a config."""
    return ServedScorer(served, lambda series: score(series, horizon, season))
