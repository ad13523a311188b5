"""Forecasts that need no scorer: a scorer that is no better than these is of no use."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import mul

from dsf.scorer_kit.backtest.history import History, PastSeries

SMALLEST_PEAK = 0.3
"""Autocorrelation from which a history is said to have a season."""

_MOST_STEPS = 1_000
"""Newest steps in which a season is looked for: the work grows with their square."""

_MOST_SERIES = 10
"""Series in which a season is looked for: those that change most."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """What is forecast after a window: steps of the window, and steps whose mean is forecast."""

    window: int
    ahead: int


@dataclass(frozen=True, slots=True)
class SimpleMethod:
    """A name, and a forecast of the mean after the step before `end`; None if it has none."""

    name: str
    forecast: Callable[[PastSeries, int], float | None]


def simple_methods(horizon: Horizon, season: int) -> list[SimpleMethod]:
    """Return the methods; `season` is in steps."""
    return [
        SimpleMethod("last value", lambda series, end: series.last(end)),
        SimpleMethod("window mean", lambda series, end: series.mean(end - horizon.window, end)),
        SimpleMethod(
            "seasonal naive", lambda series, end: _last_season(series, end, horizon.ahead, season)
        ),
    ]


def _last_season(series: PastSeries, end: int, ahead: int, season: int) -> float | None:
    """Return the mean of the same steps one season ago; a longer horizon repeats the season."""
    if end < season:
        return None
    whole, rest = divmod(ahead, season)
    parts = [(whole * season, series.mean(end - season, end) if whole else 0.0)]
    parts.append((rest, series.mean(end - season, end - season + rest) if rest else 0.0))
    means = [(weight, mean) for weight, mean in parts if mean is not None]
    if len(means) < len(parts):
        return None
    return math.fsum(weight * mean for weight, mean in means) / ahead


def found_season(history: History) -> int | None:
    """Return the season that the series share, in steps; None without one.

    It is the lag of the highest peak of their mean autocorrelation over the whole history, which no
    method could have known in advance: a season can only be given too much credit.
    """
    largest = sorted(history.series, key=lambda one: -one.scale)[:_MOST_SERIES]
    found = [_autocorrelation(one) for one in largest if one.scale > 0]
    return _highest_peak([sum(column) / len(found) for column in zip(*found, strict=True)])


def _autocorrelation(series: PastSeries) -> list[float]:
    """Return the autocorrelation at the lags up to half of the history; holes are its mean."""
    values = series.values[-_MOST_STEPS:]
    known = [value for value in values if value is not None]
    centre = math.fsum(known) / len(known)
    moved = [0.0 if value is None else value - centre for value in values]
    power = sum(map(mul, moved, moved)) or 1.0
    return [
        sum(map(mul, moved[lag:], moved)) / power * len(moved) / (len(moved) - lag)
        for lag in range(len(moved) // 2 + 1)
    ]


def _highest_peak(correlation: Sequence[float]) -> int | None:
    lowest, best = 1.0, None
    for lag in range(1, len(correlation) - 1):
        before, here, after = correlation[lag - 1 : lag + 2]
        lowest = min(lowest, here)
        peak = here >= before and here >= after and here >= SMALLEST_PEAK
        if peak and here - lowest >= SMALLEST_PEAK and (not best or here > correlation[best]):
            best = lag
    return best
