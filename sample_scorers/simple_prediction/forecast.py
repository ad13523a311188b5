"""A forecast of one series' mean over the next horizon: exponential smoothing, pure numpy.

Simple smoothing and Holt's (damped) trend compete with several smoothing factors on the series
itself: whichever would have foretold the series' own past horizons best, by mean absolute error,
foretells the next one. There is no season, since an hour's window cannot show one.

Source: Gardner, "Exponential smoothing: the state of the art, part II" (2006), in the
error-correction form of Hyndman et al., "Forecasting with Exponential Smoothing" (2008).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_BUCKETS = 240
"""A longer window is averaged into this many steps, so that the work stays bounded."""

# Level, trend and damping factors, one column per candidate; the first wins ties.
_FLAT = [(alpha, 0.0, 1.0) for alpha in (0.4, 0.2, 0.1, 0.05, 0.8)]
_TREND = [(a, b, phi) for a in (0.4, 0.2, 0.8) for b in (0.1, 0.3) for phi in (0.9, 1.0)]
_ALPHA, _BETA, _PHI = np.array(_FLAT + _TREND).T


def forecast_mean(times: Floats, values: Floats, horizon: float) -> float:
    """Forecast the mean over `horizon` seconds after the last sample.

    `times` (unix seconds) and `values` are finite, not empty and in any order; gaps, equal times
    and uneven steps are allowed. It looks at most half as far ahead as the window is long, and
    stays within one range of the window's values, and at or above 0 where they all are.
    """
    grid, step = regular(times, values)
    span = (len(grid) - 1) * step
    ahead = max(1, round(min(horizon, span / 2) / step)) if len(grid) > 1 else 1
    forecasts = _horizon_means(grid, ahead)
    best = int(np.argmin(_errors(forecasts, grid, ahead)))
    return _within_reason(float(forecasts[-1, best]), values)


def regular(times: Floats, values: Floats) -> tuple[Floats, float]:
    """Average the samples into equal steps: (grid, seconds), NaN where a step has no sample.

    The step is the median distance of samples, and never makes more than MAX_BUCKETS steps.
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
    """Forecast, after each step, the mean of the next `ahead` steps: (steps, candidates)."""
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
    """Return each candidate's mean absolute error over the horizons that have already passed."""
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
