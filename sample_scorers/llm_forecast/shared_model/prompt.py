# SPDX-License-Identifier: Apache-2.0
"""Series as questions at equal steps, in batches, and the schema of the reply: pure.

The length of a prompt is bounded: MAX_POINTS numbers for each of BATCH_SIZE series.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor
from statistics import fmean, median
from typing import Any

from ..score import Question, physical_range

MAX_POINTS = 48
"""Values of one series in a prompt; those of longer series are averaged."""

_SMALLEST_STEP = 1e-6
"""Share of the window: samples that are closer are taken together, so that the work is bounded."""

Points = Sequence[tuple[float, float]]


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


def _index(time: float, start: float, usual: float, step: float) -> int:
    # Half of the usual distance is added, so that late and early samples stay in their step.
    return floor((time - start + usual / 2) / step)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


BATCH_SIZE = 10
"""Series in one prompt."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "forecasts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "integer"}, "value": {"type": "number"}},
                "required": ["id", "value"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["forecasts"],
    "additionalProperties": False,
}
"""Schema of the reply, in the subset of JSON Schema that structured output accepts."""


def batches(questions: Sequence[Question]) -> list[Sequence[Question]]:
    """Return the questions in batches, one for each prompt."""
    starts = range(0, len(questions), BATCH_SIZE)
    return [questions[start : start + BATCH_SIZE] for start in starts]
