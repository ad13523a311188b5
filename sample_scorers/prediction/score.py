"""The score, a pure function of the series, and what became of past forecasts.

A scorer is asked again and again with windows that overlap, so a later window shows the truth of an
earlier forecast. That memory changes no score.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from pydantic import FiniteFloat

from ..wire import ScoreResult, Series
from .forecast import Forecasts, forecast
from .members import Floats, Window, alike, window

HORIZON_SECONDS = 600
"""Seconds after the last sample whose mean is forecast."""

QUANTILES = (0.05, 0.1, 0.5, 0.9, 0.95)
"""Probabilities of the quantiles in each result; the first and the last bound a 90% interval."""

_MANY_GAPS = 0.1
"""Share of steps without a sample from which a window is said to have gaps."""


@dataclass(frozen=True, slots=True)
class ScoreMeaning:
    """What the score is of the forecast: its mean, a quantile, or the chance of exceeding a load.

    `horizon` is in seconds. At most one of the two others is given.
    """

    horizon: int = HORIZON_SECONDS
    quantile: float | None = None
    threshold: float | None = None

    def values(self, found: Forecasts) -> Floats:
        """Return the scores: in the unit of the series, or in percent for a chance."""
        if self.threshold is not None:
            return 100 * found.exceedance(self.threshold)
        return found.mean if self.quantile is None else found.quantile(self.quantile)


DEFAULT_MEANING = ScoreMeaning()


class PredictedScore(ScoreResult):
    """A score with the quantiles of its forecast: pairs of a probability and a value.

    They are in the unit of the series, whatever the score is. None without past errors.
    """

    quantiles: list[tuple[FiniteFloat, FiniteFloat]] | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The forecast of one series, which is the one at `place` in the request."""

    place: int
    window: Window
    result: PredictedScore


def score(
    series: Sequence[Series], meaning: ScoreMeaning = DEFAULT_MEANING
) -> list[PredictedScore]:
    """Return the score of each series, in their order. A series without a finite sample has none.

    A result has the labels of its series, and in `meta` what is special about its window.
    """
    return [one.result for one in predictions(series, meaning)]


def predictions(series: Sequence[Series], meaning: ScoreMeaning) -> list[Prediction]:
    """Return the forecast of each series that has a finite sample, in the order of the series."""
    usable = [
        (place, window(points, meaning.horizon))
        for place, each in enumerate(series)
        if (points := each.finite())
    ]
    found = list[Prediction]()
    for group in alike([one for _, one in usable]):
        members = [usable[index] for index in group]
        found += _predicted(series, members, meaning)
    return sorted(found, key=lambda one: one.place)


def _predicted(
    series: Sequence[Series], members: Sequence[tuple[int, Window]], meaning: ScoreMeaning
) -> list[Prediction]:
    grid = np.stack([one.values for _, one in members], axis=1)
    forecasts = forecast(grid, members[0][1].ahead)
    scores = meaning.values(forecasts).tolist()
    bounds = np.stack([forecasts.quantile(each) for each in QUANTILES], axis=1).tolist()
    short = members[0][1].horizon < meaning.horizon - members[0][1].step
    remarks = _remarks(grid, forecasts, short=short)
    return [
        Prediction(
            place,
            one,
            PredictedScore(
                metric={**series[place].metric, **({"meta": remark} if remark else {})},
                score=value,
                quantiles=list(zip(QUANTILES, levels, strict=True)) if known else None,
            ),
        )
        for (place, one), value, levels, remark, known in zip(
            members, scores, bounds, remarks, (forecasts.known > 0).tolist(), strict=True
        )
    ]


def _remarks(grid: Floats, found: Forecasts, *, short: bool) -> list[str]:
    """Return what is special about each window, joined by commas; empty for a usual one.

    `short`: less than twice the horizon, so the forecast covers half of the window.
    """
    special = {
        "short": np.full(grid.shape[1], short),
        "constant": np.nanmin(grid, axis=0) == np.nanmax(grid, axis=0),
        "gaps": np.isnan(grid).mean(axis=0) > _MANY_GAPS,
        "season": found.period > 0,
    }
    return [
        ",".join(remark for remark, holds in special.items() if holds[index])
        for index in range(grid.shape[1])
    ]


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

    def __init__(self, most: int = MOST_SERIES) -> None:
        self._most = most
        self._pending = OrderedDict[Key, PastForecast]()
        self._lock = Lock()
        self._judged = self._inside = 0
        self._absolute_error = 0.0

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
            self._judged += 1
            self._inside += past.low <= truth <= past.high
            self._absolute_error += abs(truth - past.mean)

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

    def metrics(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        with self._lock:
            judged, inside, error = self._judged, self._inside, self._absolute_error
        level = QUANTILES[-1] - QUANTILES[0]
        return "".join(
            f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n{name} {value:.12g}\n"
            for name, kind, value, meaning in (
                ("prediction_judged_total", "counter", judged, "Forecasts that could be judged."),
                (
                    "prediction_inside_interval_total",
                    "counter",
                    inside,
                    "Judged forecasts whose interval held the truth.",
                ),
                ("prediction_interval_level", "gauge", level, "Share that should be inside."),
                (
                    "prediction_interval_coverage",
                    "gauge",
                    inside / judged if judged else float("nan"),
                    "Share of the judged forecasts whose interval held the truth.",
                ),
                (
                    "prediction_absolute_error_total",
                    "counter",
                    error,
                    "Sum of the absolute errors of the judged forecasts.",
                ),
            )
        )
