"""Resolves a DynamicScorer and the config of its scoring API to one scorer summary.

In mode Full the API's config wins. The DynamicScorer fills in what the config leaves open, and the
scoring host is that of `configURL` unless the API names one. In mode None only the DynamicScorer
counts. Secret references and the tenant always come from the DynamicScorer, because they decide
which data and tokens the API gets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dsf.api.crd.asked_context import AskedContext
from dsf.api.crd.dynamic_scorer import (
    DEFAULT_INTERVAL_SECONDS,
    DEFAULT_SCORING_PATH,
    DynamicScorerSpec,
)
from dsf.api.crd.forecast_rules import ForecastRules
from dsf.api.crd.score_meaning import (
    DeclaredMeaning,
    Direction,
    PublishedMeaning,
    ScoreRange,
    published,
    read_direction,
)
from dsf.api.crd.score_rules import DefaultScore, Normalize, OnFailure
from dsf.api.crd.scoring_params import ParamValue, params_problem
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scorer_summary import SEVERAL, ScorerSummary, SummarySource
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import listed
from dsf.hub.assess.source_resolution import (
    NO_SOURCE,
    PROMETHEUS,
    ChosenSource,
    authority_of,
    chosen_sources,
    filled,
    reference,
    resolve_source,
    rooted_path,
    token_of,
    trimmed_host,
    unused_names,
)
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.registered_scorer import is_full

FieldValue = (
    ParamValue | Normalize | OnFailure | DefaultScore | ForecastRules | ScoreRange | AskedContext
)

_WIRE_NAMES = {
    "scoring_host": "scoring.host",
    "scoring_path": "scoring.path",
    "score_name": "scoring.params.name",
    "interval": "scoring.params.interval",
    "normalize": "scoring.normalize",
    "on_failure": "scoring.onFailure",
    "default_score": "scoring.defaultScore",
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
    """The fields besides sources that one side sets; None if it does not. Intervals are seconds."""

    scoring_host: str | None = None
    scoring_path: str | None = None
    score_name: str | None = None
    interval: int | None = None
    normalize: Normalize | None = None
    on_failure: OnFailure | None = None
    default_score: DefaultScore | None = None
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
    served = None
    from_api = ConfigFields()
    if is_full(spec):
        if config is None:
            return InvalidInput("ConfigMissing", "the config endpoint has not answered yet")
        served, from_api = config, _fields_of(config)
        from_api = replace(from_api, scoring_host=from_api.scoring_host or server)
    from_spec, sources = _fields_of(spec), chosen_sources(spec, served)
    config_fields = _with_defaults(filled(from_api, from_spec), server)
    params = {**_params(spec), **_params(served)}
    summary = _with_sources(_summary(name, spec, config_fields, params), sources)
    if isinstance(summary, InvalidInput):
        return summary
    conflicts = (
        *_source_conflicts(spec, sources, served),
        *_conflicts(from_api, from_spec),
        *_param_conflicts(_params(spec), _params(served)),
    )
    return Resolved(summary, _declared(config_fields), conflicts)


def _fields_of(side: DynamicScorerSpec | ScorerConfig) -> ConfigFields:
    scoring = side.scoring
    pace = scoring.params if scoring else None
    return ConfigFields(
        scoring_host=trimmed_host(scoring.host) if scoring else None,
        scoring_path=rooted_path(scoring.path) if scoring else None,
        score_name=pace.name if pace else None,
        interval=pace.interval if pace else None,
        normalize=scoring.normalize if scoring else None,
        on_failure=scoring.on_failure if scoring else None,
        default_score=scoring.default_score if scoring else None,
        forecast=side.forecast,
        display_name=side.display_name,
        unit=side.unit,
        direction=read_direction(side.direction),
        score_range=side.range,
        context=side.context,
    )


def _params(side: DynamicScorerSpec | ScorerConfig | None) -> dict[str, ParamValue]:
    scoring = side.scoring if side else None
    return scoring.params.further if scoring and scoring.params else {}


def _declared(config_fields: ConfigFields) -> DeclaredMeaning:
    return DeclaredMeaning(
        display_name=config_fields.display_name,
        unit=config_fields.unit,
        direction=config_fields.direction,
        range=config_fields.score_range,
    )


def _conflicts(from_api: ConfigFields, from_spec: ConfigFields) -> Iterator[ConfigConflict]:
    for field, wire_name in _WIRE_NAMES.items():
        in_config, in_spec = getattr(from_api, field), getattr(from_spec, field)
        if in_config is not None and in_spec is not None and in_config != in_spec:
            yield ConfigConflict(wire_name, in_spec, in_config)


def _param_conflicts(
    in_spec: dict[str, ParamValue], in_config: dict[str, ParamValue]
) -> Iterator[ConfigConflict]:
    for key in sorted(in_spec.keys() & in_config.keys()):
        if in_spec[key] != in_config[key]:
            yield ConfigConflict(f"scoring.params.{key}", in_spec[key], in_config[key])


def _source_conflicts(
    spec: DynamicScorerSpec, sources: Sequence[ChosenSource], served: ScorerConfig | None
) -> Iterator[ConfigConflict]:
    if unused := unused_names(spec, sources):
        served_names = listed(one.name for one in sources if one.name)
        yield ConfigConflict("sources", listed(unused), served_names or "source")
    for one in sources if served else ():
        for field, in_spec, in_config in one.differences():
            yield ConfigConflict(field, in_spec, in_config)


def _with_defaults(config_fields: ConfigFields, server: str) -> ConfigFields:
    return filled(
        config_fields,
        ConfigFields(
            scoring_host=server,
            scoring_path=DEFAULT_SCORING_PATH,
            interval=DEFAULT_INTERVAL_SECONDS,
        ),
    )


def _summary(
    name: str,
    spec: DynamicScorerSpec,
    config_fields: ConfigFields,
    params: dict[str, ParamValue],
) -> ScorerSummary | InvalidInput:
    """Return the summary without its sources."""
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
    unusable = _unusable_formats(spec, config_fields.default_score)
    if unusable:
        return unusable
    if problem := params_problem(params):
        return InvalidInput("InvalidParams", f"scoring.params: {problem}")
    auth_name, auth_key = reference(token_of(spec.scoring))
    ca_name, ca_key = reference(authority_of(spec.scoring))
    return ScorerSummary(
        name=name,
        score_name=config_fields.score_name,
        source_type=NO_SOURCE,
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
        scoring_params=params,
        scoring_default_score=config_fields.default_score,
        score_dimension_formats=spec.dimension_formats[1:],
        context=config_fields.context,
    )


def _unusable_formats(spec: DynamicScorerSpec, default: DefaultScore | None) -> InvalidInput | None:
    """Return why no names of entries can be made; None if they can."""
    formats = list(map(DimensionFormat.parse, spec.dimension_formats))
    for form in formats:
        if isinstance(form, InvalidInput):
            return form
    fixed = any(isinstance(form, DimensionFormat) and not form.named for form in formats)
    if default is None or default.entries or fixed:
        return None
    return InvalidInput(
        "DefaultScoreUnnamed",
        "scoring.defaultScore has no entries: set scoring.defaultScore.entries, or a dimension"
        " format that names only ${cluster} and ${scoreName}",
    )


def _with_sources(
    summary: ScorerSummary | InvalidInput, chosen: Sequence[ChosenSource]
) -> ScorerSummary | InvalidInput:
    if isinstance(summary, InvalidInput):
        return summary
    sources = list[SummarySource]()
    for one in chosen:
        found = resolve_source(one)
        if isinstance(found, InvalidInput):
            return found
        sources.append(found)
    first = sources[0]
    if summary.forecast and first.type != PROMETHEUS:
        return InvalidInput(
            "ForecastWithoutPrometheus",
            f"forecast.truth.query needs source type Prometheus, not {first.type}: the"
            " truth is read from the source of the scorer, the first one of several",
        )
    if chosen[0].name:
        several = {"source_type": SEVERAL, "sources": tuple(sources)}
        return summary.model_copy(update=several)
    return summary.with_source(first)
