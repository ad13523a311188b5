"""Forecasts that need no scorer: a scorer is worth running if it is better than they are."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from dsf.scorer_kit.backtest.history import PastSeries


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
