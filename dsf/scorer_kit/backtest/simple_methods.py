"""Forecasts that need no scorer, and the seasons that they repeat.

A scorer is worth running if it is better than they are. A season is an hour, a day or a week if one
of them is, else another lag. It is judged by the autocorrelation of what is left of the series
without their largest shifts and without the mean of one season around each step: trends and longer
seasons don't count.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from dsf.scorer_kit.backtest.history import History, PastSeries


@dataclass(frozen=True, slots=True)
class Horizon:
    """Steps of the window, and steps from its end to that of what is forecast."""

    window: int
    ahead: int


@dataclass(frozen=True, slots=True)
class SimpleMethod:
    """A name, and a forecast of the truth after the step before `end`; None if it has none."""

    name: str
    forecast: Callable[[PastSeries, int], float | None]


def simple_methods(horizon: Horizon, season: int) -> list[SimpleMethod]:
    """Return the methods; `season` is in steps."""
    return [
        SimpleMethod("last value", lambda series, end: series.measured.last(end)),
        SimpleMethod(
            "window mean", lambda series, end: series.measured.mean(end - horizon.window, end)
        ),
        seasonal_naive("seasonal naive", horizon, season),
    ]


def seasonal_naive(name: str, horizon: Horizon, season: int) -> SimpleMethod:
    """Return the method that repeats the last season of that many steps."""
    return SimpleMethod(name, lambda series, end: _last_season(series, end, horizon.ahead, season))


def _last_season(series: PastSeries, end: int, ahead: int, season: int) -> float | None:
    """Return the mean of the same steps one season ago; a longer horizon repeats the season."""
    if series.truth is not None:
        same = end + ahead - 1 - season * -(-ahead // season)
        return series.truth[same] if same >= 0 else None
    if end < season:
        return None
    whole, rest = divmod(ahead, season)
    parts = [(whole * season, series.mean(end - season, end) if whole else 0.0)]
    parts.append((rest, series.mean(end - season, end - season + rest) if rest else 0.0))
    means = [(weight, mean) for weight, mean in parts if mean is not None]
    if len(means) < len(parts):
        return None
    return math.fsum(weight * mean for weight, mean in means) / ahead


NATURAL_SECONDS = (3_600, 86_400, 604_800)
"""Periods by which people and schedules work: an hour, a day, a week."""

SMALLEST_PEAK = 0.3
"""Autocorrelation from which a history is said to have a season."""

_SMALLEST_PEAK_OF_FEW = 0.45
"""The same, if the history has less than `_MANY_CYCLES`: series that drift repeat by chance."""

_MANY_CYCLES, _FEWEST_CYCLES, _FEWEST_CYCLES_OF_OTHERS = 4, 2, 3

_LARGE_SHARE = 0.5
"""Of the highest correlation: a day with such a share is a season, although weekdays differ."""

_NEAR_TOP = 0.9
"""Of the highest correlation nearby: a lag with less is on the slope of another season's peak."""

_MOST_SHIFTS = 2
"""Shifts of the level that are undone, the largest ones."""

_OUTLIER = 5.0
"""Median distances from the mean, beyond which a value counts as this far away."""

_SHORTEST = 4
"""Steps of the shortest season."""

_MOST_PEAKS = 20
"""Other lags that are looked at: those with the highest correlations."""

_MOST_SERIES = 10
"""Series in which a season is looked for: those that change most."""

_Floats = npt.NDArray[np.float64]


def found_seasons(history: History) -> list[int]:
    """Return the seasons that the series share, in steps; empty without one.

    The shortest natural one is first, and longer natural ones after which the series repeat follow.
    Nobody could have known them in advance, because they are looked for in the whole history:
    seasonal methods can only be given too much credit.
    """
    largest = sorted(history.series, key=lambda one: -one.scale)[:_MOST_SERIES]
    rows = [_row(one.measured) for one in largest if one.scale > 0]
    whole = [seconds // history.step for seconds in NATURAL_SECONDS if not seconds % history.step]
    found = {lag: height for lag in whole if (height := _height(rows, lag))}
    if found:
        least = _LARGE_SHARE * max(found.values())
        return [lag for lag, height in found.items() if height >= least]
    other = _other(rows, len(history))
    return [other] if other else []


def _other(rows: Sequence[_Floats], size: int) -> int | None:
    """Return the shortest season whose correlation is nearly the highest; None without one."""
    longest = size // _FEWEST_CYCLES_OF_OTHERS
    if not rows or longest <= _SHORTEST:
        return None
    curve = _curve(rows, size // 2)
    peaks = [
        lag
        for lag in range(_SHORTEST, longest)
        if curve[lag] >= max(curve[lag - 1], curve[lag + 1], SMALLEST_PEAK)
    ]
    highest = sorted(peaks, key=lambda lag: -curve[lag])[:_MOST_PEAKS]
    found = {lag: height for lag in sorted(highest) if (height := _height(rows, lag))}
    return next((lag for lag in found if found[lag] >= _NEAR_TOP * max(found.values())), None)


def _height(rows: Sequence[_Floats], lag: int) -> float:
    """Return the mean autocorrelation at a lag; 0 if that is not the peak of a season."""
    size = len(rows[0]) if rows else 0
    if lag < _SHORTEST or size < _FEWEST_CYCLES * lag:
        return 0.0
    curve = _curve(rows, lag)
    here = float(curve[lag])
    nearby = curve[lag - lag // 4 : lag + lag // 4 + 1].max()
    valley = max(curve[lag // 2 : lag].min(), curve[lag : lag + lag // 2].min())
    least = SMALLEST_PEAK if size >= _MANY_CYCLES * lag else _SMALLEST_PEAK_OF_FEW
    peak = here >= max(least, _NEAR_TOP * nearby, valley + SMALLEST_PEAK)
    repeats = size < (_FEWEST_CYCLES + 1) * lag or curve[2 * lag] >= here / 2
    return here if peak and repeats else 0.0


def _row(series: PastSeries) -> _Floats:
    """Return the values less their mean, NaN for a hole."""
    values = np.array(series.values, dtype=np.float64)
    return values - np.nanmean(values)


def _curve(rows: Sequence[_Floats], season: int) -> _Floats:
    """Return the mean autocorrelation at all lags, without what is not of the season."""
    found: _Floats = np.mean([_autocorrelation(_seasonal(row, season)) for row in rows], axis=0)
    return found


def _seasonal(row: _Floats, season: int) -> _Floats:
    """Return the values less the largest shifts and the mean of the season around each.

    At both ends it is the mean of the first and of the last season.
    """
    level = row.copy()
    for _ in range(_MOST_SHIFTS):
        means = _season_means(level, season)
        jumps = np.nan_to_num(means[season:] - means[:-season])
        shift = int(np.abs(jumps).argmax())
        level[shift + season :] -= jumps[shift]
    means = _season_means(level, season)
    left = level - means[np.clip(np.arange(len(row)) - season // 2, 0, len(means) - 1)]
    far = _OUTLIER * np.nanmedian(np.abs(left))
    clipped = np.clip(left, -far, far) if far else left
    return clipped - np.nanmean(clipped)


def _season_means(row: _Floats, season: int) -> _Floats:
    """Return the mean of a season from each step on; NaN without a sample."""
    known = np.isfinite(row)
    counts = np.concatenate([[0], known.cumsum()])
    sums = np.concatenate([[0.0], np.where(known, row, 0.0).cumsum()])
    number = (counts[season:] - counts[:-season]).astype(np.float64)
    number[number == 0] = np.nan
    means: _Floats = (sums[season:] - sums[:-season]) / number
    return means


def _autocorrelation(moved: _Floats) -> _Floats:
    """Return the autocorrelation at all lags, of the pairs without a hole."""
    known = np.isfinite(moved)
    size = fft.next_fast_len(2 * len(moved))

    def products(values: _Floats) -> _Floats:
        spectrum = fft.rfft(values, size)
        found: _Floats = fft.irfft(spectrum * spectrum.conj(), size)[: len(values)]
        return found

    found = products(np.where(known, moved, 0.0)) / products(known * 1.0).clip(1.0)
    return found / found[0] if found[0] > 0 else np.zeros_like(found)
