"""AddOnPlacementScores as tables: which entry is the score of an app on a device."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from dsf.api.dimension import DimensionFormat
from dsf.kube.port import Object
from optimizer.results import ScoreEntry, ScoreObject

Missing = Literal["MissingScore", "AmbiguousScore"]

_KNOWN = frozenset({"cluster", "app", "device"})


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The entries of one cluster's AddOnPlacementScore, looked up by app and device.

    A format of `${cluster}`, `${app}` and `${device}` alone names one entry for a pair. With
    other placeholders an entry belongs to the pair that its name spells; several such entries are
    ambiguous.
    """

    cluster: str
    dimension: DimensionFormat
    by_name: Mapping[str, tuple[int, ...]]
    by_labels: Mapping[tuple[str, str], tuple[int, ...]]

    def value(self, app: str, device: str) -> int | Missing:
        """Return the score of a pair, or why there is none."""
        values = self._values(app, device)
        if not values:
            return "MissingScore"
        return values[0] if len(values) == 1 else "AmbiguousScore"

    def _values(self, app: str, device: str) -> tuple[int, ...]:
        if _exact(self.dimension):
            return self.by_name.get(entry_name(self.dimension, self.cluster, app, device), ())
        fields = self.dimension.fields
        pair = (app if "app" in fields else "", device if "device" in fields else "")
        return self.by_labels.get(pair, ())


def entry_name(dimension: DimensionFormat, cluster: str, app: str, device: str) -> str:
    """Return the entry name of a pair; placeholders other than these stay empty."""
    return dimension.render({"cluster": cluster, "app": app, "device": device})


def table(score: ScoreObject, dimension: DimensionFormat) -> ScoreTable:
    """Index the entries of one cluster's scores."""
    by_name: dict[str, list[int]] = defaultdict(list)
    by_labels: dict[tuple[str, str], list[int]] = defaultdict(list)
    for entry in score.scores:
        by_name[entry.name].append(entry.value)
        labels = None if _exact(dimension) else dimension.match(entry.name)
        if labels is not None and labels.get("cluster", score.cluster) == score.cluster:
            by_labels[labels.get("app", ""), labels.get("device", "")].append(entry.value)
    return ScoreTable(
        score.cluster,
        dimension,
        {name: tuple(values) for name, values in by_name.items()},
        {labels: tuple(values) for labels, values in by_labels.items()},
    )


def score_object(obj: Object, *, now: datetime) -> ScoreObject:
    """Read an AddOnPlacementScore; entries without a name and an integer value are left out.

    `now` is aware. A `validUntil` that can't be read counts as expired.
    """
    status = obj.get("status") or {}
    valid_until, readable = _time(status.get("validUntil"))
    return ScoreObject(
        cluster=str(obj["metadata"].get("namespace") or ""),
        name=str(obj["metadata"]["name"]),
        valid_until=valid_until,
        expired=not readable or (valid_until is not None and valid_until <= now),
        scores=tuple(_entry(item) for item in status.get("scores") or [] if _usable(item)),
    )


def _exact(dimension: DimensionFormat) -> bool:
    return _KNOWN.issuperset(dimension.fields)


def _usable(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("name"), str) and type(item.get("value")) is int


def _entry(item: Mapping[str, Any]) -> ScoreEntry:
    return ScoreEntry(name=item["name"], value=item["value"])


def _time(text: object) -> tuple[datetime | None, bool]:
    if text is None:
        return None, True
    try:
        parsed = datetime.fromisoformat(str(text))
    except ValueError:
        return None, False
    return (parsed, True) if parsed.tzinfo else (None, False)
