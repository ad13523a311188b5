"""The questions and the prompt to the model, and how its reply is read: pure.

A question is numbers only: text from a cluster, such as a label, could be a prompt injection. The
length of a prompt is bounded: MAX_POINTS numbers for each of BATCH_SIZE series.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from statistics import fmean, median
from typing import Any

from pydantic import BaseModel, FiniteFloat, ValidationError

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


HORIZON_SECONDS = 600
"""Seconds after the last step whose mean is forecast."""

BATCH_SIZE = 10
"""Series in one prompt."""

INSTRUCTION = (
    "You forecast time series of CPU cores in use. The user sends JSON: a horizon in seconds and "
    "a list of series, each with an id, the step between its values in seconds, and its values, "
    "oldest first; null where nothing was measured. For each series, forecast the mean value over "
    "the horizon that follows its last step. Reply with JSON only, with exactly one entry for each "
    'id: {"forecasts": [{"id": 0, "value": 0.5}]}'
)

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

_REPLY_START = re.compile(r'\{\s*"forecasts"')


@dataclass(frozen=True)
class UnusableReply:
    """Why a reply is not a forecast."""

    message: str


class _Forecast(BaseModel):
    id: int
    value: FiniteFloat


class _Forecasts(BaseModel):
    forecasts: list[_Forecast]


def batches(questions: Sequence[Question]) -> list[Sequence[Question]]:
    """Return the questions in batches, one for each prompt."""
    starts = range(0, len(questions), BATCH_SIZE)
    return [questions[start : start + BATCH_SIZE] for start in starts]


def data(batch: Sequence[Question]) -> str:
    """Return the JSON that asks for a forecast of each series, numbered from 0."""
    series = [
        {"id": number, "step_seconds": each.step_seconds, "values": each.values}
        for number, each in enumerate(batch)
    ]
    document = {"horizon_seconds": HORIZON_SECONDS, "series": series}
    return json.dumps(document, separators=(",", ":"))


def read_reply(text: str, batch: Sequence[Question]) -> list[float] | UnusableReply:
    """Return the forecast of each series of a batch.

    Reasoning, prose and code fences around the JSON are ignored; the last JSON counts.
    """
    starts = [match.start() for match in _REPLY_START.finditer(text)]
    if not starts:
        return UnusableReply("the reply has no forecasts")
    try:
        document, _ = json.JSONDecoder().raw_decode(text, starts[-1])
        reply = _Forecasts.model_validate(document)
    except ValidationError as error:
        return UnusableReply(f"a forecast is invalid: {error.errors()[0]['msg']}")
    except (ValueError, RecursionError):
        return UnusableReply("the reply's JSON is broken")
    return _in_order(reply, batch)


def _in_order(reply: _Forecasts, batch: Sequence[Question]) -> list[float] | UnusableReply:
    values = {forecast.id: forecast.value for forecast in reply.forecasts}
    count = len(batch)
    if len(reply.forecasts) != count or values.keys() != set(range(count)):
        return UnusableReply(f"the reply must have one forecast for each of {count} series")
    for number, each in enumerate(batch):
        if not each.lowest <= values[number] <= each.highest:
            return UnusableReply(
                f"the forecast {values[number]:g} of a series is outside its physical range, "
                f"{each.lowest:g} to {each.highest:g}"
            )
    return [values[number] for number in range(count)]
