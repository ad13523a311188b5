"""Resolves a DynamicScorer and the config of its scoring API to one scorer summary.

In mode Full the API's config wins, field by field. The DynamicScorer fills in what the config
leaves open, and the scoring host is that of `configURL` unless the API names one. In mode None only
the DynamicScorer counts. Sources of the same name belong together; a DynamicScorer with one source
fills in every source of a config with several. Secret references and the tenant always come from
the DynamicScorer, because they decide which data and tokens the API gets.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from dsf.api.crd.dynamic_scorer import (
    DEFAULT_INTERVAL_SECONDS,
    DEFAULT_SCORING_PATH,
    DynamicScorerSpec,
    Scoring,
)
from dsf.api.crd.score_meaning import DeclaredMeaning, PublishedMeaning, published, read_direction
from dsf.api.crd.scorer_source import Auth, Source, SourceParams
from dsf.api.crd.scoring_params import ScoringParams, params_problem
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scorer_summary import SEVERAL, ScorerSummary, SummarySource
from dsf.api.scoring.scoring_api import ConfiguredScoring, ConfiguredSource, ScorerConfig
from dsf.api.untrusted_text import InvalidInput, listed
from dsf.hub.assess.summary_source import (
    KUBERNETES,
    NO_SOURCE,
    PROMETHEUS,
    summary_source,
    unusable_client,
)
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.registered_scorer import is_full

M = TypeVar("M", bound=BaseModel)

_TYPES = {one.lower(): one for one in (PROMETHEUS, "OpenTelemetry", KUBERNETES, NO_SOURCE)}
_MERGED = ("scoring", "forecast", *DeclaredMeaning.model_fields, "context")
"""The fields of both sides that are merged; sources are matched by name before that."""
_SECTIONS = (ConfiguredScoring, ScoringParams, SourceParams)
"""Objects that are merged field by field; any other value is one side's as a whole."""


@dataclass(frozen=True, slots=True)
class ConfigConflict:
    """A field in which the DynamicScorer and the API's config differ; the config won."""

    field: str
    in_spec: object
    in_config: object


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
class _SourcePair:
    """A source of a scorer, in the DynamicScorer and in the API's config; None where it is not.

    `name` is empty for the only source of a scorer.
    """

    name: str
    registered: Source | None
    served: ConfiguredSource | None

    @property
    def place(self) -> str:
        """The path of its fields, for messages."""
        return f"sources.{self.name}" if self.name else "source"

    @property
    def merged(self) -> Source | None:
        """The source in use."""
        if self.served is None:
            return self.registered
        return _overlaid(self.registered or Source(), self.served, Source.model_fields)

    def conflicts(self) -> Iterator[ConfigConflict]:
        """Yield the fields that both sides set differently."""
        if self.registered and self.served:
            yield from _conflicts(self.registered, self.served, Source.model_fields, self.place)


def resolve(
    name: str, spec: DynamicScorerSpec, config: ScorerConfig | None
) -> Resolved | InvalidInput:
    """Return the summary of the scorer `name`; `config` is the API's, needed only in mode Full."""
    server = urls.server(spec.config_url, "spec.configURL")
    if isinstance(server, InvalidInput):
        return server
    own, served = _normalized(spec), None
    if is_full(spec):
        if config is None:
            return InvalidInput("ConfigMissing", "the config endpoint has not answered yet")
        served = _normalized(config)
        scoring = _copied(served.scoring, {"host": served.scoring.host or server})
        served = _copied(served, {"scoring": scoring})
    chosen = _overlaid(own, served, _MERGED) if served else own
    sources = _source_pairs(own, served)
    summary = _with_sources(_summary(name, chosen, server), sources)
    if isinstance(summary, InvalidInput):
        return summary
    declared = DeclaredMeaning.model_validate(
        {field: getattr(chosen, field) for field in DeclaredMeaning.model_fields}
    )
    return Resolved(summary, declared, tuple(_all_conflicts(own, served, sources)))


def _normalized(side: M) -> M:
    """Return one side with hosts, paths, types and the direction as they are compared."""
    sides: Any = side
    scoring = sides.scoring or Scoring()
    return _copied(
        side,
        {
            "direction": read_direction(sides.direction),
            "scoring": _copied(scoring, _address(scoring)),
            "source": sides.source and _normalized_source(sides.source),
            "sources": sides.sources and [_normalized_source(one) for one in sides.sources],
        },
    )


def _normalized_source(source: Source | ConfiguredSource) -> Source | ConfiguredSource:
    params = source.params
    asked = params and _copied(params, {"query": (params.query or "").strip() or None})
    kind = _TYPES[source.type.lower()]
    return _copied(source, {"type": kind, "params": asked, **_address(source)})


def _address(
    side: Source | ConfiguredSource | Scoring | ConfiguredScoring,
) -> dict[str, str | None]:
    """Return the host without the slash at its end, and the path with one; None for empty ones."""
    return {
        "host": side.host.rstrip("/") or None if side.host else None,
        "path": "/" + side.path.lstrip("/") if side.path else None,
    }


def _copied(model: M, changes: Mapping[str, Any]) -> M:
    """Return a model with changes; itself if it has them, because a copy costs microseconds."""
    fields = model.__dict__
    changed = {name: value for name, value in changes.items() if fields.get(name) is not value}
    return model.model_copy(update=changed) if changed else model


def _overlaid(base: M, over: BaseModel, names: Iterable[str] | None) -> M:
    """Return `base` with those of the fields that `over` sets; sections field by field."""
    own, given = _set_fields(base, names), _set_fields(over, names)
    for name, value in given.items():
        if isinstance(value, _SECTIONS) and name in own:
            given[name] = _overlaid(own[name], value, None)
    return _copied(base, given)


def _conflicts(
    in_spec: BaseModel, in_config: BaseModel, names: Iterable[str] | None, place: str = ""
) -> Iterator[ConfigConflict]:
    """Yield those of the fields that both sides set differently; of sections, their fields."""
    own, known = _set_fields(in_spec, names), type(in_config).model_fields
    for name, value in _set_fields(in_config, names).items():
        if name not in own or own[name] == value:
            continue
        alias = known[name].alias if name in known else name
        path = f"{place}.{alias or name}".lstrip(".")
        if isinstance(value, _SECTIONS):
            yield from _conflicts(own[name], value, None, path)
        else:
            yield ConfigConflict(path, own[name], value)


def _set_fields(side: BaseModel, names: Iterable[str] | None) -> dict[str, Any]:
    """Return the fields that one side sets, further parameters included; only those of `names`."""
    fields = {**side.__dict__, **(side.further if isinstance(side, ScoringParams) else {})}
    every = fields if names is None else names
    return {name: fields[name] for name in every if fields.get(name) is not None}


def _source_pairs(spec: DynamicScorerSpec, config: ScorerConfig | None) -> list[_SourcePair]:
    """Return the sources of a scorer; `config` is None unless the API's config counts."""
    if config is not None and config.sources is not None:
        own = {one.name: one for one in spec.sources or ()}
        return [
            _SourcePair(one.name, own.get(one.name, spec.source), one) for one in config.sources
        ]
    if config is None and spec.sources is not None:
        return [_SourcePair(one.name, one, None) for one in spec.sources]
    return [_SourcePair("", spec.source, config.source if config else None)]


def _all_conflicts(
    spec: DynamicScorerSpec, config: ScorerConfig | None, sources: Sequence[_SourcePair]
) -> Iterator[ConfigConflict]:
    if config is None:
        return
    served = [one.name for one in sources if one.name]
    if unused := sorted({one.name for one in spec.sources or ()} - set(served)):
        yield ConfigConflict("sources", listed(unused), listed(served) or "source")
    for one in sources:
        yield from one.conflicts()
    yield from _conflicts(spec, config, _MERGED)


def _summary(name: str, spec: DynamicScorerSpec, server: str) -> ScorerSummary | InvalidInput:
    """Return the summary of a merged spec, without its sources."""
    scoring = spec.scoring or Scoring()
    params = scoring.params or ScoringParams()
    if params.name is None:
        return InvalidInput(
            "MissingScoreName",
            "the score has no name: set scoring.params.name in the API's config"
            " or spec.scoring.params.name",
        )
    endpoint = urls.endpoint(
        scoring.host or server, scoring.path or DEFAULT_SCORING_PATH, "scoring"
    )
    if isinstance(endpoint, InvalidInput):
        return endpoint
    if unusable := _unusable_formats(spec, scoring):
        return unusable
    if problem := params_problem(params.further):
        return InvalidInput("InvalidParams", f"scoring.params: {problem}")
    if unusable := unusable_client(scoring.auth, "scoring"):
        return unusable
    auth = scoring.auth or Auth()
    token, authority = auth.token_secret_ref, scoring.tls and scoring.tls.ca_secret_ref
    return ScorerSummary(
        name=name,
        score_name=params.name,
        source_type=NO_SOURCE,
        scoring_endpoint=endpoint,
        scoring_interval=params.interval or DEFAULT_INTERVAL_SECONDS,
        scoring_endpoint_auth_name=token.name if token else "",
        scoring_endpoint_auth_key=token.key if token else "",
        scoring_endpoint_ca_name=authority.name if authority else "",
        scoring_endpoint_ca_key=authority.key if authority else "",
        scoring_endpoint_certificate_name=auth.certificate_name,
        scoring_endpoint_oauth2=auth.oauth2,
        location=spec.location,
        score_destination=spec.score_destination,
        score_dimension_format=spec.score_dimension_format,
        scoring_normalize=scoring.normalize,
        scoring_on_failure=scoring.on_failure,
        forecast=spec.forecast,
        scoring_range=spec.range,
        scoring_params=params.further,
        scoring_default_score=scoring.default_score,
        score_dimension_formats=spec.dimension_formats[1:],
        context=spec.context,
    )


def _unusable_formats(spec: DynamicScorerSpec, scoring: Scoring) -> InvalidInput | None:
    """Return why no names of entries can be made; None if they can."""
    formats = list(map(DimensionFormat.parse, spec.dimension_formats))
    for form in formats:
        if isinstance(form, InvalidInput):
            return form
    fixed = any(isinstance(form, DimensionFormat) and not form.named for form in formats)
    if scoring.default_score is None or scoring.default_score.entries or fixed:
        return None
    return InvalidInput(
        "DefaultScoreUnnamed",
        "scoring.defaultScore has no entries: set scoring.defaultScore.entries, or a dimension"
        " format that names only ${cluster} and ${scoreName}",
    )


def _with_sources(
    summary: ScorerSummary | InvalidInput, pairs: Sequence[_SourcePair]
) -> ScorerSummary | InvalidInput:
    if isinstance(summary, InvalidInput):
        return summary
    sources = list[SummarySource]()
    for pair in pairs:
        source = summary_source(pair.merged, pair.name, pair.place)
        if isinstance(source, InvalidInput):
            return source
        sources.append(source)
    first = sources[0]
    if summary.forecast and first.type != PROMETHEUS:
        return InvalidInput(
            "ForecastWithoutPrometheus",
            f"forecast.truth.query needs source type Prometheus, not {first.type}: the"
            " truth is read from the source of the scorer, the first one of several",
        )
    if first.name:
        return summary.model_copy(update={"source_type": SEVERAL, "sources": tuple(sources)})
    return summary.with_source(first)
