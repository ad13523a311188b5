"""What a scoring API serves at `/config`, and the samples that it gets."""

from typing import Annotated

from pydantic import Field

from dsf.api.crd.dynamic_scorer import ScoringParams, SourceParams
from dsf.api.crd.score_rules import Normalize, OnFailure
from dsf.api.wire_model import WireModel

HEALTH_PATH = "/healthz"
"""The health endpoint, on the host of every scoring API."""

Sample = tuple[float, str]
"""A Prometheus sample: unix seconds and the value's text."""


class ConfiguredSource(WireModel):
    """The source in the config of a scoring API."""

    type: Annotated[
        str, Field(default="Prometheus", pattern=r"(?i)^(prometheus|opentelemetry|none)$")
    ]
    host: str | None = None
    path: str | None = None
    params: SourceParams | None = None


class ConfiguredScoring(WireModel):
    """The scoring endpoint in such a config; the default host is that of configURL."""

    host: str | None = None
    path: str | None = None
    params: ScoringParams
    normalize: Normalize | None = None
    on_failure: OnFailure | None = None


class ScorerConfig(WireModel):
    """The answer of `GET /config`."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    description: str = ""
    source: ConfiguredSource
    scoring: ConfiguredScoring
