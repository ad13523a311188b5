# SPDX-License-Identifier: Apache-2.0
"""The documents of the scoring API: `/config`, and the request and response of `/scoring`.

A series is one element of a Prometheus range query's matrix
(https://prometheus.io/docs/prometheus/latest/querying/api/#range-vectors).
"""

import math
import re
from itertools import chain
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    FailFast,
    Field,
    FiniteFloat,
    PositiveInt,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

PROMETHEUS_URL = "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090"
"""The Prometheus of the kube-prometheus-stack chart under the release name `kube-prometheus`."""

CPU_CORES_BY_POD = (
    "sum by (node, namespace, pod) "
    '(rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))'
)
"""PromQL for the CPU cores that each pod uses."""

MAX_MAGNITUDE = 1e100
"""A larger sample counts as infinite, so that sums and squares of samples stay finite."""

MAX_SERIES = 20_000
"""Series of one request: more than an AddOnPlacementScore can hold scores."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_FINITE = {"NaN": math.nan, "Inf": math.inf, "+Inf": math.inf, "-Inf": -math.inf}
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_END_OF_YEAR_9999 = 253_402_300_799


def _sample_value(raw: object) -> float:
    if isinstance(raw, str):
        if raw in _NOT_FINITE:
            return _NOT_FINITE[raw]
        if _DECIMAL.fullmatch(raw) and _is_finite(float(raw)):
            return float(raw)
    elif isinstance(raw, int | float) and not isinstance(raw, bool) and _is_finite(raw):
        return float(raw)
    raise PydanticCustomError(
        "sample_value",
        'a sample\'s value must be a number in a string such as "1.1", or "NaN", "+Inf", "-Inf"',
    )


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer that no float can hold
        return False


def _labels(raw: object) -> object:
    """Refuse a series at its first wrong label, because a list of all could need too much memory.

    JSON can contain one half of a surrogate pair, which a response in UTF-8 can't.
    """
    if isinstance(raw, dict):
        for text in chain.from_iterable(raw.items()):
            if not isinstance(text, str) or _LONE_SURROGATE.search(text):
                raise PydanticCustomError(
                    "labels", "labels must map strings to strings, without lone surrogates"
                )
    return raw


Labels = Annotated[dict[str, str], BeforeValidator(_labels)]
Timestamp = Annotated[float, Field(ge=0, le=_END_OF_YEAR_9999, description="Unix seconds")]
SampleValue = Annotated[
    float,
    BeforeValidator(_sample_value),
    WithJsonSchema({"type": "string", "examples": ["1.1", "NaN", "+Inf"]}),
]


class Series(BaseModel):
    """One time series: its labels and its samples."""

    metric: Labels
    values: Annotated[list[tuple[Timestamp, SampleValue]], FailFast()]

    def finite(self) -> list[tuple[float, float]]:
        """Return the finite samples as (unix seconds, number), oldest first.

        NaN and infinities are valid in Prometheus; a score can't be computed from them.
        """
        return sorted(point for point in self.values if abs(point[1]) <= MAX_MAGNITUDE)


class ScoringRequest(BaseModel):
    """The body of POST /scoring: the result of the source's query, empty without a source."""

    data: Annotated[list[Series], FailFast(), Field(max_length=MAX_SERIES)]


class ScoreResult(BaseModel):
    """One score. The agent makes the name of the score entry from the labels.

    The labels that it reads are node, namespace, pod, container, app, device and meta. `quantiles`
    of a forecast are pairs of a probability and a value, in the unit of the series.
    """

    metric: dict[str, str]
    score: FiniteFloat
    quantiles: Annotated[
        list[tuple[FiniteFloat, FiniteFloat]] | None, Field(exclude_if=lambda given: given is None)
    ] = None


class ScoringResponse(BaseModel):
    """The response of POST /scoring."""

    results: list[ScoreResult]


class RangeQuery(BaseModel):
    """A range query: PromQL, the length of its window and its step in seconds."""

    query: str
    range: PositiveInt
    step: PositiveInt


class PrometheusSource(BaseModel):
    """The agent fetches the series from a Prometheus HTTP API."""

    type: Literal["Prometheus"] = "Prometheus"
    host: str
    path: str = "/api/v1/query_range"
    params: RangeQuery


class NoSource(BaseModel):
    """The scorer needs no series; the agent posts an empty list."""

    type: Literal["None"] = "None"


class ScoringParams(BaseModel):
    """The score's name, and the seconds between two scoring requests."""

    name: str
    interval: PositiveInt


class Normalize(BaseModel):
    """How the agent maps scores to 0..100: `min` becomes 0 and `max` 100; with `invert`, reversed.

    Entries of an AddOnPlacementScore are whole numbers of -100 to 100, rounded down.
    """

    min: FiniteFloat
    max: FiniteFloat
    invert: bool = False


class Scoring(BaseModel):
    """The path of the scoring endpoint, the score that it computes, and its range."""

    path: str = "/scoring"
    params: ScoringParams
    normalize: Normalize | None = None


Direction = Literal["HigherIsBetter", "LowerIsBetter"]


class ScoreRange(BaseModel):
    """The range in which scores can be; an open end is None."""

    min: FiniteFloat | None = None
    max: FiniteFloat | None = None


class TruthQuery(BaseModel):
    """The query for what came true."""

    query: str


class DeclaredForecast(BaseModel):
    """What the scores forecast; agents compare both and report how far scores can be trusted.

    `horizon` is in seconds.
    """

    horizon: PositiveInt
    truth: TruthQuery
    quantile: float | None = None


class ScorerConfig(BaseModel):
    """The response of GET /config.

    Unit, direction and range are those of the scores that this scorer returns, not normalized.
    """

    name: str
    description: str
    display_name: Annotated[str | None, Field(serialization_alias="displayName")] = None
    unit: str | None = None
    direction: Direction | None = None
    range: ScoreRange | None = None
    forecast: DeclaredForecast | None = None
    source: PrometheusSource | NoSource
    scoring: Scoring
