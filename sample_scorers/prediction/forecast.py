"""Forecasts the mean of a series over the next horizon by exponential smoothing, in pure numpy.

The candidates are simple exponential smoothing and Holt's (damped) trend, each with several
smoothing factors. The candidate with the smallest mean absolute error over the past horizons of the
same series makes the forecast. There is no season, because a window of an hour can't show one.

Source: Gardner, "Exponential smoothing: the state of the art, part II" (2006), in the
error-correction form of Hyndman et al., "Forecasting with Exponential Smoothing" (2008).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_BUCKETS = 240
"""Steps of a window; a longer window is averaged, so that the work stays bounded."""

# Level (alpha), trend (beta) and damping (phi) factors, a column for each candidate. On a tie the
# first candidate is used.
_FLAT = [(alpha, 0.0, 1.0) for alpha in (0.4, 0.2, 0.1, 0.05, 0.8)]
_TREND = [(a, b, phi) for a in (0.4, 0.2, 0.8) for b in (0.1, 0.3) for phi in (0.9, 1.0)]
_ALPHA, _BETA, _PHI = np.array(_FLAT + _TREND).T


def forecast_mean(times: Floats, values: Floats, horizon: float) -> float:
    """Return the forecast mean over `horizon` seconds after the last sample.

    `times` (unix seconds) and `values` are finite, not empty and in any order. Gaps, equal times
    and uneven steps are allowed. The horizon is cut to half of the window. With `low` and `high`
    the smallest and largest value, the forecast lies in [2 low - high, 2 high - low], and is not
    negative unless a value is.
    """
    grid, step = regular(times, values)
    span = (len(grid) - 1) * step
    ahead = max(1, round(min(horizon, span / 2) / step)) if len(grid) > 1 else 1
    forecasts = _horizon_means(grid, ahead)
    best = int(np.argmin(_errors(forecasts, grid, ahead)))
    return _within_reason(float(forecasts[-1, best]), values)


def regular(times: Floats, values: Floats) -> tuple[Floats, float]:
    """Return the samples averaged into equal steps, and the step in seconds.

    A step without a sample is NaN. The step is the median distance of two samples, or longer, so
    that there are at most about MAX_BUCKETS steps.
    """
    start, end = float(times.min()), float(times.max())
    if start == end:
        return np.array([values.mean()]), 1.0
    step = max(float(np.median(np.diff(np.unique(times)))), (end - start) / MAX_BUCKETS)
    index = np.rint((times - start) / step).astype(np.intp)
    count = np.bincount(index)
    total = np.bincount(index, weights=values)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0), step


def _horizon_means(grid: Floats, ahead: int) -> Floats:
    """Return the forecast mean of the next `ahead` steps after each step: [step, candidate]."""
    growth = np.cumsum(_PHI[:, None] ** np.arange(1, ahead + 1), axis=1).mean(axis=1)
    level, trend = np.full_like(_ALPHA, grid[0]), np.zeros_like(_ALPHA)
    forecasts = np.empty((len(grid), len(_ALPHA)))
    for position, value in enumerate(grid):
        trend = _PHI * trend
        level = level + trend
        if not np.isnan(value):
            error = value - level
            level = level + _ALPHA * error
            trend = trend + _ALPHA * _BETA * error
        forecasts[position] = level + growth * trend
    return forecasts


def _errors(forecasts: Floats, grid: Floats, ahead: int) -> Floats:
    """Return the mean absolute error of each candidate over the past horizons."""
    seen = ~np.isnan(grid)
    total = np.concatenate([[0.0], np.cumsum(np.where(seen, grid, 0.0))])
    count = np.concatenate([[0], np.cumsum(seen)])
    totals = (total[ahead:] - total[:-ahead])[1:]
    counts = (count[ahead:] - count[:-ahead])[1:]
    known = counts > 0
    if not known.any():
        return np.zeros_like(_ALPHA)
    actual = totals[known] / counts[known]
    past: Floats = np.abs(forecasts[: len(counts)][known] - actual[:, None]).mean(axis=0)
    return past


def _within_reason(forecast: float, values: Floats) -> float:
    low, high = float(values.min()), float(values.max())
    spread = high - low
    floor = max(low - spread, 0.0) if low >= 0 else low - spread
    return min(max(forecast, floor), high + spread)
