"""Where the agent of each managed cluster reads series: one source of a scorer, or several."""

from typing import Annotated

from pydantic import ConfigDict, Field

from dsf.api.crd.structural_schema import Schema, refused_fields, rule, rules
from dsf.api.wire_model import WireModel

DEFAULT_SOURCE_PATH = "/api/v1/query_range"
DEFAULT_RANGE_SECONDS = 3600
DEFAULT_STEP_SECONDS = 60

MOST_SOURCES = 8
"""Sources of one scorer: an agent asks one after the other, within one deadline."""

SOURCE_LABEL = "__source__"
"""The label that names the source of a series, where a scorer has several.

Prometheus keeps labels that begin with two underscores for itself, so no exporter has it.
"""

URL_PATTERN = r"^https?://[^\s/]+.*$"
TENANT_HEADER = "X-Scope-OrgID"
TENANT = r"^[A-Za-z0-9!_.*'()-]+(\|[A-Za-z0-9!_.*'()-]+)*$"
"""Tenant IDs, joined by `|`. Source: Grafana Mimir, "About tenant IDs"."""
TENANT_LENGTH = 1024

SourceName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$",
        description="Name of the source, unique among them. The label"
        f" {SOURCE_LABEL} of each series has it.",
    ),
]
SeveralSourceType = Annotated[
    str,
    Field(
        default="Prometheus",
        max_length=13,
        pattern=r"(?i)^(prometheus|opentelemetry)$",
        description="Prometheus or OpenTelemetry, in any letter case.",
    ),
]


class SecretKeyRef(WireModel):
    """A key of a Secret in the agent's namespace on the managed cluster."""

    name: str = Field(min_length=1, max_length=253, description="Name of the Secret.")
    key: str = Field(min_length=1, max_length=253, description="Key within the Secret.")


class Tls(WireModel):
    """How the agent checks a server's certificate."""

    ca_secret_ref: SecretKeyRef | None = Field(
        None,
        description="PEM certificates of the only trusted authorities; public ones"
        " where it is missing.",
    )


class Auth(WireModel):
    """How the agent authenticates."""

    token_secret_ref: SecretKeyRef | None = Field(
        None, description="Bearer token sent in the Authorization header."
    )


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

    service_account_token: bool | None = Field(
        None,
        description="Send the token of the agent's own service account, as a Prometheus or"
        " Thanos inside the cluster may want it. Only over https, and only to hosts that the"
        " agent's --service-account-token-hosts allows.",
    )


class SourceParams(WireModel):
    """The query of the source."""

    query: str | None = Field(
        None,
        max_length=65536,
        description='PromQL, or for OpenTelemetry selectors such as name{attribute="value"};'
        " several are joined by ';' outside quotes and braces.",
    )
    range: int | None = Field(
        None, ge=0, le=31_622_400, description="Seconds of history; 0 queries the instant value."
    )
    step: int | None = Field(None, ge=1, le=31_622_400, description="Seconds between two samples.")


def _source_rules(schema: Schema) -> None:
    schema |= rules(
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
    refused_fields(
        schema,
        {
            "endpoint": "write host and path of the endpoint as source.host and source.path",
            "query": "write query, range and step as source.params.query, source.params.range and"
            " source.params.step",
        },
    )


class Source(WireModel):
    """Where the agent reads time series."""

    model_config = ConfigDict(json_schema_extra=_source_rules)

    type: str = Field(
        "Prometheus",
        max_length=13,
        pattern=r"(?i)^(prometheus|opentelemetry|none)$",
        description="Prometheus, OpenTelemetry or None, in any letter case.",
    )
    host: str | None = Field(
        None,
        max_length=2048,
        pattern=rf"^$|{URL_PATTERN}",
        description="URL of the source, such as http://prometheus.monitoring.svc:9090.",
    )
    path: str | None = Field(None, max_length=2048, description="Path of the query API.")
    params: SourceParams | None = None
    auth: SourceAuth | None = None
    tls: Tls | None = None
    tenant: str | None = Field(
        None,
        min_length=1,
        max_length=TENANT_LENGTH,
        pattern=TENANT,
        description=f"Whose series are asked for, sent to Prometheus in the {TENANT_HEADER}"
        " header, as Mimir, Cortex and Thanos want it; several are joined by '|'.",
    )


class NamedSource(Source):
    """One of several sources of a scorer."""

    name: SourceName
    type: SeveralSourceType
