"""The documents of the scoring API: its config, and the body and the answer of a scoring call.

The body may carry context besides series: who asks, and what is to be scored.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from dsf.api.crd import scorer_source
from dsf.api.crd.dynamic_scorer import DEFAULT_SCORING_PATH
from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.crd.score_meaning import DeclaredMeaning
from dsf.api.crd.score_rules import DeclaredForecast, DefaultScore, Normalize, OnFailure
from dsf.api.crd.scoring_params import DeclaredContext, ParamValue, ScoringParams, is_param
from dsf.api.untrusted_text import listed
from dsf.api.wire_model import UnlessEmpty, UnlessNone, WireModel

CLUSTER_HEADER = "Dynamic-Scoring-Cluster"
SCORE_HEADER = "Dynamic-Scoring-Score"
SCORER_HEADER = "Dynamic-Scoring-Scorer"
"""Headers of every call of an agent: names of the managed cluster, the score, the DynamicScorer."""

Amounts = Annotated[
    dict[str, str], Field(description="Amounts by kind, as Kubernetes writes quantities.")
]


class TemplateContainer(WireModel):
    """A container of a workload's template, with the fields that the config asks for."""

    name: str
    image: UnlessNone[str] = None
    requests: UnlessNone[Amounts] = None
    limits: UnlessNone[Amounts] = None


class WorkloadTemplate(WireModel):
    """An object of a ManifestWorkReplicaSet that makes pods, such as a Deployment."""

    kind: str
    name: str
    replicas: UnlessNone[int] = None
    node_selector: UnlessNone[dict[str, str]] = None
    runtime_class_name: UnlessNone[str] = None
    containers: UnlessEmpty[list[TemplateContainer]] = Field(default_factory=list)


class ScoredWorkload(WireModel):
    """A ManifestWorkReplicaSet with a label app: a workload to be scored."""

    namespace: str
    name: str
    app: str = Field(description="Its label app: the `app` of its scores.")
    requests: Amounts = Field(
        description="What each replica requests, by its labels and annotation."
    )
    priority: int = Field(0, description="Its priority for the optimizer.")
    templates: UnlessEmpty[list[WorkloadTemplate]] = Field(
        default_factory=list, description="The chosen fields of the objects that it makes pods of."
    )


class SuppliedDevice(WireModel):
    """A device that a policy would supply to a cluster that enforces it."""

    namespace: str
    policy: str
    kind: str
    device: str = Field(description="The `device` of its scores.")
    amount: str


class RequestContext(WireModel):
    """What a scorer's config asks for in `context`; each part only if it is asked for."""

    cluster: UnlessNone[str] = Field(None, description="Name of the managed cluster.")
    score: UnlessNone[str] = Field(None, description="Name of the score.")
    scorer: UnlessNone[str] = Field(None, description="Name of the DynamicScorer.")
    labels: UnlessNone[dict[str, str]] = Field(
        None, description="The labels of the ManagedCluster that it has of those asked for."
    )
    claims: UnlessNone[dict[str, str]] = Field(
        None, description="The ClusterClaims of the ManagedCluster that it has of those asked for."
    )
    workloads: UnlessNone[list[ScoredWorkload]] = None
    devices: UnlessNone[list[SuppliedDevice]] = None


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

    type: str = Field(
        "Prometheus",
        pattern=r"(?i)^(prometheus|opentelemetry|kubernetes|none)$",
        description="Prometheus, OpenTelemetry, Kubernetes or None, in any letter case.",
    )
    host: str | None = Field(None, description="URL of the server, such as http://prometheus:9090.")
    path: str | None = Field(
        None, description=f"Path of its query API; by default {scorer_source.DEFAULT_SOURCE_PATH}."
    )
    params: scorer_source.SourceParams | None = None
    kubernetes: KubernetesObjects | None = Field(
        None, description="The objects of the managed cluster that a source of type Kubernetes is."
    )


class ConfiguredNamedSource(ConfiguredSource):
    """One of several sources."""

    name: scorer_source.SourceName
    type: scorer_source.SeveralSourceType


class ConfiguredParams(ScoringParams):
    """The name of the score, the scoring interval, and further parameters of the scoring calls."""

    @model_validator(mode="before")
    @classmethod
    def _without_unknown(cls, params: Any) -> Any:
        """Ignore what can't be a parameter, as other unknown fields of a config are."""
        if not isinstance(params, Mapping):
            return params
        return {
            key: value
            for key, value in params.items()
            if key in cls.model_fields or is_param(value)
        }


class ConfiguredScoring(WireModel):
    """The scoring endpoint, the name of the score, and how the agent treats its values."""

    host: str | None = Field(
        None, description="URL of the server; by default the one that serves this."
    )
    path: str | None = Field(
        None, description=f"Path of the endpoint; by default {DEFAULT_SCORING_PATH}."
    )
    params: ConfiguredParams
    normalize: Normalize | None = None
    on_failure: OnFailure | None = None
    default_score: DefaultScore | None = None


class ScorerConfig(DeclaredMeaning):
    """The answer of `GET /config`. Unknown fields are ignored, and the hub names them."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["source"]}, {"required": ["sources"]}]}
    )

    name: str = Field(min_length=1, max_length=253, description="Name of the scorer, for people.")
    description: str = Field("", description="What the score means.")
    source: ConfiguredSource | None = None
    sources: list[ConfiguredNamedSource] | None = Field(
        None,
        min_length=1,
        max_length=scorer_source.MOST_SOURCES,
        description="Several sources instead of one, with distinct names.",
    )
    scoring: ConfiguredScoring
    forecast: DeclaredForecast
    context: DeclaredContext

    @property
    def all_sources(self) -> Sequence[ConfiguredSource]:
        """The only source, or the several ones."""
        return self.sources or [one for one in [self.source] if one]

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if (self.source is None) == (self.sources is None):
            raise ValueError("give source or sources, and not both")
        names = [one.name for one in self.sources or ()]
        if len(set(names)) < len(names):
            raise ValueError(f"sources: two have one name: {listed(sorted(names))}")
        return self


class Series(WireModel):
    """One time series in the matrix form of Prometheus: its labels and its samples."""

    metric: Labels = Field(
        description="The labels that the query gives the series. Of a scorer with several"
        f" sources also {scorer_source.SOURCE_LABEL}, the name of the source."
    )
    values: list[Sample] = Field(
        description="Samples, oldest first: unix seconds, and the value as text, which may be"
        ' "NaN", "+Inf" or "-Inf".'
    )


class ScoringRequest(WireModel):
    """The body of a scoring call: the series of the source's query, none with source type None."""

    data: list[Series]
    context: RequestContext | None = Field(
        None, description="There only if the config asks for it."
    )
    params: dict[str, ParamValue] | None = Field(
        None, description="The further parameters of scoring.params; there only if some are given."
    )


class ScoreResult(WireModel):
    """One score, and the labels that name it."""

    metric: Labels = Field(
        default_factory=dict,
        description="Labels of the score. The agent reads node, device, namespace, app, pod,"
        " container and meta, and ignores others.",
    )
    score: float | Annotated[str, Field(pattern=NUMBER_TEXT)] = Field(
        description="A finite number, in the scorer's own units; or its text."
    )
    quantiles: list[Quantile] | None = Field(
        None,
        description="Of a forecast: pairs of a probability and the value that the truth exceeds"
        " with 1 minus it. Agents ignore them.",
    )


class ScoringResponse(WireModel):
    """The answer of a scoring call."""

    results: list[ScoreResult] = Field(
        description="The scores; series without a score are left out."
    )
