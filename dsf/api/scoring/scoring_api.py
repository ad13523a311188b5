"""The documents of the scoring API: its config, and the body and the answer of a scoring call."""

from typing import Annotated

from pydantic import Field

from dsf.api.crd.asked_context import DeclaredContext
from dsf.api.crd.dynamic_scorer import (
    DEFAULT_SCORING_PATH,
    DEFAULT_SOURCE_PATH,
    ScoringParams,
    SourceParams,
)
from dsf.api.crd.forecast_rules import DeclaredForecast
from dsf.api.crd.score_meaning import DeclaredMeaning
from dsf.api.crd.score_rules import Normalize, OnFailure
from dsf.api.scoring.request_context import RequestContext
from dsf.api.wire_model import WireModel

HEALTH_PATH = "/healthz"
"""The health endpoint, on the host of every scoring API."""

Sample = tuple[float, str]
"""A Prometheus sample: unix seconds and the value's text."""


Labels = dict[str, str]
"""Label names and values."""

Quantile = tuple[Annotated[float, Field(ge=0, le=1)], float]
"""A probability, and a value of a forecast's distribution."""

NUMBER_TEXT = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[Ii]nf|NaN)$"
"""A number as Prometheus writes it."""


class ConfiguredSource(WireModel):
    """Where the agent reads the series that it sends. Without it, in type None, it sends none."""

    type: Annotated[
        str,
        Field(
            default="Prometheus",
            pattern=r"(?i)^(prometheus|opentelemetry|none)$",
            description="Prometheus, OpenTelemetry or None, in any letter case.",
        ),
    ]
    host: Annotated[
        str | None,
        Field(default=None, description="URL of the server, such as http://prometheus:9090."),
    ]
    path: Annotated[
        str | None,
        Field(
            default=None, description=f"Path of its query API; by default {DEFAULT_SOURCE_PATH}."
        ),
    ]
    params: SourceParams | None = None


class ConfiguredScoring(WireModel):
    """The scoring endpoint, the name of the score, and how the agent treats its values."""

    host: Annotated[
        str | None,
        Field(default=None, description="URL of the server; by default the one that serves this."),
    ]
    path: Annotated[
        str | None,
        Field(
            default=None, description=f"Path of the endpoint; by default {DEFAULT_SCORING_PATH}."
        ),
    ]
    params: ScoringParams
    normalize: Normalize | None = None
    on_failure: OnFailure | None = None


class ScorerConfig(DeclaredMeaning):
    """The answer of `GET /config`. Unknown fields are ignored, and the hub names them."""

    name: Annotated[
        str, Field(min_length=1, max_length=253, description="Name of the scorer, for people.")
    ]
    description: Annotated[str, Field(default="", description="What the score means.")]
    source: ConfiguredSource
    scoring: ConfiguredScoring
    forecast: DeclaredForecast
    context: DeclaredContext


class Series(WireModel):
    """One time series in the matrix form of Prometheus: its labels and its samples."""

    metric: Annotated[Labels, Field(description="The labels that the query gives the series.")]
    values: Annotated[
        list[Sample],
        Field(
            description="Samples, oldest first: unix seconds, and the value as text, which may be"
            ' "NaN", "+Inf" or "-Inf".'
        ),
    ]


class ScoringRequest(WireModel):
    """The body of a scoring call: the series of the source's query, none with source type None."""

    data: list[Series]
    context: Annotated[
        RequestContext | None,
        Field(default=None, description="There only if the config asks for it."),
    ]


class ScoreResult(WireModel):
    """One score, and the labels that name it."""

    metric: Annotated[
        Labels,
        Field(
            default_factory=dict,
            description="Labels of the score. The agent reads node, device, namespace, app, pod,"
            " container and meta, and ignores others.",
        ),
    ]
    score: Annotated[
        float | Annotated[str, Field(pattern=NUMBER_TEXT)],
        Field(description="A finite number, in the scorer's own units; or its text."),
    ]
    quantiles: Annotated[
        list[Quantile] | None,
        Field(
            default=None,
            description="Of a forecast: pairs of a probability and the value that the truth exceeds"
            " with 1 minus it. Agents ignore them.",
        ),
    ]


class ScoringResponse(WireModel):
    """The answer of a scoring call."""

    results: Annotated[
        list[ScoreResult], Field(description="The scores; series without a score are left out.")
    ]
