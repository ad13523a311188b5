# SPDX-License-Identifier: Apache-2.0
"""The config, the question to the model, and how its reply is read. Change this file.

A question is numbers only: text from a cluster, such as a label, could be a prompt injection.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, FiniteFloat, StrictInt, ValidationError
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException

from ..scoring_service import wire

HORIZON_SECONDS = 600
"""Seconds after the last step whose mean is forecast."""
MOST_SERIES, MOST_VALUES = 10, 60
"""Series of one question, and values of a series, the newest ones."""
MOST_GROWTH, MOST_CORES = 10, 2048.0
"""Times the largest sample that a forecast may reach, and the CPU cores that no node exceeds: the
largest machines of the clouds have 1920."""

INSTRUCTION = (
    "You forecast time series of CPU cores in use. The user sends JSON: a horizon in seconds and "
    "a list of series, each with an id, the step between its values in seconds, and its values, "
    "oldest first; null where nothing was measured. For each series, forecast the mean value over "
    "the horizon that follows its last step. Reply with JSON only, with exactly one entry for each "
    'id: {"forecasts": [{"id": 0, "value": 0.5}]}'
)


def config(prometheus_url: str = wire.PROMETHEUS_URL) -> wire.ScorerConfig:
    """Return `/config`: the query that the agent runs, and what the scores forecast."""
    query = wire.RangeQuery(query=wire.CPU_CORES_BY_POD, range=3600, step=60)
    truth = f"avg_over_time(({query.query})[{HORIZON_SECONDS}s:{query.step}s])"
    return wire.ScorerConfig(
        name="llm-forecast-scorer",
        description="A sample score for time series data with vLLM",
        source=wire.PrometheusSource(host=prometheus_url, params=query),
        scoring=wire.Scoring(params=wire.ScoringParams(name="llm_forecast_score", interval=60)),
        forecast=wire.DeclaredForecast(horizon=HORIZON_SECONDS, truth=wire.TruthQuery(query=truth)),
    )


def score(series: Sequence[wire.Series], ask: Callable[[str], str]) -> list[wire.ScoreResult]:
    """Return the forecast of each series; `ask` sends a question to the model.

    Raises HTTPException, which the agents are answered.
    """
    asked = [(each.metric, points) for each in series if (points := each.finite())]
    if len(asked) > MOST_SERIES:
        raise HTTPException(422, f"more than {MOST_SERIES} series: aggregate more in the query")
    batch = [question(points) for _, points in asked]
    found = read_reply(ask(data(batch)), batch) if batch else []
    if isinstance(found, UnusableReply):
        raise HTTPException(502, found.message)
    return [
        wire.ScoreResult(metric=metric, score=value)
        for (metric, _), value in zip(asked, found, strict=True)
    ]


@dataclass(frozen=True)
class Question:
    """A series at equal steps, None where nothing was measured, and the range of its forecast."""

    step_seconds: int
    values: tuple[float | None, ...]
    lowest: float
    highest: float


def question(points: Sequence[tuple[float, float]]) -> Question:
    """Return the question about finite samples (unix seconds, number), oldest first."""
    values = tuple(value for _, value in points)
    step = (points[-1][0] - points[0][0]) / max(len(points) - 1, 1)
    return Question(round(step), values[-MOST_VALUES:], *physical_range(values))


def physical_range(values: Sequence[float], most: float = MOST_CORES) -> tuple[float, float]:
    """Return the range in which a forecast of a series can be.

    Cores in use are not negative, and no machine has more than `most`. A series that shows other
    numbers is about something else: its own numbers extend the range.
    """
    low, high = min(values), max(values)
    lowest = 0.0 if low >= 0 else MOST_GROWTH * low - 1
    return lowest, max(high, min(most, MOST_GROWTH * high + 1))


def data(batch: Sequence[Question]) -> str:
    """Return the JSON that asks for a forecast of each series, numbered from 0."""
    series = [
        {"id": number, "step_seconds": each.step_seconds, "values": each.values}
        for number, each in enumerate(batch)
    ]
    document = {"horizon_seconds": HORIZON_SECONDS, "series": series}
    return json.dumps(document, separators=(",", ":"))


@dataclass(frozen=True)
class UnusableReply:
    """Why a reply is not a forecast."""

    message: str


def _no_truth_value(raw: object) -> object:
    if isinstance(raw, bool):
        raise PydanticCustomError("truth_value", "true and false are no numbers")
    return raw


class _Forecast(BaseModel):
    id: StrictInt
    value: Annotated[FiniteFloat, BeforeValidator(_no_truth_value)]


class _Forecasts(BaseModel):
    forecasts: list[_Forecast]


_REPLY_START = re.compile(r'\{\s*"forecasts"')


def read_reply(text: str, batch: Sequence[Question]) -> list[float] | UnusableReply:
    """Return the forecast of each series of a batch.

    Reasoning, prose and code fences around the JSON are ignored; the last JSON counts.
    """
    starts = [match.start() for match in _REPLY_START.finditer(text)]
    if not starts:
        return UnusableReply("the reply has no forecasts")
    try:
        document, _ = json.JSONDecoder().raw_decode(text, starts[-1])
        found = _Forecasts.model_validate(document).forecasts
    except ValidationError as error:
        return UnusableReply(f"a forecast is invalid: {error.errors()[0]['msg']}")
    except (ValueError, RecursionError):
        return UnusableReply("the reply's JSON is broken")
    values = {forecast.id: forecast.value for forecast in found}
    if len(found) != len(batch) or values.keys() != set(range(len(batch))):
        return UnusableReply(f"the reply must have one forecast for each of {len(batch)} series")
    for number, each in enumerate(batch):
        if not each.lowest <= values[number] <= each.highest:
            return UnusableReply(
                f"the forecast {values[number]:g} of a series is outside its physical range, "
                f"{each.lowest:g} to {each.highest:g}"
            )
    return [values[number] for number in range(len(batch))]
