"""What is asked of the model about one series: numbers only, and which answers are possible. Pure.

A question contains no label, because text from a cluster could be a prompt injection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from statistics import fmean, median

MAX_POINTS = 48
"""Values of one series in a prompt; those of longer series are averaged."""

MOST_GROWTH = 10
"""Times the largest sample that a forecast may reach. Nothing in the series tells of more."""

_SMALLEST_STEP = 1e-6
"""Share of the window: samples that are closer are taken together, so that the work is bounded."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Question:
    """A series at equal steps, None where nothing was measured, and the range of its forecast."""

    step_seconds: int
    values: tuple[float | None, ...]
    lowest: float
    highest: float


def question(points: Points, until: float, most: float) -> Question:
    """Return the question about a series of finite samples, oldest first, at least one.

    `until` (unix seconds) is the end of the window: a series that ended before has a gap there.
    `most` is what no forecast may exceed, unless a sample does.
    """
    step, values = gridded(points, until)
    return Question(round(step), values, *physical_range([value for _, value in points], most))


def gridded(points: Points, until: float) -> tuple[float, tuple[float | None, ...]]:
    """Return the step in seconds, and the mean of each step with four significant digits.

    The step is the usual distance of two samples, or a multiple, so that MAX_POINTS are enough.
    """
    start, end = points[0][0], max(points[-1][0], until)
    distances = [later - time for (time, _), (later, _) in pairwise(points)]
    usual = median([distance for distance in distances if distance > 0] or [end - start])
    usual = max(usual, (end - start) * _SMALLEST_STEP)
    if not usual:
        return 0.0, (_rounded(fmean(value for _, value in points)),)
    step = usual * max(1, ceil((end - start) / (usual * (MAX_POINTS - 1))))
    found: list[list[float]] = [[] for _ in range(_index(end, start, usual, step) + 1)]
    for time, value in points:
        found[_index(time, start, usual, step)].append(value)
    return step, tuple(_rounded(fmean(values)) if values else None for values in found)


def physical_range(values: Sequence[float], most: float) -> tuple[float, float]:
    """Return the range in which a forecast of a series can be.

    Cores in use are not negative, and no machine has more than `most`. A series that shows other
    numbers is about something else: its own numbers extend the range.
    """
    low, high = min(values), max(values)
    lowest = 0.0 if low >= 0 else MOST_GROWTH * low - 1
    return lowest, max(high, min(most, MOST_GROWTH * high + 1))


def _index(time: float, start: float, usual: float, step: float) -> int:
    # Half of the usual distance is added, so that late and early samples stay in their step.
    return floor((time - start + usual / 2) / step)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
