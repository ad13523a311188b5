"""DynamicScorer: one registered scoring API.

The pydantic models are the source of the CRD: constraints, defaults, descriptions and CEL rules
(`x-kubernetes-validations`) are read from here by `dsf.api.crd.definitions`.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from dsf.api.crd.asked_context import DeclaredContext
from dsf.api.crd.condition_schema import ConditionList
from dsf.api.crd.forecast_rules import DeclaredForecast
from dsf.api.crd.score_meaning import DeclaredMeaning, PublishedMeaning
from dsf.api.crd.score_rules import Normalize, OnFailure
from dsf.api.crd.structural_schema import rule, rules
from dsf.api.wire_model import WireModel

DEFAULT_FORMAT = "${node};${namespace};${pod}"
DEFAULT_SOURCE_PATH = "/api/v1/query_range"
DEFAULT_SCORING_PATH = "/scoring"
DEFAULT_RANGE_SECONDS = 3600
DEFAULT_STEP_SECONDS = 60
DEFAULT_INTERVAL_SECONDS = 30
FAILING_CLUSTERS = 10
"""Failing managed clusters that a status lists by name; bounds its size in a large fleet."""

_URL = r"^https?://[^\s/]+.*$"
TENANT_HEADER = "X-Scope-OrgID"
TENANT = r"^[A-Za-z0-9!_.*'()-]+(\|[A-Za-z0-9!_.*'()-]+)*$"
"""Tenant IDs, joined by `|`. Source: Grafana Mimir, "About tenant IDs"."""
TENANT_LENGTH = 1024
_MODE_NONE = "self.configSyncMode.matches('(?i)^none$')"


class SecretKeyRef(WireModel):
    """A key of a Secret in the agent's namespace on the managed cluster."""

    name: Annotated[str, Field(min_length=1, max_length=253, description="Name of the Secret.")]
    key: Annotated[str, Field(min_length=1, max_length=253, description="Key within the Secret.")]


class Tls(WireModel):
    """How the agent checks a server's certificate."""

    ca_secret_ref: Annotated[
        SecretKeyRef | None,
        Field(
            default=None,
            description="PEM certificates of the only trusted authorities; public ones"
            " where it is missing.",
        ),
    ]


class Auth(WireModel):
    """How the agent authenticates."""

    token_secret_ref: Annotated[
        SecretKeyRef | None,
        Field(default=None, description="Bearer token sent in the Authorization header."),
    ]


class SourceAuth(Auth):
    """How the agent authenticates to a source."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.tokenSecretRef) || !has(self.serviceAccountToken)"
                " || !self.serviceAccountToken",
                "serviceAccountToken and tokenSecretRef exclude each other",
            )
        )
    )

    service_account_token: Annotated[
        bool | None,
        Field(
            default=None,
            description="Send the token of the agent's own service account, as a Prometheus or"
            " Thanos inside the cluster may want it. Only over https, and only to hosts that the"
            " agent's --service-account-token-hosts allows.",
        ),
    ]


class SourceParams(WireModel):
    """The query of the source."""

    query: Annotated[
        str | None,
        Field(
            default=None,
            max_length=65536,
            description='PromQL, or for OpenTelemetry selectors such as name{attribute="value"};'
            " several are joined by ';' outside quotes and braces.",
        ),
    ]
    range: Annotated[
        int | None,
        Field(
            default=None,
            ge=0,
            le=31_622_400,
            description="Seconds of history; 0 queries the instant value.",
        ),
    ]
    step: Annotated[
        int | None,
        Field(default=None, ge=1, le=31_622_400, description="Seconds between two samples."),
    ]


class Source(WireModel):
    """Where the agent reads time series."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!self.type.matches('(?i)^prometheus$') || !has(self.params)"
                " || !has(self.params.query) || self.params.query.matches('\\\\S')",
                "a query for source type Prometheus must not be empty",
                ".params.query",
            ),
            rule(
                "!has(self.tenant) || self.type.matches('(?i)^prometheus$')",
                "only a source of type Prometheus has tenants",
                ".tenant",
            ),
        )
    )

    type: Annotated[
        str,
        Field(
            default="Prometheus",
            max_length=13,
            pattern=r"(?i)^(prometheus|opentelemetry|none)$",
            description="Prometheus, OpenTelemetry or None, in any letter case.",
        ),
    ]
    host: Annotated[
        str | None,
        Field(
            default=None,
            max_length=2048,
            pattern=rf"^$|{_URL}",
            description="URL of the source, such as http://prometheus.monitoring.svc:9090.",
        ),
    ]
    path: Annotated[
        str | None,
        Field(default=None, max_length=2048, description="Path of the query API."),
    ]
    params: SourceParams | None = None
    auth: SourceAuth | None = None
    tls: Tls | None = None
    tenant: Annotated[
        str | None,
        Field(
            default=None,
            min_length=1,
            max_length=TENANT_LENGTH,
            pattern=TENANT,
            description=f"Whose series are asked for, sent to Prometheus in the {TENANT_HEADER}"
            " header, as Mimir, Cortex and Thanos want it; several are joined by '|'.",
        ),
    ]


class ScoringParams(WireModel):
    """The name of the score and the scoring interval."""

    name: Annotated[
        str | None,
        Field(
            default=None,
            max_length=253,
            pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
            description="Name of the score; the AddOnPlacementScore has it with '_' as '-'.",
        ),
    ]
    interval: Annotated[
        int | None,
        Field(default=None, ge=1, le=604_800, description="Seconds between two scorings."),
    ]


class Scoring(WireModel):
    """The scoring endpoint."""

    host: Annotated[
        str | None,
        Field(
            default=None,
            max_length=2048,
            pattern=rf"^$|{_URL}",
            description="URL of the scoring API; by default the host of configURL.",
        ),
    ]
    path: Annotated[
        str | None, Field(default=None, max_length=2048, description="Path of the scoring call.")
    ]
    params: ScoringParams | None = None
    auth: Auth | None = None
    tls: Tls | None = None
    normalize: Annotated[
        Normalize | None,
        Field(default=None, description="Linear map of the scores to 0..100."),
    ]
    on_failure: Annotated[
        OnFailure | None,
        Field(default=None, description="Policy once the last good scores have expired."),
    ]


class DynamicScorerSpec(DeclaredMeaning):
    """A scoring API and how the agents use it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
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
        )
    )

    description: Annotated[str, Field(max_length=4096, description="What the score means.")]
    config_url: Annotated[
        str,
        Field(
            alias="configURL",
            max_length=2048,
            pattern=_URL,
            description="URL of the scoring API's config endpoint.",
        ),
    ]
    config_sync_mode: Annotated[
        str,
        Field(
            default="Full",
            max_length=4,
            pattern=r"(?i)^(full|none)$",
            description="Full: the API's config endpoint is polled and takes precedence."
            " None: this object's source and scoring are used as they are.",
        ),
    ]
    location: Annotated[
        Literal["Internal", "External"],
        Field(default="Internal", description="Whether the API runs inside the fleet."),
    ]
    source: Source | None = None
    scoring: Scoring | None = None
    forecast: DeclaredForecast
    context: DeclaredContext
    score_destination: Annotated[
        Literal["AddOnPlacementScore", "None"],
        Field(
            default="AddOnPlacementScore", description="Destination of the scores besides metrics."
        ),
    ]
    score_dimension_format: Annotated[
        str,
        Field(
            default=DEFAULT_FORMAT,
            max_length=1024,
            pattern=r"\$\{(cluster|node|device|namespace|app|pod|container|meta|scoreName)\}",
            description="How the labels of a result become the name of its score entry, from"
            " ${cluster} ${node} ${device} ${namespace} ${app} ${pod} ${container} ${meta}"
            " ${scoreName}.",
        ),
    ]


class ClusterCounts(WireModel):
    """Numbers of managed clusters by the state of a scorer on them."""

    desired: Annotated[int, Field(description="Managed clusters that should score.")]
    distributed: Annotated[int, Field(description="Those with it in their ManifestWork.")]
    scoring: Annotated[int, Field(description="Those with valid scores.")]
    failing: Annotated[int, Field(description="Those that fail; all others have not reported.")]


class FailingCluster(WireModel):
    """A managed cluster on which a scorer fails."""

    name: str
    reason: str
    message: str
    since: Annotated[str | None, Field(default=None, json_schema_extra={"format": "date-time"})]


class DynamicScorerStatus(WireModel):
    """The state that the hub controller observed."""

    health_status: Annotated[
        Literal["Active", "Inactive", "Unknown"] | None,
        Field(default=None, description="Whether the scoring API answers."),
    ]
    score_name: Annotated[str | None, Field(default=None, description="Name of the score in use.")]
    meaning: Annotated[
        PublishedMeaning | None,
        Field(default=None, description="What the published scores mean, after scoring.normalize."),
    ]
    clusters: Annotated[
        ClusterCounts | None,
        Field(default=None, description="Numbers of managed clusters by state."),
    ]
    failing_clusters: Annotated[
        list[FailingCluster] | None,
        Field(
            default=None,
            max_length=FAILING_CLUSTERS,
            description="The first failing managed clusters by name, with their errors.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ]
    last_synced_config: Annotated[
        dict[str, Any] | None,
        Field(
            default=None,
            description="The config document last accepted from the API.",
            json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
        ),
    ]
    last_synced_config_url: Annotated[
        str | None,
        Field(
            alias="lastSyncedConfigURL",
            default=None,
            description="The configURL that served lastSyncedConfig.",
        ),
    ]
    observed_generation: Annotated[
        int | None, Field(default=None, description="Generation that this status describes.")
    ]
    conditions: ConditionList | None = None
