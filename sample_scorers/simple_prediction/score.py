"""The score: pure, data in and data out."""

from collections.abc import Sequence

import numpy as np

from ..wire import ScoreResult, Series
from .forecast import forecast_mean

HORIZON_SECONDS = 600.0


def score(series: Sequence[Series]) -> list[ScoreResult]:
    """Score each series by its forecast mean over the next ten minutes: here, CPU cores.

    The labels are handed on. A series without a finite sample gets no result.
    """
    return [
        ScoreResult(metric=each.metric, score=_forecast(points))
        for each in series
        if (points := each.finite())
    ]


def _forecast(points: list[tuple[float, float]]) -> float:
    times, values = np.array(points).T
    return forecast_mean(times, values, HORIZON_SECONDS)
