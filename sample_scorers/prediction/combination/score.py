# SPDX-License-Identifier: Apache-2.0
"""The score: a pure function of the series."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...scoring_service.wire import ScoreResult, Series
from ..score import HORIZON_SECONDS
from .forecast import Forecasts, forecast
from .members import Floats, Window, alike, window

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


@dataclass(frozen=True, slots=True)
class Prediction:
    """The forecast of one series, which is the one at `place` in the request."""

    place: int
    window: Window
    result: ScoreResult


def score(series: Sequence[Series], meaning: ScoreMeaning = DEFAULT_MEANING) -> list[ScoreResult]:
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
            ScoreResult(
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
