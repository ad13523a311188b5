"""The scorer summary: the configuration of one scorer that the hub sends to agents."""

import json
from collections.abc import Iterable
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import FailFast, Field, TypeAdapter, ValidationError, field_serializer

from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.crd.score_meaning import ScoreRange
from dsf.api.crd.score_rules import DefaultScore, ForecastRules, Normalize, OnFailure
from dsf.api.crd.scorer_source import (
    TENANT,
    TENANT_LENGTH,
    OAuth2,
    SecretKeyRef,
    certificate_references,
)
from dsf.api.crd.scoring_params import AskedContext, ParamValue
from dsf.api.json_input import value_count
from dsf.api.scoring.scoring_api import ScoredWorkload, SuppliedDevice
from dsf.api.untrusted_text import InvalidInput
from dsf.api.wire_model import UnlessEmpty, UnlessNone, WireModel

SEVERAL = "Several"
"""The `sourceType` of a summary with `sources`: an agent that does not know them fails, and says
so, instead of calling the scoring API without series."""

_TenantText = UnlessEmpty[Annotated[str, Field(max_length=TENANT_LENGTH, pattern=rf"^$|{TENANT}")]]


class SummarySource(WireModel):
    """One of several sources of a scorer; `range` and `step` are seconds."""

    name: str
    type: str
    endpoint: str = ""
    endpoint_auth_name: UnlessEmpty[str] = ""
    endpoint_auth_key: UnlessEmpty[str] = ""
    endpoint_auth_service_account: UnlessEmpty[bool] = False
    endpoint_ca_name: UnlessEmpty[str] = Field("", alias="endpointCAName")
    endpoint_ca_key: UnlessEmpty[str] = Field("", alias="endpointCAKey")
    endpoint_tenant: _TenantText = ""
    endpoint_certificate_name: UnlessEmpty[str] = ""
    endpoint_oauth2: UnlessEmpty[OAuth2 | None] = Field(None, alias="endpointOAuth2")
    query: str = ""
    range: int = 0
    step: int = 0
    kubernetes: UnlessNone[KubernetesObjects] = None


class ScorerSummary(WireModel):
    """A DynamicScorer flattened for the agent; field names and order are those of the wire.

    `source_range`, `source_step` and `scoring_interval` are seconds. Fields that were added to the
    contract later are omitted from the text unless they are set. `context` is what the scorer asks
    for, and the fields after it what the hub knows of that. Labels and claims are the last fields,
    because the hub appends those of each managed cluster to a text that all have in common.
    """

    name: str
    score_name: str
    source_type: str
    source_endpoint: str = ""
    source_endpoint_auth_name: str = ""
    source_endpoint_auth_key: str = ""
    source_query: str = ""
    source_range: int = 0
    source_step: int = 0
    scoring_endpoint: str
    scoring_interval: int
    scoring_endpoint_auth_name: str = ""
    scoring_endpoint_auth_key: str = ""
    location: Literal["Internal", "External"] = "Internal"
    score_destination: Literal["AddOnPlacementScore", "None"] = "AddOnPlacementScore"
    score_dimension_format: str
    scoring_normalize: UnlessEmpty[Normalize | None] = None
    scoring_on_failure: UnlessEmpty[OnFailure | None] = None
    scoring_range: UnlessEmpty[ScoreRange | None] = None
    source_endpoint_auth_service_account: UnlessEmpty[bool] = False
    source_endpoint_ca_name: UnlessEmpty[str] = Field("", alias="sourceEndpointCAName")
    source_endpoint_ca_key: UnlessEmpty[str] = Field("", alias="sourceEndpointCAKey")
    scoring_endpoint_ca_name: UnlessEmpty[str] = Field("", alias="scoringEndpointCAName")
    scoring_endpoint_ca_key: UnlessEmpty[str] = Field("", alias="scoringEndpointCAKey")
    source_endpoint_tenant: _TenantText = ""
    forecast: UnlessEmpty[ForecastRules | None] = None
    sources: UnlessEmpty[tuple[SummarySource, ...]] = ()
    scoring_params: UnlessEmpty[dict[str, ParamValue]] = Field(default_factory=dict)
    scoring_default_score: UnlessEmpty[DefaultScore | None] = None
    score_dimension_formats: UnlessEmpty[tuple[str, ...]] = ()
    source_endpoint_certificate_name: UnlessEmpty[str] = ""
    source_endpoint_oauth2: UnlessEmpty[OAuth2 | None] = Field(None, alias="sourceEndpointOAuth2")
    source_kubernetes: UnlessNone[KubernetesObjects] = None
    scoring_endpoint_certificate_name: UnlessEmpty[str] = ""
    scoring_endpoint_oauth2: UnlessEmpty[OAuth2 | None] = Field(None, alias="scoringEndpointOAuth2")
    context: UnlessEmpty[AskedContext | None] = None
    context_workloads: UnlessEmpty[tuple[ScoredWorkload, ...]] = ()
    context_devices: UnlessEmpty[tuple[SuppliedDevice, ...]] = ()
    context_labels: UnlessEmpty[dict[str, str]] = Field(default_factory=dict)
    context_claims: UnlessEmpty[dict[str, str]] = Field(default_factory=dict)

    @property
    def dimension_formats(self) -> tuple[str, ...]:
        """The formats of all sets of scores, that of `score_dimension_format` first."""
        return (self.score_dimension_format, *self.score_dimension_formats)

    @property
    def has_source(self) -> bool:
        """Whether series are read before the scoring API is called."""
        return self.source_type.strip().lower() not in {"none", ""}

    @property
    def secret_references(self) -> frozenset[SecretKeyRef]:
        """The keys of Secrets that an agent needs for the scorer, in the agent's namespace."""
        pairs = [
            (self.scoring_endpoint_auth_name, self.scoring_endpoint_auth_key),
            (self.scoring_endpoint_ca_name, self.scoring_endpoint_ca_key),
        ]
        certificates = [self.scoring_endpoint_certificate_name]
        clients = [self.scoring_endpoint_oauth2]
        for one in self.single_sources:
            pairs += [
                (one.source_endpoint_auth_name, one.source_endpoint_auth_key),
                (one.source_endpoint_ca_name, one.source_endpoint_ca_key),
            ]
            certificates.append(one.source_endpoint_certificate_name)
            clients.append(one.source_endpoint_oauth2)
        return frozenset(
            (
                *(SecretKeyRef(name=name, key=key) for name, key in pairs if name and key),
                *chain.from_iterable(map(certificate_references, certificates)),
                *chain.from_iterable(one.secret_references for one in clients if one),
            )
        )

    @property
    def single_sources(self) -> tuple["ScorerSummary", ...]:
        """The summary for each source, as if that were the only one; itself if it has one."""
        alone = (
            self.with_source(one).model_copy(update={"sources": (one,)}) for one in self.sources
        )
        return tuple(alone) or (self,)

    @property
    def source_name(self) -> str:
        """The name of the only source of a summary of `single_sources`; empty if it has none."""
        return self.sources[0].name if self.sources else ""

    def with_source(self, source: SummarySource) -> "ScorerSummary":
        """Return the summary with this as its only source."""
        fields = [(name, getattr(source, name)) for name in SummarySource.model_fields]
        flat = {f"source_{name}": value for name, value in fields if name != "name"}
        return self.model_copy(update=flat)

    @field_serializer("context")
    def _asked_of_agents(self, context: AskedContext | None) -> dict[str, Any] | None:
        """Return the context without what only the hub uses.

        An agent would refuse a template field that is newer than itself, with all summaries.
        """
        only_hub: Any = {"namespaces": True, "workloads": {"fields"}}
        return context.model_dump(by_alias=True, exclude=only_hub) if context else None


_ONE_LINE_EACH = frozenset({"contextWorkloads", "contextDevices"})
_SUMMARIES = TypeAdapter(Annotated[list[ScorerSummary], FailFast()])

MAX_VALUES = 1 << 17
"""JSON values of `data.summaries`: one for each 8 bytes of the 1 MiB that a ConfigMap may have."""


def dump_summaries(summaries: Iterable[ScorerSummary]) -> str:
    """Return the JSON text of `data.summaries`, sorted by name: equal input gives equal bytes."""
    ordered = sorted(summaries, key=lambda summary: (summary.name, summary.score_name))
    bodies = [
        ",\n".join(field_text(*item) for item in summary.model_dump(by_alias=True).items())
        for summary in ordered
    ]
    return "[\n" + ",\n".join(f"  {{\n{body}\n  }}" for body in bodies) + "\n]" if bodies else "[]"


def field_text(key: str, value: Any) -> str:
    """Return a field of a summary as `dump_summaries` writes it: indented JSON.

    Workloads and devices have a line each, because there may be hundreds and every managed cluster
    gets them.
    """
    if key in _ONE_LINE_EACH:
        lines = ",\n".join(f"      {json.dumps(item, ensure_ascii=False)}" for item in value)
        return f'    "{key}": [\n{lines}\n    ]'
    text = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n    ")
    return f'    "{key}": {text}'


def load_summaries(text: str) -> tuple[ScorerSummary, ...] | InvalidInput:
    """Parse `data.summaries`; the first invalid summary is reported with its index in the list."""
    if value_count(text.encode()) > MAX_VALUES:
        return InvalidInput("InvalidSummaries", f"summaries: more than {MAX_VALUES} values")
    try:
        return tuple(_SUMMARIES.validate_json(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "summaries"
        return InvalidInput("InvalidSummaries", f"{place}: {first['msg']}")
