# SPDX-License-Identifier: Apache-2.0
"""Series as arrays of equal steps, their season, and the members of the combined forecast.

One pass forecasts all series whose arrays are alike. A *member* is one method with fixed factors.
All members are linear in the values of a series, and their weights add up to 1. So the recursion
runs once, over the unit vectors, and the forecasts of all series are one product of matrices.

Source: Gardner, "Exponential smoothing: the state of the art, part II" (2006), in the
error-correction form of Hyndman et al., "Forecasting with Exponential Smoothing" (2008).
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Steps = NDArray[np.intp]
Flags = NDArray[np.bool_]

_FLAT = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
_TREND = ((0.4, 0.1, 0.9), (0.8, 0.1, 0.9), (0.2, 0.1, 0.95), (0.8, 0.5, 1.0))
_ALPHA, _BETA, _PHI = np.array([*((alpha, 0.0, 1.0) for alpha in _FLAT), *_TREND]).T[:, :, None]
"""Level, trend and damping factors, a row for each member."""

REVERTING = slice(1, 5)
"""Members that are also pulled towards the running mean: levels of medium memory."""


def smoothing_weights(steps: int, ahead: int) -> Floats:
    """Return the weights of the values in the forecast mean of the `ahead` steps after each step.

    The axes are [step, member, value]; the last member is the running mean.
    """
    values = np.eye(steps)
    members = len(_ALPHA)
    forecasts = np.empty((steps, members + 1, steps))
    growth = np.cumsum(_PHI ** np.arange(1, ahead + 1), axis=1).mean(axis=1)[:, None]
    level = np.broadcast_to(values[0], (members, steps)).copy()
    trend, mean = np.zeros((members, steps)), np.zeros(steps)
    for step, value in enumerate(values):
        mean = mean + (value - mean) / (step + 1)
        trend = _PHI * trend
        level = level + trend
        error = value - level
        # While values are few, a flat level is their mean: the first one has no special weight.
        level = level + np.where(_BETA > 0, _ALPHA, np.maximum(_ALPHA, 1 / (step + 1))) * error
        trend = trend + _ALPHA * _BETA * error
        forecasts[step, :-1] = level + growth * trend
        forecasts[step, -1] = mean
    return forecasts


MOST_STEPS = 300
"""Steps of a window; a longer window is averaged, so that the work stays bounded."""


_LENGTHS = (*range(24), *range(24, 96, 4), *range(96, MOST_STEPS + 1, 12))
"""Lengths of windows. Methods are prepared for each length, so there must not be too many."""


@dataclass(frozen=True, slots=True)
class Window:
    """The samples of one series as means of equal steps, NaN for a step without a sample.

    `step` is in seconds. `ahead` is the number of steps to forecast, at most half of the window,
    and `end` the time of the last step in unix seconds.
    """

    values: Floats
    step: float
    ahead: int
    end: float

    @property
    def horizon(self) -> float:
        """The seconds to forecast."""
        return self.ahead * self.step


def window(points: Sequence[tuple[float, float]], horizon: float) -> Window:
    """Return the window of samples (unix seconds, number); there is at least one, in any order.

    The oldest steps are left out, at most one in seven, so that windows have one of few lengths.
    """
    times, values = np.array(points).T
    grid, step = regular(times, values)
    grid = grid[-_LENGTHS[bisect(_LENGTHS, len(grid)) - 1] :]
    length = (len(grid) - 1) * step
    ahead = max(1, round(min(horizon, length / 2) / step)) if len(grid) > 1 else 1
    return Window(grid, step, ahead, float(times.max()))


def regular(times: Floats, values: Floats) -> tuple[Floats, float]:
    """Return the samples averaged into equal steps, and the step in seconds.

    A step without a sample is NaN. The step is the median distance of two samples, or longer, so
    that there are at most about MOST_STEPS steps.
    """
    start, end = float(times.min()), float(times.max())
    if start == end:
        return np.array([values.mean()]), 1.0
    step = max(float(np.median(np.diff(np.unique(times)))), (end - start) / MOST_STEPS)
    index = np.rint((times - start) / step).astype(np.intp)
    count = np.bincount(index)
    total = np.bincount(index, weights=values)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0), step


def alike(windows: Sequence[Window]) -> list[list[int]]:
    """Return the places of the windows that one array can hold: with equal sizes and horizons."""
    groups: dict[tuple[int, int], list[int]] = {}
    for place, one in enumerate(windows):
        groups.setdefault((len(one.values), one.ahead), []).append(place)
    return list(groups.values())


_PROMINENCE = 0.3
"""How far the autocorrelation has to rise again after its lowest value, to be a season."""

_STANDARD_ERRORS = 4.0
"""How many standard errors of white noise its autocorrelation has to exceed."""

_SHORTEST = 4
"""Steps: a shorter season is noise at the steps of a scorer."""

_DISTANCE_GAIN = 0.2
"""Smoothing factor of the distance of a series from its last season."""


def periods(values: Floats, longest: int) -> Steps:
    """Return the period of each series in steps, at most `longest`; 0 without a season.

    `values` are [step, series]. The period is the highest peak of the autocorrelation, after the
    line through the series is removed.
    """
    steps = len(values)
    if longest <= _SHORTEST:
        return np.zeros(values.shape[1], np.intp)
    correlation = _autocorrelation(_without_line(values), longest + 2)
    lowest = np.minimum.accumulate(correlation, axis=0)[1:-1]
    before, inner, after = correlation[:-2], correlation[1:-1], correlation[2:]
    peaks = (inner >= before) & (inner >= after) & (inner - lowest >= _PROMINENCE)
    peaks &= inner > _noise(steps, len(inner))
    peaks[: _SHORTEST - 1] = False
    heights = np.where(peaks, inner, 0.0)
    return np.where(peaks.any(axis=0), heights.argmax(axis=0) + 1, 0)


def seasonal_weights(steps: int, ahead: int, period: int) -> Floats:
    """Return the weights of the values in forecasts of the mean of the `ahead` steps after each.

    The axes are [step, member, value]. Members: the last season and the mean of all seasons, each
    as it was and shifted by the recent distance from it. They are defined from the step `period`.
    """
    values = np.eye(steps)
    members = list[Floats]()
    for base in (values, _profile(values, period)):
        last = _last_season(base, ahead, period)
        members += [last, last + _distance(values, base, period)]
    return np.stack(members, axis=1)


def _profile(values: Floats, period: int) -> Floats:
    """Return the mean of each value and those at the same place of the seasons before."""
    profile = values.copy()
    for step in range(period, len(values)):
        before = profile[step - period]
        profile[step] = before + (values[step] - before) / (step // period + 1)
    return profile


def _last_season(base: Floats, ahead: int, period: int) -> Floats:
    """Return the mean of the next `ahead` steps, if they repeat the last season of `base`."""
    steps, total = np.arange(len(base)), np.zeros_like(base)
    for step in range(1, ahead + 1):
        seasons = -(-step // period)
        total += base[np.maximum(steps + step - period * seasons, 0)]
    return total / ahead


def _distance(values: Floats, base: Floats, period: int) -> Floats:
    """Return the smoothed distance of each value from its place in the season before."""
    distance = np.zeros_like(values)
    for step in range(period, len(values)):
        now = values[step] - base[step - period]
        distance[step] = distance[step - 1] + _DISTANCE_GAIN * (now - distance[step - 1])
    return distance


def _without_line(values: Floats) -> Floats:
    time = np.arange(len(values)) - (len(values) - 1) / 2
    centred = values - values.mean(axis=0)
    remaining: Floats = centred - time[:, None] * (time @ centred / (time @ time))
    return remaining


def _autocorrelation(values: Floats, lags: int) -> Floats:
    """Return the autocorrelation at the lags 0 to `lags` - 1, each divided by its own overlap."""
    steps = len(values)
    size = 2 * steps
    spectrum = np.fft.rfft(values.T, size, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    found = np.fft.irfft(power, size, axis=1)[:, :lags].T
    found *= (steps / (steps - np.arange(lags)))[:, None]
    scaled: Floats = np.divide(found, found[0], out=np.zeros_like(found), where=found[0] > 0)
    return scaled


def _noise(steps: int, lags: int) -> Floats:
    """Return, for the lags from 1, an autocorrelation that noise rarely has at any of them."""
    errors = _STANDARD_ERRORS / np.sqrt(steps - np.arange(1, lags + 1))
    return errors[:, None]
