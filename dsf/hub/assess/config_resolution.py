"""Resolves a DynamicScorer and the config of its scoring API to one scorer summary.

In mode Full the API's config wins. The DynamicScorer fills in what the config leaves open, and the
scoring host is that of `configURL` unless the API names one. In mode None only the DynamicScorer
counts. Secret references and the tenant always come from the DynamicScorer, because they decide
which data and tokens the API gets.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from dsf.api.crd import dynamic_scorer as defaults
from dsf.api.crd.asked_context import AskedContext
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec, Scoring
from dsf.api.crd.forecast_rules import ForecastRules
from dsf.api.crd.score_meaning import (
    DeclaredMeaning,
    Direction,
    PublishedMeaning,
    ScoreRange,
    published,
    read_direction,
)
from dsf.api.crd.score_rules import Normalize, OnFailure
from dsf.api.crd.scorer_source import (
    DEFAULT_RANGE_SECONDS,
    DEFAULT_SOURCE_PATH,
    DEFAULT_STEP_SECONDS,
    SecretKeyRef,
    Source,
)
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring import series_selector
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.registered_scorer import is_full

FieldValue = str | int | Normalize | OnFailure | ForecastRules | ScoreRange | AskedContext

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
    "forecast": "forecast",
    "display_name": "displayName",
    "unit": "unit",
    "direction": "direction",
    "score_range": "range",
    "context": "context",
}


@dataclass(frozen=True, slots=True)
class ConfigConflict:
    """A field in which the DynamicScorer and the API's config differ; the config won."""

    field: str
    in_spec: FieldValue
    in_config: FieldValue


@dataclass(frozen=True, slots=True)
class Resolved:
    """The summary that agents get, the fields in which spec and the API's config differ.

    `declared` is what the scores that the API returns mean.
    """

    summary: ScorerSummary
    declared: DeclaredMeaning
    conflicts: tuple[ConfigConflict, ...] = ()

    @property
    def meaning(self) -> PublishedMeaning:
        """What the published scores mean."""
        return published(self.declared, self.summary.scoring_normalize)


@dataclass(frozen=True, slots=True)
class ConfigFields:
    """The fields that one side sets; None if it does not. Range, step and interval are seconds."""

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
    forecast: ForecastRules | None = None
    display_name: str | None = None
    unit: str | None = None
    direction: Direction | None = None
    score_range: ScoreRange | None = None
    context: AskedContext | None = None


def resolve(
    name: str, spec: DynamicScorerSpec, config: ScorerConfig | None
) -> Resolved | InvalidInput:
    """Return the summary of the scorer `name`; `config` is the API's, needed only in mode Full."""
    server = urls.server(spec.config_url, "spec.configURL")
    if isinstance(server, InvalidInput):
        return server
    from_api = ConfigFields()
    if is_full(spec):
        if config is None:
            return InvalidInput("ConfigMissing", "the config endpoint has not answered yet")
        from_api = _fields_of(config)
        from_api = replace(from_api, scoring_host=from_api.scoring_host or server)
    from_spec = _fields_of(spec)
    config_fields = _with_defaults(_over(from_api, from_spec), server)
    summary = _summary(name, spec, config_fields)
    if isinstance(summary, InvalidInput):
        return summary
    return Resolved(summary, _declared(config_fields), tuple(_conflicts(from_api, from_spec)))


def _fields_of(side: DynamicScorerSpec | ScorerConfig) -> ConfigFields:
    source, scoring = side.source, side.scoring
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
        forecast=side.forecast,
        display_name=side.display_name,
        unit=side.unit,
        direction=read_direction(side.direction),
        score_range=side.range,
        context=side.context,
    )


def _declared(config_fields: ConfigFields) -> DeclaredMeaning:
    return DeclaredMeaning(
        display_name=config_fields.display_name,
        unit=config_fields.unit,
        direction=config_fields.direction,
        range=config_fields.score_range,
    )


def _host(host: str | None) -> str | None:
    return host.rstrip("/") or None if host else None


def _path(path: str | None) -> str | None:
    return "/" + path.lstrip("/") if path else None


def _over(first: ConfigFields, second: ConfigFields) -> ConfigFields:
    """Return the fields of `first`, and those of `second` that `first` does not set."""
    chosen = {item.name: getattr(first, item.name) for item in fields(ConfigFields)}
    return replace(second, **{field: value for field, value in chosen.items() if value is not None})


def _conflicts(from_api: ConfigFields, from_spec: ConfigFields) -> Iterator[ConfigConflict]:
    for field, wire_name in _WIRE_NAMES.items():
        in_config, in_spec = getattr(from_api, field), getattr(from_spec, field)
        if in_config is not None and in_spec is not None and in_config != in_spec:
            yield ConfigConflict(wire_name, in_spec, in_config)


def _with_defaults(config_fields: ConfigFields, server: str) -> ConfigFields:
    return _over(
        config_fields,
        ConfigFields(
            source_type="None",
            range=DEFAULT_RANGE_SECONDS,
            step=DEFAULT_STEP_SECONDS,
            scoring_host=server,
            scoring_path=defaults.DEFAULT_SCORING_PATH,
            interval=defaults.DEFAULT_INTERVAL_SECONDS,
        ),
    )


def _summary(
    name: str, spec: DynamicScorerSpec, config_fields: ConfigFields
) -> ScorerSummary | InvalidInput:
    if config_fields.score_name is None or config_fields.interval is None:
        return InvalidInput(
            "MissingScoreName",
            "the score has no name: set scoring.params.name in the API's config"
            " or spec.scoring.params.name",
        )
    scoring = urls.endpoint(
        config_fields.scoring_host or "", config_fields.scoring_path or "", "scoring"
    )
    if isinstance(scoring, InvalidInput):
        return scoring
    form = DimensionFormat.parse(spec.score_dimension_format)
    if isinstance(form, InvalidInput):
        return form
    auth_name, auth_key = _reference(_token(spec.scoring))
    ca_name, ca_key = _reference(_authority(spec.scoring))
    summary = ScorerSummary(
        name=name,
        score_name=config_fields.score_name,
        source_type=config_fields.source_type or "None",
        scoring_endpoint=scoring,
        scoring_interval=config_fields.interval,
        scoring_endpoint_auth_name=auth_name,
        scoring_endpoint_auth_key=auth_key,
        scoring_endpoint_ca_name=ca_name,
        scoring_endpoint_ca_key=ca_key,
        location=spec.location,
        score_destination=spec.score_destination,
        score_dimension_format=spec.score_dimension_format,
        scoring_normalize=config_fields.normalize,
        scoring_on_failure=config_fields.on_failure,
        forecast=config_fields.forecast,
        scoring_range=config_fields.score_range,
        context=config_fields.context,
    )
    if summary.forecast and summary.source_type != "Prometheus":
        return InvalidInput(
            "ForecastWithoutPrometheus",
            f"forecast.truth.query needs source type Prometheus, not {summary.source_type}: the"
            " truth is read from the source of the scorer",
        )
    return summary if summary.source_type == "None" else _with_source(summary, spec, config_fields)


def _with_source(
    summary: ScorerSummary, spec: DynamicScorerSpec, config_fields: ConfigFields
) -> ScorerSummary | InvalidInput:
    prometheus = summary.source_type == "Prometheus"
    unusable = _unusable(config_fields, prometheus=prometheus)
    if unusable:
        return unusable
    path = config_fields.source_path or (DEFAULT_SOURCE_PATH if prometheus else "")
    host = config_fields.source_host
    endpoint = urls.endpoint(host, path, "source") if host else ""
    if isinstance(endpoint, InvalidInput):
        return endpoint
    source = spec.source or Source(type=summary.source_type)
    auth_name, auth_key = _reference(_token(source))
    ca_name, ca_key = _reference(_authority(source))
    return summary.model_copy(
        update={
            "source_endpoint": endpoint,
            "source_endpoint_auth_name": auth_name,
            "source_endpoint_auth_key": auth_key,
            "source_endpoint_auth_service_account": bool(
                source.auth and source.auth.service_account_token
            ),
            "source_endpoint_ca_name": ca_name,
            "source_endpoint_ca_key": ca_key,
            "source_endpoint_tenant": (source.tenant or "") if prometheus else "",
            "source_query": config_fields.query or "",
            "source_range": config_fields.range,
            "source_step": config_fields.step,
        }
    )


def _unusable(config_fields: ConfigFields, *, prometheus: bool) -> InvalidInput | None:
    """Return why the source is unusable; None if it is usable."""
    for value, reason, field in (
        (config_fields.query, "MissingQuery", "source.params.query"),
        (config_fields.source_host or not prometheus, "MissingSourceHost", "source.host"),
    ):
        if not value:
            return InvalidInput(
                reason,
                f"source type {config_fields.source_type} needs {field}: set it in the API's config"
                " or in spec",
            )
    selectors = () if prometheus else series_selector.parse(config_fields.query or "")
    if isinstance(selectors, InvalidInput):
        return InvalidInput(selectors.reason, f"source.params.query: {selectors.message}")
    return None


def _token(side: Source | Scoring | None) -> SecretKeyRef | None:
    return side.auth.token_secret_ref if side and side.auth else None


def _authority(side: Source | Scoring | None) -> SecretKeyRef | None:
    return side.tls.ca_secret_ref if side and side.tls else None


def _reference(reference: SecretKeyRef | None) -> tuple[str, str]:
    """Return the name and the key in a Secret; both empty without a reference."""
    return (reference.name, reference.key) if reference else ("", "")
