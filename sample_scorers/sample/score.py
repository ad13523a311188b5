"""The score: a pure function of the series."""

from collections.abc import Sequence
from statistics import fmean

from ..wire import ScoreResult, Series

META = "my_something_meta_by_sample_scorer"


def score(series: Sequence[Series]) -> list[ScoreResult]:
    """Return the mean of the finite samples of each series: the CPU cores used over the window.

    A result has the labels of its series, and `meta`. A series without a finite sample has none.
    """
    return [
        ScoreResult(metric={**each.metric, "meta": META}, score=fmean(value for _, value in points))
        for each in series
        if (points := each.finite())
    ]
