"""Series as columns of arrays with equal steps, so that one pass forecasts all of them."""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .smoothing import Floats

MOST_STEPS = 300
"""Steps of a window; a longer window is averaged, so that the work stays bounded."""


_LENGTHS = (*range(24), *range(24, 96, 4), *range(96, MOST_STEPS + 1, 12))
"""Lengths of windows. Methods are prepared for each length, so there must not be too many."""


@dataclass(frozen=True, slots=True)
class Window:
    """The samples of one series as means of equal steps, NaN for a step without a sample.

    `step` is in seconds. `ahead` is the number of steps to forecast, at most half of the window,
    and `end` the time of the last step in unix seconds.
    """

    values: Floats
    step: float
    ahead: int
    end: float

    @property
    def horizon(self) -> float:
        """The seconds to forecast."""
        return self.ahead * self.step


def window(points: Sequence[tuple[float, float]], horizon: float) -> Window:
    """Return the window of samples (unix seconds, number); there is at least one, in any order.

    The oldest steps are left out, at most one in seven, so that windows have one of few lengths.
    """
    times, values = np.array(points).T
    grid, step = regular(times, values)
    grid = grid[-_LENGTHS[bisect(_LENGTHS, len(grid)) - 1] :]
    length = (len(grid) - 1) * step
    ahead = max(1, round(min(horizon, length / 2) / step)) if len(grid) > 1 else 1
    return Window(grid, step, ahead, float(times.max()))


def regular(times: Floats, values: Floats) -> tuple[Floats, float]:
    """Return the samples averaged into equal steps, and the step in seconds.

    A step without a sample is NaN. The step is the median distance of two samples, or longer, so
    that there are at most about MOST_STEPS steps.
    """
    start, end = float(times.min()), float(times.max())
    if start == end:
        return np.array([values.mean()]), 1.0
    step = max(float(np.median(np.diff(np.unique(times)))), (end - start) / MOST_STEPS)
    index = np.rint((times - start) / step).astype(np.intp)
    count = np.bincount(index)
    total = np.bincount(index, weights=values)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0), step


def alike(windows: Sequence[Window]) -> list[list[int]]:
    """Return the places of the windows that one array can hold: with equal sizes and horizons."""
    groups: dict[tuple[int, int], list[int]] = {}
    for place, one in enumerate(windows):
        groups.setdefault((len(one.values), one.ahead), []).append(place)
    return list(groups.values())
