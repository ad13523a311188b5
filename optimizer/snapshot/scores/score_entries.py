"""Finds the entry of an AddOnPlacementScore that holds the score of an app on a device."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.placement_scores import validity_of
from dsf.api.scoring.track_record import read_trust
from dsf.kube.port import Object
from optimizer.wire.result import ScoreEntry, ScoreObject

_KNOWN = frozenset({"cluster", "app", "device"})

EntryKey = str | tuple[str, str]
"""The key of an entry: its name, or the app and device that its name contains."""


def key_of(dimension: DimensionFormat, cluster: str, app: str, device: str) -> EntryKey:
    """Return under which key the score of a pair is found."""
    if _KNOWN.issuperset(dimension.fields):
        return entry_name(dimension, cluster, app, device)
    fields = dimension.fields
    return app if "app" in fields else "", device if "device" in fields else ""


def entry_name(dimension: DimensionFormat, cluster: str, app: str, device: str) -> str:
    """Return the entry name of a pair; placeholders other than these stay empty."""
    return dimension.render({"cluster": cluster, "app": app, "device": device})


def scores_by_key(
    cluster: str, entries: Iterable[tuple[str, int]], dimension: DimensionFormat
) -> dict[EntryKey, int | None]:
    """Index the entries of one cluster's scores by key; None where several have the same.

    A format of `${cluster}`, `${app}` and `${device}` alone names one entry for a pair. With other
    placeholders an entry belongs to the pair that its name spells.
    """
    exact = _KNOWN.issuperset(dimension.fields)
    values: dict[EntryKey, int | None] = {}
    for name, value in entries:
        key = name if exact else _app_and_device(name, cluster, dimension)
        if key is not None:
            values[key] = None if key in values else value
    return values


def entries_of(obj: Object) -> Iterator[tuple[str, int]]:
    """Yield an AddOnPlacementScore's names and values, but entries that lack either."""
    for item in (obj.get("status") or {}).get("scores") or []:
        name, value = item.get("name"), item.get("value")
        if isinstance(name, str) and type(value) is int:
            yield name, value


def score_object(obj: Object, *, now: datetime) -> ScoreObject:
    """Read an AddOnPlacementScore to be shown; `now` is aware."""
    valid_until, expired = validity_of(obj, now)
    return ScoreObject(
        cluster=str(obj["metadata"].get("namespace") or ""),
        name=str(obj["metadata"]["name"]),
        valid_until=valid_until,
        expired=expired,
        trust=read_trust(obj),
        scores=tuple(ScoreEntry(name=name, value=value) for name, value in entries_of(obj)),
    )


def _app_and_device(name: str, cluster: str, dimension: DimensionFormat) -> tuple[str, str] | None:
    """Return the app and device that an entry name spells, if it speaks of this cluster."""
    labels = dimension.match(name)
    if labels is None or labels.get("cluster", cluster) != cluster:
        return None
    return labels.get("app", ""), labels.get("device", "")
