"""Read published scores: AddOnPlacementScores, and what DynamicScorers say about theirs."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT, DynamicScorerSpec
from dsf.api.crd.score_meaning import PublishedMeaning, published
from dsf.api.crd.score_rules import MEDIAN
from dsf.api.names import HUB_NAMESPACE, score_object_name
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.times import read_time

ByDimension = dict[str, dict[str, int]]
"""Entry name -> managed cluster -> value."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""When scores expired whose `validUntil` can't be read."""


def by_score(objects: Iterable[Mapping[str, Any]]) -> dict[str, ByDimension]:
    """Return AddOnPlacementScore name -> entry name -> managed cluster -> value, all sorted.

    A managed cluster is the namespace of its objects.
    """
    by_name: dict[str, ByDimension] = {}
    for obj in objects:
        name, cluster = obj["metadata"]["name"], obj["metadata"]["namespace"]
        for entry in (obj.get("status") or {}).get("scores") or []:
            by_name.setdefault(name, {}).setdefault(entry["name"], {})[cluster] = entry["value"]
    return {
        name: {entry: dict(sorted(values.items())) for entry, values in sorted(entries.items())}
        for name, entries in sorted(by_name.items())
    }


def valid_until(obj: Mapping[str, Any]) -> datetime | None:
    """Return until when an AddOnPlacementScore is valid; None if it does not say.

    A `validUntil` that can't be read is LONG_AGO: OCM can't read the object.
    """
    text = (obj.get("status") or {}).get("validUntil")
    return None if text is None else read_time(text) or LONG_AGO


def validity_of(obj: Mapping[str, Any], now: datetime) -> tuple[datetime | None, bool]:
    """Return until when an AddOnPlacementScore is valid, and whether that has passed.

    `now` is aware. The time is None if it is missing or can't be read.
    """
    until = valid_until(obj)
    return None if until == LONG_AGO else until, until is not None and until <= now


def status_written(obj: Mapping[str, Any]) -> datetime | None:
    """Return when the status of an object was written last; None if `managedFields` do not say."""
    times = (
        read_time(str(entry.get("time") or ""))
        for entry in obj["metadata"].get("managedFields") or ()
        if entry.get("subresource") == "status"
    )
    return max(filter(None, times), default=None)


def published_score(scorer: Mapping[str, Any]) -> str:
    """Return the name of the AddOnPlacementScores of a DynamicScorer; empty if it has none yet.

    The last synced configuration wins over the spec.
    """
    status, spec = scorer.get("status") or {}, scorer.get("spec") or {}
    synced = _param_name(status.get("lastSyncedConfig") or {})
    return score_object_name(str(status.get("scoreName") or "") or synced or _param_name(spec))


def format_for_apps(scorer: Mapping[str, Any]) -> str:
    """Return the dimension format of a DynamicScorer that names apps; the first if none does."""
    spec = scorer.get("spec") or {}
    further = spec.get("scoreDimensionFormats") or ()
    formats = [str(spec.get("scoreDimensionFormat") or ""), *map(str, further)]
    return next((each for each in formats if "${app}" in each), formats[0])


def declared_formats(
    scorers: Iterable[Mapping[str, Any]],
) -> dict[str, tuple[DimensionFormat, ...]]:
    """Return the dimension formats of published scores, by the name of their AddOnPlacementScores.

    Of several DynamicScorers with one score, the oldest publishes it. One that the hub controller
    has not seen counts in its namespace only: elsewhere, anybody may have written it.
    """
    known: dict[str, tuple[DimensionFormat, ...]] = {}
    for scorer in sorted(scorers, key=_age):
        spec, status = scorer.get("spec") or {}, scorer.get("status") or {}
        served = status.get("scoreName") or scorer["metadata"].get("namespace") == HUB_NAMESPACE
        further = spec.get("scoreDimensionFormats") or ()
        stated = (spec.get("scoreDimensionFormat") or DEFAULT_FORMAT, *further)
        parsed = (DimensionFormat.parse(str(text)) for text in stated)
        formats = tuple(each for each in parsed if isinstance(each, DimensionFormat))
        if formats and served and (score := published_score(scorer)):
            known.setdefault(score, formats)
    return known


def forecast_quantiles(scorers: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return which quantile published scores forecast, by the name of their AddOnPlacementScores.

    Scores that are no forecasts are left out. Of several DynamicScorers with one score, the oldest
    publishes it.
    """
    known: dict[str, float] = {}
    for scorer in sorted(scorers, key=_age):
        synced = (scorer.get("status") or {}).get("lastSyncedConfig") or {}
        forecast = synced.get("forecast") or (scorer.get("spec") or {}).get("forecast")
        score = published_score(scorer)
        if score and forecast:
            known.setdefault(score, float(forecast.get("quantile", MEDIAN)))
    return known


def published_meaning(scorer: Mapping[str, Any]) -> PublishedMeaning:
    """Return what the scores of a DynamicScorer mean as published; empty if that is not known.

    The hub controller states it in the status. Where it has not seen the object, as in files, the
    spec counts, in the default namespace only: elsewhere, anybody may have written it.
    """
    status, spec = scorer.get("status") or {}, scorer.get("spec") or {}
    try:
        if status.get("scoreName") or status.get("meaning"):
            return PublishedMeaning.model_validate(status.get("meaning") or {})
        if scorer["metadata"].get("namespace") == HUB_NAMESPACE:
            declared = DynamicScorerSpec.model_validate(spec)
            return published(declared, declared.scoring.normalize if declared.scoring else None)
    except ValidationError:
        pass
    return PublishedMeaning()


def meanings(scorers: Iterable[Mapping[str, Any]]) -> dict[str, PublishedMeaning]:
    """Return what is known of published scores, by the name of their AddOnPlacementScores.

    Of several DynamicScorers with one score, the oldest publishes it.
    """
    known: dict[str, PublishedMeaning] = {}
    for scorer in sorted(scorers, key=_age):
        meaning, score = published_meaning(scorer), published_score(scorer)
        if score and meaning != PublishedMeaning():
            known.setdefault(score, meaning)
    return known


def _age(scorer: Mapping[str, Any]) -> tuple[str, str]:
    metadata = scorer["metadata"]
    return str(metadata.get("creationTimestamp") or ""), str(metadata["name"])


def _param_name(document: Mapping[str, Any]) -> str:
    scoring = document.get("scoring") or {}
    return str((scoring.get("params") or {}).get("name") or "")
