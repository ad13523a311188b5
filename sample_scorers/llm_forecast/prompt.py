"""The prompt to the model, and how its reply is read: pure.

The length of a prompt is bounded: MAX_POINTS numbers for each of BATCH_SIZE series.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, FiniteFloat, ValidationError

from .question import Question

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
