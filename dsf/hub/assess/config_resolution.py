"""A registered scoring API and its own config become one scorer summary.

In mode Full what the API's config endpoint says wins, the DynamicScorer fills in what it leaves
open, and the scoring host is that of `configURL` unless the API names one. In mode None the
DynamicScorer counts alone. Secret references and the tenant are the DynamicScorer's in both modes:
they decide what is shown to whom.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from dsf.api.crd import dynamic_scorer as defaults
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec, Scoring, SecretKeyRef, Source
from dsf.api.crd.score_rules import Normalize, OnFailure
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring import series_selector
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ConfiguredScoring, ConfiguredSource, ScorerConfig
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.registered_scorer import is_full

_SOURCE_TYPES = {"prometheus": "Prometheus", "opentelemetry": "OpenTelemetry", "none": "None"}
_WIRE_NAMES = {
    "source_type": "source.type",
    "source_host": "source.host",
    "source_path": "source.path",
    "query": "source.params.query",
    "range": "source.params.range",
    "step": "source.params.step",
    "scoring_host": "scoring.host",
    "scoring_path": "scoring.path",
    "score_name": "scoring.params.name",
    "interval": "scoring.params.interval",
    "normalize": "scoring.normalize",
    "on_failure": "scoring.onFailure",
}


@dataclass(frozen=True, slots=True)
class ConfigConflict:
    """A field on which the DynamicScorer and the API's config differ; `/config` won."""

    field: str
    in_spec: str | int | Normalize | OnFailure
    in_config: str | int | Normalize | OnFailure


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the agents are told of a scorer, and where its two configs differed."""

    summary: ScorerSummary
    conflicts: tuple[ConfigConflict, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigFields:
    """What one side says; None where it says nothing. Range, step and interval are seconds."""

    source_type: str | None = None
    source_host: str | None = None
    source_path: str | None = None
    query: str | None = None
    range: int | None = None
    step: int | None = None
    scoring_host: str | None = None
    scoring_path: str | None = None
    score_name: str | None = None
    interval: int | None = None
    normalize: Normalize | None = None
    on_failure: OnFailure | None = None


def resolve(
    name: str, spec: DynamicScorerSpec, config: ScorerConfig | None
) -> Resolved | InvalidInput:
    """Return the summary of the scorer `name`; `config` is needed in mode Full and else unused."""
    server = urls.server(spec.config_url, "spec.configURL")
    if isinstance(server, InvalidInput):
        return server
    theirs = ConfigFields()
    if is_full(spec):
        if config is None:
            return InvalidInput("ConfigMissing", "the config endpoint has not answered yet")
        theirs = _wishes(config.source, config.scoring)
        theirs = replace(theirs, scoring_host=theirs.scoring_host or server)
    own = _wishes(spec.source, spec.scoring)
    summary = _summary(name, spec, _with_defaults(_over(theirs, own), server))
    if isinstance(summary, InvalidInput):
        return summary
    return Resolved(summary, tuple(_conflicts(theirs, own)))


def _wishes(
    source: Source | ConfiguredSource | None, scoring: Scoring | ConfiguredScoring | None
) -> ConfigFields:
    asked = source.params if source else None
    pace = scoring.params if scoring else None
    return ConfigFields(
        source_type=_SOURCE_TYPES[source.type.lower()] if source else None,
        source_host=_host(source.host) if source else None,
        source_path=_path(source.path) if source else None,
        query=(asked.query or "").strip() or None if asked else None,
        range=asked.range if asked else None,
        step=asked.step if asked else None,
        scoring_host=_host(scoring.host) if scoring else None,
        scoring_path=_path(scoring.path) if scoring else None,
        score_name=pace.name if pace else None,
        interval=pace.interval if pace else None,
        normalize=scoring.normalize if scoring else None,
        on_failure=scoring.on_failure if scoring else None,
    )


def _host(host: str | None) -> str | None:
    return host.rstrip("/") or None if host else None


def _path(path: str | None) -> str | None:
    return "/" + path.lstrip("/") if path else None


def _over(first: ConfigFields, second: ConfigFields) -> ConfigFields:
    """Return the first's wishes, and the second's where the first says nothing."""
    said = {item.name: getattr(first, item.name) for item in fields(ConfigFields)}
    return replace(second, **{field: value for field, value in said.items() if value is not None})


def _conflicts(theirs: ConfigFields, own: ConfigFields) -> Iterator[ConfigConflict]:
    for field, wire_name in _WIRE_NAMES.items():
        in_config, in_spec = getattr(theirs, field), getattr(own, field)
        if in_config is not None and in_spec is not None and in_config != in_spec:
            yield ConfigConflict(wire_name, in_spec, in_config)


def _with_defaults(wishes: ConfigFields, server: str) -> ConfigFields:
    return _over(
        wishes,
        ConfigFields(
            source_type="None",
            range=defaults.DEFAULT_RANGE_SECONDS,
            step=defaults.DEFAULT_STEP_SECONDS,
            scoring_host=server,
            scoring_path=defaults.DEFAULT_SCORING_PATH,
            interval=defaults.DEFAULT_INTERVAL_SECONDS,
        ),
    )


def _summary(
    name: str, spec: DynamicScorerSpec, wishes: ConfigFields
) -> ScorerSummary | InvalidInput:
    if wishes.score_name is None or wishes.interval is None:
        return InvalidInput(
            "MissingScoreName",
            "the score has no name: set scoring.params.name in the API's config"
            " or spec.scoring.params.name",
        )
    scoring = urls.endpoint(wishes.scoring_host or "", wishes.scoring_path or "", "scoring")
    if isinstance(scoring, InvalidInput):
        return scoring
    form = DimensionFormat.parse(spec.score_dimension_format)
    if isinstance(form, InvalidInput):
        return form
    auth_name, auth_key = _reference(_token(spec.scoring))
    ca_name, ca_key = _reference(_authority(spec.scoring))
    summary = ScorerSummary(
        name=name,
        score_name=wishes.score_name,
        source_type=wishes.source_type or "None",
        scoring_endpoint=scoring,
        scoring_interval=wishes.interval,
        scoring_endpoint_auth_name=auth_name,
        scoring_endpoint_auth_key=auth_key,
        scoring_endpoint_ca_name=ca_name,
        scoring_endpoint_ca_key=ca_key,
        location=spec.location,
        score_destination=spec.score_destination,
        score_dimension_format=spec.score_dimension_format,
        scoring_normalize=wishes.normalize,
        scoring_on_failure=wishes.on_failure,
    )
    return summary if summary.source_type == "None" else _with_source(summary, spec, wishes)


def _with_source(
    summary: ScorerSummary, spec: DynamicScorerSpec, wishes: ConfigFields
) -> ScorerSummary | InvalidInput:
    prometheus = summary.source_type == "Prometheus"
    unusable = _unusable(wishes, prometheus=prometheus)
    if unusable:
        return unusable
    path = wishes.source_path or (defaults.DEFAULT_SOURCE_PATH if prometheus else "")
    host = wishes.source_host
    endpoint = urls.endpoint(host, path, "source") if host else ""
    if isinstance(endpoint, InvalidInput):
        return endpoint
    auth_name, auth_key = _reference(_token(spec.source))
    ca_name, ca_key = _reference(_authority(spec.source))
    return summary.model_copy(
        update={
            "source_endpoint": endpoint,
            "source_endpoint_auth_name": auth_name,
            "source_endpoint_auth_key": auth_key,
            "source_endpoint_auth_service_account": _service_account(spec.source),
            "source_endpoint_ca_name": ca_name,
            "source_endpoint_ca_key": ca_key,
            "source_endpoint_tenant": _tenant(spec.source) if prometheus else "",
            "source_query": wishes.query or "",
            "source_range": wishes.range,
            "source_step": wishes.step,
        }
    )


def _unusable(wishes: ConfigFields, *, prometheus: bool) -> InvalidInput | None:
    """Return why the source can't be read: OpenTelemetry has no host, and its query is simpler."""
    for value, reason, field in (
        (wishes.query, "MissingQuery", "source.params.query"),
        (wishes.source_host or not prometheus, "MissingSourceHost", "source.host"),
    ):
        if not value:
            return InvalidInput(
                reason,
                f"source type {wishes.source_type} needs {field}: set it in the API's config or in"
                " spec",
            )
    selectors = () if prometheus else series_selector.parse(wishes.query or "")
    if isinstance(selectors, InvalidInput):
        return InvalidInput(selectors.reason, f"source.params.query: {selectors.message}")
    return None


def _token(side: Source | Scoring | None) -> SecretKeyRef | None:
    return side.auth.token_secret_ref if side and side.auth else None


def _authority(side: Source | Scoring | None) -> SecretKeyRef | None:
    return side.tls.ca_secret_ref if side and side.tls else None


def _service_account(source: Source | None) -> bool:
    return bool(source and source.auth and source.auth.service_account_token)


def _tenant(source: Source | None) -> str:
    return (source.tenant or "") if source else ""


def _reference(reference: SecretKeyRef | None) -> tuple[str, str]:
    """Return name and key in a Secret; empty where there is none."""
    return (reference.name, reference.key) if reference else ("", "")
