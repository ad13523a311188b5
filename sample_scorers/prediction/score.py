"""The score: a pure function of the series."""

from collections.abc import Sequence

import numpy as np

from ..wire import ScoreResult, Series
from .forecast import forecast_mean

HORIZON_SECONDS = 600.0
"""Seconds after the last sample whose mean is forecast."""


def score(series: Sequence[Series]) -> list[ScoreResult]:
    """Return the forecast mean of each series over the next ten minutes: CPU cores.

    A result has the labels of its series. A series without a finite sample has none.
    """
    return [
        ScoreResult(metric=each.metric, score=_forecast(points))
        for each in series
        if (points := each.finite())
    ]


def _forecast(points: list[tuple[float, float]]) -> float:
    times, values = np.array(points).T
    return forecast_mean(times, values, HORIZON_SECONDS)
