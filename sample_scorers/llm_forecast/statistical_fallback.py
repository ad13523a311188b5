"""What a series gets when the model has no forecast, and how the result says so: pure."""

from statistics import fmean

from .prompt import HORIZON_SECONDS
from .question import Points

FALLBACK_META = "statistical-fallback"
"""The label `meta` of a result that the model has not forecast."""


def recent_mean(points: Points) -> float:
    """Return the mean of the last HORIZON_SECONDS of a series, up to its own last sample."""
    since = points[-1][0] - HORIZON_SECONDS
    return fmean(value for time, value in points if time > since)
