"""Read AddOnPlacementScores: the value of each entry on each managed cluster."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from dsf.api.times import read_time

ByDimension = dict[str, dict[str, int]]
"""Entry name -> managed cluster -> value."""


def by_score(objects: Iterable[Mapping[str, Any]]) -> dict[str, ByDimension]:
    """Return AddOnPlacementScore name -> entry name -> managed cluster -> value, all sorted.

    A managed cluster is the namespace of its objects.
    """
    found: dict[str, ByDimension] = {}
    for obj in objects:
        name, cluster = obj["metadata"]["name"], obj["metadata"]["namespace"]
        for entry in (obj.get("status") or {}).get("scores") or []:
            found.setdefault(name, {}).setdefault(entry["name"], {})[cluster] = entry["value"]
    return {
        name: {entry: dict(sorted(values.items())) for entry, values in sorted(entries.items())}
        for name, entries in sorted(found.items())
    }


def validity_of(obj: Mapping[str, Any], now: datetime) -> tuple[datetime | None, bool]:
    """Return until when an AddOnPlacementScore is valid, and whether that has passed.

    `now` is aware. A `validUntil` that can't be read counts as passed: OCM can't read the object.
    """
    text = (obj.get("status") or {}).get("validUntil")
    if text is None:
        return None, False
    until = read_time(text)
    return until, until is None or until <= now


def status_written(obj: Mapping[str, Any]) -> datetime | None:
    """Return when the status of an object was written last; None if `managedFields` do not say."""
    times = (
        read_time(str(entry.get("time") or ""))
        for entry in obj["metadata"].get("managedFields") or ()
        if entry.get("subresource") == "status"
    )
    return max(filter(None, times), default=None)
