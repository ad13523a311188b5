"""Where the agent of each managed cluster reads series: one source of a scorer, or several."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import ConfigDict, Field

from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.crd.structural_schema import Schema, refused_fields, rule, rules
from dsf.api.wire_model import UnlessEmpty, UnlessNone, WireModel

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
        pattern=r"(?i)^(prometheus|opentelemetry|kubernetes)$",
        description="Prometheus, OpenTelemetry or Kubernetes, in any letter case.",
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


CERTIFICATE_KEY, PRIVATE_KEY = "tls.crt", "tls.key"
"""Keys of a Secret of type kubernetes.io/tls."""
CLIENT_ID, CLIENT_SECRET = "client_id", "client_secret"
"""Keys of a Secret with an OAuth client, named as the parameters of RFC 6749, section 2.3.1."""


class CertificateSecretRef(WireModel):
    """A Secret in the agent's namespace on the managed cluster, of type kubernetes.io/tls."""

    name: str = Field(
        min_length=1,
        max_length=253,
        description=f"Name of the Secret, with {CERTIFICATE_KEY} and {PRIVATE_KEY} in PEM.",
    )


class ClientSecretRef(WireModel):
    """A Secret in the agent's namespace on the managed cluster, with an OAuth client."""

    name: str = Field(
        min_length=1,
        max_length=253,
        description=f"Name of the Secret, with the keys {CLIENT_ID} and {CLIENT_SECRET}.",
    )


_Scope = Annotated[str, Field(max_length=256, pattern=r"^[!#-\[\]-~]+$")]


class OAuth2(WireModel):
    """Client credentials of OAuth 2.0. Source: RFC 6749, section 4.4."""

    token_url: str = Field(
        alias="tokenURL",
        max_length=2048,
        pattern=URL_PATTERN,
        description="URL of the token endpoint.",
    )
    client_secret_ref: ClientSecretRef = Field(
        description="Client ID and secret, sent to the token endpoint by HTTP Basic authentication."
    )
    scopes: UnlessEmpty[list[_Scope]] = Field(
        default_factory=list,
        max_length=32,
        description="Scopes to ask for.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    audience: UnlessNone[str] = Field(
        None,
        min_length=1,
        max_length=2048,
        description="Audience to ask for, where the token endpoint reads this parameter.",
    )
    tls: UnlessNone[Tls] = Field(None, description="How the agent checks the token endpoint.")

    @property
    def secret_references(self) -> Iterator[SecretKeyRef]:
        """The keys of Secrets that asking for a token needs."""
        for key in (CLIENT_ID, CLIENT_SECRET):
            yield SecretKeyRef(name=self.client_secret_ref.name, key=key)
        if self.tls and self.tls.ca_secret_ref:
            yield self.tls.ca_secret_ref


def certificate_references(secret: str) -> Iterator[SecretKeyRef]:
    """Yield the keys of the Secret with a client certificate; none for an empty name."""
    for key in (CERTIFICATE_KEY, PRIVATE_KEY) if secret else ():
        yield SecretKeyRef(name=secret, key=key)


def _auth_rules(*other_tokens: str) -> Schema:
    """Return the rule that only one of several ways to get a token is given."""
    ways = ["has(self.tokenSecretRef)", "has(self.oauth2)", *other_tokens]
    pairs = [f"!({one} && {other})" for at, one in enumerate(ways) for other in ways[:at]]
    names = "serviceAccountToken, oauth2" if other_tokens else "oauth2"
    return rules(rule(" && ".join(pairs), f"{names} and tokenSecretRef exclude each other"))


class Auth(WireModel):
    """How the agent authenticates."""

    model_config = ConfigDict(json_schema_extra=_auth_rules())

    token_secret_ref: SecretKeyRef | None = Field(
        None, description="Bearer token sent in the Authorization header."
    )
    oauth2: OAuth2 | None = Field(
        None, description="Where the agent gets a bearer token as an OAuth client."
    )
    client_certificate_secret_ref: CertificateSecretRef | None = Field(
        None, description="Client certificate for mutual TLS."
    )

    @property
    def secret_references(self) -> Iterator[SecretKeyRef]:
        """The keys of Secrets that authenticating needs."""
        if self.token_secret_ref:
            yield self.token_secret_ref
        if self.oauth2:
            yield from self.oauth2.secret_references
        yield from certificate_references(self.certificate_name)

    @property
    def certificate_name(self) -> str:
        """The name of the Secret with the client certificate; empty if there is none."""
        reference = self.client_certificate_secret_ref
        return reference.name if reference else ""


class SourceAuth(Auth):
    """How the agent authenticates to a source."""

    model_config = ConfigDict(
        json_schema_extra=_auth_rules("(has(self.serviceAccountToken) && self.serviceAccountToken)")
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
        None,
        ge=0,
        le=31_622_400,
        description="Seconds of history; 0 queries the instant value. By default an hour, and 0"
        " for Kubernetes.",
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
        rule(
            "!has(self.kubernetes) || self.type.matches('(?i)^kubernetes$')",
            "only a source of type Kubernetes has objects",
            ".kubernetes",
        ),
        rule(
            "!self.type.matches('(?i)^kubernetes$') || !(has(self.host) || has(self.path)"
            " || has(self.auth) || has(self.tls) || has(self.params) && has(self.params.query))",
            "source type Kubernetes reads the managed cluster's API server as the agent: remove"
            " host, path, auth, tls and params.query",
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
        pattern=r"(?i)^(prometheus|opentelemetry|kubernetes|none)$",
        description="Prometheus, OpenTelemetry, Kubernetes or None, in any letter case.",
    )
    host: str | None = Field(
        None,
        max_length=2048,
        pattern=rf"^$|{URL_PATTERN}",
        description="URL of the source, such as http://prometheus.monitoring.svc:9090.",
    )
    path: str | None = Field(None, max_length=2048, description="Path of the query API.")
    params: SourceParams | None = None
    kubernetes: KubernetesObjects | None = None
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
