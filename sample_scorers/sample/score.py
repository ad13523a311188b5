"""The score: pure, data in and data out."""

from collections.abc import Sequence
from statistics import fmean

from ..wire import ScoreResult, Series

META = "my_something_meta_by_sample_scorer"


def score(series: Sequence[Series]) -> list[ScoreResult]:
    """Score each series by the mean of its finite samples: here, CPU cores used over the window.

    The labels are handed on, with `meta` set. A series without a finite sample gets no result.
    """
    return [
        ScoreResult(metric={**each.metric, "meta": META}, score=fmean(value for _, value in points))
        for each in series
        if (points := each.finite())
    ]
