# SPDX-License-Identifier: Apache-2.0
"""Forecasts the mean of series over the next horizon, with calibrated quantiles, in pure numpy.

Members (smoothed levels, damped trends, the running mean, and seasons where the window shows one)
are combined with weights by their past errors. The quantiles are those of the combination's own
errors at past steps (rolling origins), widened for their small number. Arrays are [step, series].

Sources: Bates and Granger, "The combination of forecasts" (1969); Vovk, Gammerman and Shafer,
"Algorithmic Learning in a Random World" (2005), for conformal prediction; Tashman, "Out-of-sample
tests of forecasting accuracy" (2000), for rolling origins.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .members import REVERTING, Flags, Floats, Steps, periods, seasonal_weights, smoothing_weights

MOST_ORIGINS = 64
"""Past steps whose forecasts are judged, evenly spaced: more cost time, and overlap more."""

_WARM_UP = 10
"""Steps before the first forecast that is judged, at most a quarter of the window."""

_ERROR_POWER = 4
"""Weight of a member: 1 / (its mean absolute error to this power). Of 1, 2, 4, 8 and 16, 4 has the
smallest error over the first halves of the recordings."""

_PRIOR = 0.25
"""Weight of "no pull away from the running mean", as a share of the variance of a level."""

_CACHED_WEIGHTS = 96
"""Matrices that are kept: one for each length, horizon and period in use, at most 1.7 MB each."""

_SERIES_AT_ONCE = 128
"""Series of one pass: their errors fit into a processor's cache."""

_MEDIAN = 0.5


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts of several series.

    `errors` are [origin, series], ascending, with NaN at the end. `low` and `high` bound what is
    within reason. `period` is the season in steps, 0 without one. `horizons` is the number of
    horizons in the window that do not overlap.
    """

    mean: Floats
    errors: Floats
    low: Floats
    high: Floats
    period: Steps
    horizons: float

    @property
    def known(self) -> Steps:
        """The number of errors of each series."""
        count: Steps = (~np.isnan(self.errors)).sum(axis=0)
        return count

    def quantile(self, probability: float) -> Floats:
        """Return the value that the truth exceeds with the chance 1 - `probability`.

        A central interval of level c uses the quantiles of the errors for c (1 + 1 / horizons).
        This is the correction of split conformal prediction for a finite sample. Its size is the
        number of horizons, because errors of horizons that overlap depend on each other. A series
        without errors has the bound of what is within reason.
        """
        if probability == _MEDIAN:
            return self.mean
        above = probability > _MEDIAN
        widened = _MEDIAN + (probability - _MEDIAN) * self._correction
        rank = (np.ceil if above else np.floor)(widened * (self.known + 1)) - 1
        error = self._error(np.clip(rank, 0, np.maximum(self.known - 1, 0)).astype(np.intp))
        if not 0 <= widened <= 1:  # too few horizons to have shown such an error
            error *= self._correction
        # Errors of one sign only, as of a short series, must not move a bound across the mean.
        found = self.mean + (np.maximum(error, 0) if above else np.minimum(error, 0))
        extreme = self.high if above else self.low
        bounded: Floats = np.where(self.known > 0, np.clip(found, self.low, self.high), extreme)
        return bounded

    def exceedance(self, threshold: float) -> Floats:
        """Return the chance that the truth exceeds a threshold: the inverse of `quantile`."""
        above = (self.mean + self.errors > threshold).sum(axis=0)
        share = np.divide(above, self.known, out=np.full(len(above), _MEDIAN), where=self.known > 0)
        chance = _MEDIAN + (share - _MEDIAN) / self._correction
        return np.where(threshold >= self.high, 0.0, np.where(threshold < self.low, 1.0, chance))

    @property
    def _correction(self) -> float:
        return 1 + 1 / self.horizons

    def _error(self, place: Steps) -> Floats:
        if not len(self.errors):
            return np.zeros_like(self.mean)
        error: Floats = np.take_along_axis(self.errors, place[None], axis=0)[0]
        return np.nan_to_num(error)


def forecast(grid: Floats, ahead: int) -> Forecasts:
    """Return forecasts of the mean of the next `ahead` steps of each series.

    `grid` is [step, series] with equal steps; a step without a sample is NaN, and each series has
    at least one. `ahead` is at most half of the steps, unless there is only one. With `low` and
    `high` the smallest and largest value of a series, its forecasts lie in
    [2 low - high, 2 high - low], and are not negative unless a value is.
    """
    steps = len(grid)
    seen = ~np.isnan(grid)
    smallest, largest = np.nanmin(grid, axis=0), np.nanmax(grid, axis=0)
    spread = largest - smallest
    # Between 0 and 1, so that a constant has no rounding errors and 1e100 no overflow.
    unit = np.where(spread > 0, spread, 1.0)
    values = (_filled(grid, seen) - smallest) / unit
    judged = _judged(seen, ahead)
    mean, past = np.empty(values.shape[1]), np.empty_like(judged)
    period = periods(values, (steps - ahead) // 2)
    for length, rows in _alike(period):
        judged[_origins(steps, ahead) < length, rows[:, None]] = 0
        found = _judge(values[:, rows], judged[:, rows], ahead, length)
        mean[rows], past[:, rows] = _combined(*found)
    past[judged == 0] = np.nan
    floor = np.where(smallest >= 0, np.maximum(smallest - spread, 0.0), smallest - spread)
    return Forecasts(
        mean=np.clip(smallest + unit * mean, floor, largest + spread),
        errors=np.sort(unit * past, axis=0),
        low=floor,
        high=largest + spread,
        period=period,
        horizons=max(steps - ahead, 1) / ahead,
    )


def _filled(grid: Floats, seen: Flags) -> Floats:
    """Return the series without holes: a hole has the last value before it, or the first one."""
    if seen.all():
        return grid
    steps = np.arange(len(grid))[:, None]
    last = np.maximum(np.maximum.accumulate(np.where(seen, steps, 0), axis=0), seen.argmax(axis=0))
    return np.take_along_axis(grid, last, axis=0)


def _origins(steps: int, ahead: int) -> Steps:
    """Return the steps after which past forecasts were made, ascending; the last is the newest."""
    first = min(_WARM_UP, steps // 4)
    apart = max(1, -(-(steps - ahead - first) // MOST_ORIGINS))
    return np.arange(steps - ahead - 1, first - 1, -apart)[::-1]


def _judged(seen: Flags, ahead: int) -> Floats:
    """Return 1 for each origin and series whose next `ahead` steps have samples in half of them."""
    origins = _origins(len(seen), ahead)
    if seen.all():
        return np.ones((len(origins), seen.shape[1]))
    count = np.cumsum(np.concatenate([np.zeros((1, seen.shape[1])), seen]), axis=0)
    samples = count[origins + 1 + ahead] - count[origins + 1]
    return np.where(2 * samples >= ahead, 1.0, 0.0)


def _members(weights: Callable[..., Floats], values: Floats, *window: int) -> tuple[Floats, Floats]:
    """Return the errors [origin, member, series] and the newest forecasts [member, series]."""
    matrix = _error_weights(weights, *window)
    found = (matrix.reshape(-1, len(values)) @ values).reshape(*matrix.shape[:2], -1)
    return found[:-1], found[-1]


@lru_cache(_CACHED_WEIGHTS)
def _error_weights(weights: Callable[..., Floats], steps: int, ahead: int, *more: int) -> Floats:
    """Return the weights of the values in each past error, and in the newest forecast."""
    origins = _origins(steps, ahead)
    truth = np.zeros((len(origins), steps))
    for row, origin in enumerate(origins):
        truth[row, origin + 1 : origin + 1 + ahead] = 1 / ahead
    forecasts = weights(steps, ahead, *more)
    return np.concatenate([truth[:, None] - forecasts[origins], forecasts[-1:]])


def _alike(period: Steps) -> Iterator[tuple[int, Steps]]:
    """Yield each period, and the series that have it, not too many at once."""
    for length in np.unique(period).tolist():
        rows = np.flatnonzero(period == length)
        for start in range(0, len(rows), _SERIES_AT_ONCE):
            yield length, rows[start : start + _SERIES_AT_ONCE]


def _judge(values: Floats, judged: Floats, ahead: int, period: int) -> tuple[Floats, Floats]:
    """Return the errors and the newest forecasts of all members, for series with one period."""
    errors, last = _members(smoothing_weights, values, len(values), ahead)
    errors *= judged[:, None]
    errors, last = _with_reverting(errors, last)
    if not period:
        return errors, last
    more, newest = _members(seasonal_weights, values, len(values), ahead, period)
    more *= judged[:, None]
    return np.concatenate([errors, more], axis=1), np.concatenate([last, newest])


def _with_reverting(errors: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Add members that lie between a level and the running mean, which is the last member.

    forecast = mean + b (level - mean), where b in [0, 1] is the least-squares fit to the past. b is
    0 for noise around a mean, and 1 for a load that stays where it went.
    """
    mean, level = errors[:, -1:], errors[:, REVERTING]
    distance = mean - level
    variance = np.einsum("oms,oms->ms", distance, distance) * (1 + _PRIOR)
    covariance = np.einsum("os,oms->ms", mean[:, 0], distance)
    fit = np.divide(covariance, variance, out=np.zeros_like(variance), where=variance > 0)
    fit = np.clip(fit, 0, 1)
    pulled = last[-1:] + fit * (last[REVERTING] - last[-1:])
    return np.concatenate([errors, mean - fit * distance], axis=1), np.concatenate([last, pulled])


def _combined(errors: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Return the combination of the newest forecasts, and the errors of the same combination."""
    size = np.abs(errors).sum(axis=0)
    best = size.min(axis=0)
    # Where a member made no error, only such members count.
    share = np.divide(best, size, out=np.ones_like(size), where=size > 0)
    weight = share**_ERROR_POWER
    weight /= weight.sum(axis=0)
    return (weight * last).sum(axis=0), np.einsum("ms,oms->os", weight, errors)
