"""The HTTP interface of a scoring API: its config, a scoring call, its results."""

from typing import Annotated

from pydantic import Field

from dsf.api.model import Wire
from dsf.api.score_rules import Normalize, OnFailure
from dsf.api.scorer import ScoringParams, SourceParams

Sample = tuple[float, str]
"""A Prometheus sample: unix seconds and the value's text."""


class ConfiguredSource(Wire):
    """The source that a scoring API wishes for."""

    type: Annotated[
        str, Field(default="Prometheus", pattern=r"(?i)^(prometheus|opentelemetry|none)$")
    ]
    host: str | None = None
    path: str | None = None
    params: SourceParams | None = None


class ConfiguredScoring(Wire):
    """The scoring endpoint that a scoring API names; without a host it is configURL's."""

    host: str | None = None
    path: str | None = None
    params: ScoringParams
    normalize: Normalize | None = None
    on_failure: OnFailure | None = None


class ScorerConfig(Wire):
    """The answer of `GET /config`."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    description: str = ""
    source: ConfiguredSource
    scoring: ConfiguredScoring


class Series(Wire):
    """One time series in Prometheus matrix form."""

    metric: dict[str, str]
    values: list[Sample]


class ScoringRequest(Wire):
    """The body of a scoring call; `data` is empty for source type None."""

    data: list[Series]


class ScoreResult(Wire):
    """One score and the labels it speaks of."""

    metric: Annotated[dict[str, str], Field(default_factory=dict)]
    score: float


class ScoringResponse(Wire):
    """The answer of a scoring call."""

    results: list[ScoreResult]
