"""The prompt to the model, and how its reply is read: pure.

A prompt contains only numbers and never a label, because text from a cluster could be a prompt
injection. Its length is bounded: MAX_POINTS numbers for each of BATCH_SIZE series.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pydantic import BaseModel, FiniteFloat, ValidationError

HORIZON_SECONDS = 600
"""Seconds after the last sample whose mean is forecast."""

BATCH_SIZE = 10
"""Series in one prompt."""

MAX_POINTS = 48
"""Values of one series in a prompt; longer series are averaged."""

Points = Sequence[tuple[float, float]]

INSTRUCTION = (
    "You forecast time series of CPU cores in use. The user sends JSON: a horizon in seconds and "
    "a list of series, each with an id, the step between its values in seconds, and its values, "
    "oldest first. For each series, forecast the mean value over the horizon that follows its "
    'last value. Reply with JSON only, with exactly one entry for each id: {"forecasts": '
    '[{"id": 0, "value": 0.5}]}'
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


def batches(series: Sequence[Points]) -> list[Sequence[Points]]:
    """Return the series in batches, one for each prompt."""
    return [series[start : start + BATCH_SIZE] for start in range(0, len(series), BATCH_SIZE)]


def messages(batch: Sequence[Points]) -> list[dict[str, str]]:
    """Return the chat messages that ask for a forecast of each series, numbered from 0."""
    data = {
        "horizon_seconds": HORIZON_SECONDS,
        "series": [{"id": number, **_outline(points)} for number, points in enumerate(batch)],
    }
    return [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": json.dumps(data, separators=(",", ":"))},
    ]


def read_reply(text: str, count: int) -> list[float] | UnusableReply:
    """Return the forecasts of series 0 to `count` - 1 in a reply.

    Reasoning, prose and code fences around the JSON are ignored; the last JSON counts.
    """
    starts = [match.start() for match in _REPLY_START.finditer(text)]
    if not starts:
        return UnusableReply("the reply has no forecasts")
    try:
        document, _ = json.JSONDecoder().raw_decode(text, starts[-1])
        answer = _Forecasts.model_validate(document)
    except ValidationError as error:
        return UnusableReply(f"a forecast is invalid: {error.errors()[0]['msg']}")
    except (ValueError, RecursionError):
        return UnusableReply("the reply's JSON is broken")
    return _in_order(answer, count)


def _in_order(answer: _Forecasts, count: int) -> list[float] | UnusableReply:
    values = {forecast.id: forecast.value for forecast in answer.forecasts}
    if len(answer.forecasts) != count or values.keys() != set(range(count)):
        return UnusableReply(f"the reply must have one forecast for each of {count} series")
    return [values[number] for number in range(count)]


def _outline(points: Points) -> dict[str, Any]:
    """Return a series as at most MAX_POINTS means with four significant digits."""
    size = -(-len(points) // MAX_POINTS)
    chunks = [points[start : start + size] for start in range(0, len(points), size)]
    seconds = points[-1][0] - points[0][0]
    return {
        "step_seconds": round(seconds * size / max(len(points) - 1, 1)),
        "values": [float(f"{fmean(value for _, value in chunk):.4g}") for chunk in chunks],
    }
