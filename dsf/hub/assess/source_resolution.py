"""Resolves the sources of a scorer: the API's config over the DynamicScorer, source by source.

Sources of the same name belong together; a DynamicScorer with one source fills in every source of
a config with several. Secret references and the tenant always come from the DynamicScorer, because
they decide which data and tokens the API gets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from dsf.api.crd.dynamic_scorer import DynamicScorerSpec, Scoring
from dsf.api.crd.scorer_source import (
    DEFAULT_RANGE_SECONDS,
    DEFAULT_SOURCE_PATH,
    DEFAULT_STEP_SECONDS,
    SecretKeyRef,
    Source,
)
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring import series_selector
from dsf.api.scoring.scorer_summary import SummarySource
from dsf.api.scoring.scoring_api import ConfiguredSource, ScorerConfig
from dsf.hub.snapshot import urls

T = TypeVar("T")

PROMETHEUS, NO_SOURCE = "Prometheus", "None"

_TYPES = {"prometheus": PROMETHEUS, "opentelemetry": "OpenTelemetry", "none": NO_SOURCE}
_WIRE_NAMES = {
    "type": "type",
    "host": "host",
    "path": "path",
    "query": "params.query",
    "range": "params.range",
    "step": "params.step",
}


@dataclass(frozen=True, slots=True)
class SourceFields:
    """What one side sets of a source, None what it leaves open; `range` and `step` are seconds."""

    type: str | None = None
    host: str | None = None
    path: str | None = None
    query: str | None = None
    range: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class ChosenSource:
    """A source of a scorer: what the API's config and the DynamicScorer say about it.

    `name` is empty for the only source of a scorer. `registered` is that of the DynamicScorer.
    """

    name: str
    from_api: SourceFields
    from_spec: SourceFields
    registered: Source | None

    @property
    def place(self) -> str:
        """The path of its fields, for messages."""
        return f"sources.{self.name}" if self.name else "source"

    def differences(self) -> Iterator[tuple[str, str | int, str | int]]:
        """Yield the fields that both sides set differently: path, in spec, in the config."""
        for field, wire_name in _WIRE_NAMES.items():
            in_spec, in_config = getattr(self.from_spec, field), getattr(self.from_api, field)
            if in_config is not None and in_spec is not None and in_config != in_spec:
                yield f"{self.place}.{wire_name}", in_spec, in_config


def filled(first: T, second: T) -> T:
    """Return a dataclass with the fields of `first`, and those of `second` that it leaves open."""
    both: tuple[Any, Any] = (first, second)
    chosen = {item.name: getattr(first, item.name) for item in fields(both[0])}
    given = {field: value for field, value in chosen.items() if value is not None}
    filled_in: T = replace(both[1], **given)
    return filled_in


def chosen_sources(
    spec: DynamicScorerSpec, config: ScorerConfig | None
) -> tuple[ChosenSource, ...]:
    """Return the sources of a scorer; `config` is None unless the API's config counts."""
    if config is not None and config.sources is not None:
        registered = {one.name: one for one in spec.sources or ()}
        return tuple(
            _chosen(one.name, one, registered.get(one.name, spec.source)) for one in config.sources
        )
    if config is None and spec.sources is not None:
        return tuple(_chosen(one.name, None, one) for one in spec.sources)
    return (_chosen("", config.source if config else None, spec.source),)


def unused_names(spec: DynamicScorerSpec, chosen: Sequence[ChosenSource]) -> list[str]:
    """Return the names of the DynamicScorer's sources that the API's config does not have."""
    used = {one.name for one in chosen}
    return sorted({one.name for one in spec.sources or ()} - used)


def _chosen(name: str, served: ConfiguredSource | None, registered: Source | None) -> ChosenSource:
    return ChosenSource(name, _fields_of(served), _fields_of(registered), registered)


def _fields_of(source: Source | ConfiguredSource | None) -> SourceFields:
    if source is None:
        return SourceFields()
    asked = source.params
    return SourceFields(
        type=_TYPES[source.type.lower()],
        host=trimmed_host(source.host),
        path=rooted_path(source.path),
        query=(asked.query or "").strip() or None if asked else None,
        range=asked.range if asked else None,
        step=asked.step if asked else None,
    )


def resolve_source(chosen: ChosenSource) -> SummarySource | InvalidInput:
    """Return a source as agents get it."""
    found = filled(chosen.from_api, chosen.from_spec)
    type_ = found.type or NO_SOURCE
    if type_ == NO_SOURCE:
        return SummarySource(name=chosen.name, type=NO_SOURCE)
    prometheus = type_ == PROMETHEUS
    if unusable := _unusable(found, type_, chosen.place):
        return unusable
    path = found.path or (DEFAULT_SOURCE_PATH if prometheus else "")
    endpoint = urls.endpoint(found.host, path, chosen.place) if found.host else ""
    if isinstance(endpoint, InvalidInput):
        return endpoint
    source = chosen.registered or Source(type=type_)
    auth_name, auth_key = reference(token_of(source))
    ca_name, ca_key = reference(authority_of(source))
    return SummarySource(
        name=chosen.name,
        type=type_,
        endpoint=endpoint,
        endpoint_auth_name=auth_name,
        endpoint_auth_key=auth_key,
        endpoint_auth_service_account=bool(source.auth and source.auth.service_account_token),
        endpoint_ca_name=ca_name,
        endpoint_ca_key=ca_key,
        endpoint_tenant=(source.tenant or "") if prometheus else "",
        query=found.query or "",
        range=DEFAULT_RANGE_SECONDS if found.range is None else found.range,
        step=found.step or DEFAULT_STEP_SECONDS,
    )


def _unusable(found: SourceFields, type_: str, place: str) -> InvalidInput | None:
    """Return why a source is unusable; None if it is usable."""
    prometheus = type_ == PROMETHEUS
    for value, reason, field in (
        (found.query, "MissingQuery", "params.query"),
        (found.host or not prometheus, "MissingSourceHost", "host"),
    ):
        if not value:
            return InvalidInput(
                reason,
                f"source type {type_} needs {place}.{field}: set it in the API's config or in spec",
            )
    selectors = () if prometheus else series_selector.parse(found.query or "")
    if isinstance(selectors, InvalidInput):
        return InvalidInput(selectors.reason, f"{place}.params.query: {selectors.message}")
    return None


def trimmed_host(host: str | None) -> str | None:
    """Return a host without the slash at its end; None for an empty one."""
    return host.rstrip("/") or None if host else None


def rooted_path(path: str | None) -> str | None:
    """Return a path with one slash at its beginning; None for an empty one."""
    return "/" + path.lstrip("/") if path else None


def token_of(side: Source | Scoring | None) -> SecretKeyRef | None:
    """Return the reference to the token of a source or a scoring endpoint."""
    return side.auth.token_secret_ref if side and side.auth else None


def authority_of(side: Source | Scoring | None) -> SecretKeyRef | None:
    """Return the reference to the trusted certificates of a source or a scoring endpoint."""
    return side.tls.ca_secret_ref if side and side.tls else None


def reference(ref: SecretKeyRef | None) -> tuple[str, str]:
    """Return the name and the key in a Secret; both empty without a reference."""
    return (ref.name, ref.key) if ref else ("", "")
