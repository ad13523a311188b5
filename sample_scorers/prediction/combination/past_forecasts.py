# SPDX-License-Identifier: Apache-2.0
"""What became of past forecasts, as metrics: how often their intervals held the truth.

A scorer is asked again and again with windows that overlap, so a later window shows the truth of an
earlier forecast. That memory changes no score.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from threading import Lock

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge

from ...scoring_service.wire import Series
from .score import QUANTILES, Prediction

MOST_SERIES = 50_000
"""Series whose forecasts are remembered; the one that was judged longest ago is forgotten."""

_SAMPLES_NEEDED = 0.5
"""Share of the steps of a horizon that need a sample, so that their mean is the truth."""

Key = tuple[str, frozenset[tuple[str, str]]]
"""The managed cluster that asked, and the labels of a series."""


@dataclass(frozen=True, slots=True)
class PastForecast:
    """A forecast of the mean between two times (unix seconds): its interval and its mean."""

    begin: float
    end: float
    step: float
    low: float
    mean: float
    high: float

    def truth(self, points: Sequence[tuple[float, float]]) -> float | None:
        """Return the mean that came true, or None if too few samples are known."""
        values = [value for time, value in points if self.begin < time <= self.end]
        needed = _SAMPLES_NEEDED * (self.end - self.begin) / self.step
        return float(np.mean(values)) if values and len(values) >= needed else None


class PastForecasts:
    """Remembers one forecast of each series, and judges it when its horizon is over.

    A series' next forecast is remembered after that, so the judged horizons do not overlap.
    """

    def __init__(self, registry: CollectorRegistry, most: int = MOST_SERIES) -> None:
        self._most = most
        self._pending = OrderedDict[Key, PastForecast]()
        self._lock = Lock()
        self._counts = [0, 0]
        self._judged, self._inside, self._absolute_error = (
            Counter(f"prediction_{name}", meaning, registry=registry)
            for name, meaning in (
                ("judged", "Forecasts that could be judged."),
                ("inside_interval", "Judged forecasts whose interval held the truth."),
                ("absolute_error", "Sum of the absolute errors of the judged forecasts."),
            )
        )
        level = Gauge(
            "prediction_interval_level", "Share that should be inside.", registry=registry
        )
        level.set(QUANTILES[-1] - QUANTILES[0])
        coverage = Gauge(
            "prediction_interval_coverage",
            "Share of the judged forecasts whose interval held the truth.",
            registry=registry,
        )
        coverage.set_function(self._coverage)

    def learn(self, cluster: str, series: Sequence[Series], found: Sequence[Prediction]) -> None:
        """Judge what these series show, and remember their new forecasts."""
        with self._lock:
            for one in found:
                each = series[one.place]
                key = (cluster, frozenset(each.metric.items()))
                self._judge(key, each)
                self._remember(key, one)

    def _judge(self, key: Key, series: Series) -> None:
        past = self._pending.get(key)
        points = series.finite()
        if past is None or points[-1][0] < past.end:
            return
        del self._pending[key]
        truth = past.truth(points)
        if truth is not None:
            inside = past.low <= truth <= past.high
            self._counts = [self._counts[0] + 1, self._counts[1] + inside]
            self._judged.inc()
            self._inside.inc(inside)
            self._absolute_error.inc(abs(truth - past.mean))

    def _coverage(self) -> float:
        judged, inside = self._counts
        return inside / judged if judged else nan

    def _remember(self, key: Key, one: Prediction) -> None:
        quantiles = dict(one.result.quantiles or ())
        if key in self._pending or not quantiles:
            return
        begin, window = one.window.end, one.window
        low, middle, high = (quantiles[each] for each in (QUANTILES[0], 0.5, QUANTILES[-1]))
        self._pending[key] = PastForecast(
            begin, begin + window.horizon, window.step, low, middle, high
        )
        if len(self._pending) > self._most:
            self._pending.popitem(last=False)
