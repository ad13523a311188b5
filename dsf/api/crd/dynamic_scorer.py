"""DynamicScorer: one registered scoring API.

The pydantic models are the source of the CRD: constraints, defaults, descriptions and CEL rules
(`x-kubernetes-validations`) are read from here by `dsf.api.crd.definitions`.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from dsf.api.crd import scorer_source
from dsf.api.crd.score_meaning import DeclaredMeaning, PublishedMeaning
from dsf.api.crd.score_rules import DeclaredForecast, DefaultScore, Normalize, OnFailure
from dsf.api.crd.scoring_params import DeclaredContext, ScoringParams
from dsf.api.crd.structural_schema import (
    AtomicList,
    ConditionList,
    Schema,
    Timestamp,
    refused_fields,
    required,
    rule,
    rules,
)
from dsf.api.wire_model import UnlessEmpty, WireModel

DEFAULT_FORMAT = "${node};${namespace};${pod}"
DEFAULT_SCORING_PATH = "/scoring"
DEFAULT_INTERVAL_SECONDS = 30
FAILING_CLUSTERS = 10
"""Failing managed clusters that a status lists by name; bounds its size in a large fleet."""

MOST_FORMATS = 8
"""Sets of scores of one scorer besides the first: each result is compared with every format."""

DimensionFormatText = Annotated[
    str,
    Field(
        max_length=1024,
        pattern=r"\$\{(cluster|node|device|namespace|app|pod|container|meta|scoreName)\}",
    ),
]
_OF_RESULTS = "'\\\\$\\\\{(node|device|namespace|app|pod|container|meta)\\\\}'"
_MODE_NONE = "self.configSyncMode.matches('(?i)^none$')"


def _scoring_rules(schema: Schema) -> None:
    schema |= rules()
    instead = "write host and path of the endpoint as scoring.host and scoring.path"
    refused_fields(schema, {"endpoint": instead})


class Scoring(WireModel):
    """The scoring endpoint."""

    model_config = ConfigDict(json_schema_extra=_scoring_rules)

    host: str | None = Field(
        None,
        max_length=2048,
        pattern=rf"^$|{scorer_source.URL_PATTERN}",
        description="URL of the scoring API; by default the host of configURL.",
    )
    path: str | None = Field(None, max_length=2048, description="Path of the scoring call.")
    params: ScoringParams | None = None
    auth: scorer_source.Auth | None = None
    tls: scorer_source.Tls | None = None
    normalize: Normalize | None = Field(None, description="Linear map of the scores to 0..100.")
    on_failure: OnFailure | None = Field(
        None, description="Policy once the last good scores have expired."
    )
    default_score: DefaultScore | None = Field(
        None,
        description="What counts on managed clusters that have nothing to score; they do not"
        " count as failing.",
    )


def _spec_rules(schema: Schema) -> None:
    del schema["required"]
    schema |= rules(
        rule(
            f"!{_MODE_NONE} || (has(self.scoring) && has(self.scoring.params)"
            " && has(self.scoring.params.name))",
            "configSyncMode None takes the score name from the scorer itself:"
            " set spec.scoring.params.name",
        ),
        rule(
            f"!{_MODE_NONE} || !has(self.source)"
            " || !self.source.type.matches('(?i)^prometheus$')"
            " || (has(self.source.params) && has(self.source.params.query)"
            " && self.source.params.query.matches('\\\\S'))",
            "configSyncMode None with source type Prometheus needs spec.source.params.query",
        ),
        required("description", "description is required: say what the score means"),
        required(
            "configURL",
            "configURL is required: the URL of the scoring API's config endpoint, such as"
            " http://my-scorer.default.svc:8000/config",
        ),
        rule("!has(self.source) || !has(self.sources)", "give source or sources, not both"),
        rule(
            f"!{_MODE_NONE} || !has(self.sources)"
            " || self.sources.all(one, has(one.kubernetes)"
            " || has(one.params) && has(one.params.query))",
            "configSyncMode None needs params.query or kubernetes in each of spec.sources",
        ),
        rule(
            "!has(self.scoring) || !has(self.scoring.defaultScore)"
            " || has(self.scoring.defaultScore.entries)"
            f" || !self.scoreDimensionFormat.matches({_OF_RESULTS})"
            " || (has(self.scoreDimensionFormats)"
            f" && self.scoreDimensionFormats.exists(one, !one.matches({_OF_RESULTS})))",
            "a default score needs names of entries: set spec.scoring.defaultScore.entries, or a"
            " dimension format that names only ${cluster} and ${scoreName}",
        ),
        rule(
            "!has(self.configURL) || !self.configURL.matches('^https?://(:|[^/?#]*[${}<>])')",
            "configURL has a placeholder in its host, or no host: write the address. What envsubst"
            " is to replace, such as ${NODE_IP}, has to be exported before",
        ),
    )
    instead = "metadata.name is the name of a DynamicScorer: remove spec.name"
    refused_fields(schema, {"name": instead}, "string")


class DynamicScorerSpec(DeclaredMeaning):
    """A scoring API and how the agents use it."""

    model_config = ConfigDict(json_schema_extra=_spec_rules)

    description: str = Field(max_length=4096, description="Required. What the score means.")
    config_url: str = Field(
        alias="configURL",
        max_length=2048,
        pattern=scorer_source.URL_PATTERN,
        description="Required. URL of the scoring API's config endpoint.",
    )
    config_sync_mode: str = Field(
        "Full",
        max_length=4,
        pattern=r"(?i)^(full|none)$",
        description="Full: the API's config endpoint is polled and takes precedence."
        " None: this object's source and scoring are used as they are.",
    )
    location: Literal["Internal", "External"] = Field(
        "Internal", description="Whether the API runs inside the fleet."
    )
    source: scorer_source.Source | None = None
    sources: list[scorer_source.NamedSource] | None = Field(
        None,
        min_length=1,
        max_length=scorer_source.MOST_SOURCES,
        description="Several sources instead of one. Each series says by the label"
        f" {scorer_source.SOURCE_LABEL} which of them it is from.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    scoring: Scoring | None = None
    forecast: DeclaredForecast
    context: DeclaredContext
    score_destination: Literal["AddOnPlacementScore", "None"] = Field(
        "AddOnPlacementScore", description="Destination of the scores besides metrics."
    )
    score_dimension_format: DimensionFormatText = Field(
        DEFAULT_FORMAT,
        description="How the labels of a result become the name of its score entry, from"
        " ${cluster} ${node} ${device} ${namespace} ${app} ${pod} ${container} ${meta}"
        " ${scoreName}.",
    )
    score_dimension_formats: UnlessEmpty[list[DimensionFormatText]] = Field(
        default_factory=list,
        max_length=MOST_FORMATS,
        description="Formats of further sets of scores. A result becomes an entry of the"
        " format that names the most of its labels and none that it lacks, the first of"
        " several; of scoreDimensionFormat if there is none.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )

    @property
    def dimension_formats(self) -> tuple[str, ...]:
        """The formats of all sets of scores, that of `scoreDimensionFormat` first."""
        return tuple(dict.fromkeys((self.score_dimension_format, *self.score_dimension_formats)))


def secret_references(side: scorer_source.Source | Scoring) -> Iterator[scorer_source.SecretKeyRef]:
    """Yield the keys of Secrets that calls of a source or of a scoring API need."""
    if side.tls and side.tls.ca_secret_ref:
        yield side.tls.ca_secret_ref
    if side.auth:
        yield from side.auth.secret_references


class ClusterCounts(WireModel):
    """Numbers of managed clusters by the state of a scorer on them."""

    desired: int = Field(description="Managed clusters that should score.")
    distributed: int = Field(description="Those with it in their ManifestWork.")
    scoring: int = Field(description="Those with valid scores.")
    failing: int = Field(description="Those that fail; all others have not reported.")
    defaulted: int | None = Field(
        None,
        description="Those of the scoring ones that have scoring.defaultScore, because they"
        " have nothing to score.",
    )


class FailingCluster(WireModel):
    """A managed cluster on which a scorer fails."""

    name: str = Field(description="Name of the managed cluster.")
    reason: str = Field(description="Why, in one word for programs, such as QueryRejected.")
    message: str = Field(description="Why, in words for people, and what to do.")
    since: Timestamp | None = Field(None, description="Since when it fails.")


class DynamicScorerStatus(WireModel):
    """The state that the hub controller observed."""

    health_status: Literal["Active", "Inactive", "Unknown"] | None = Field(
        None, description="Whether the scoring API answers."
    )
    score_name: str | None = Field(None, description="Name of the score in use.")
    meaning: PublishedMeaning | None = Field(
        None, description="What the published scores mean, after scoring.normalize."
    )
    clusters: ClusterCounts | None = Field(
        None, description="Numbers of managed clusters by state."
    )
    failing_clusters: AtomicList[FailingCluster] | None = Field(
        None,
        max_length=FAILING_CLUSTERS,
        description="The first failing managed clusters by name, with their errors.",
    )
    last_synced_config: dict[str, Any] | None = Field(
        None,
        description="The config document last accepted from the API.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    last_synced_config_url: str | None = Field(
        None, alias="lastSyncedConfigURL", description="The configURL that served lastSyncedConfig."
    )
    observed_generation: int | None = Field(
        None, description="Generation that this status describes."
    )
    conditions: ConditionList | None = None
