"""The entries of scores as columns: an app on a device, and its value on each managed cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.placement_scores import status_written
from dsf.kube.port import Object
from optimizer.overview.scorer_overview import ScorerOverview
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.score_entries import entries_of
from optimizer.wire.request import DEFAULT_FORMAT

_DEFAULT = DimensionFormat.parse(DEFAULT_FORMAT)


class ScoreColumn(NamedTuple):
    """What a column is about. `entry`: the name of entries that do not match the format."""

    app: str = ""
    device: str = ""
    entry: str = ""


class Mean(NamedTuple):
    """The mean of a number of values, as their sum and number."""

    total: int
    number: int

    @property
    def value(self) -> float:
        """The mean, with at most two decimals."""
        return round(self.total / self.number, 2)


ClusterMeans = dict[str, Mean]
"""A value by managed cluster: the mean of the entries that belong to one column."""


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The columns of one score. `written`: when each cluster's score was written last."""

    dimension: DimensionFormat | None
    columns: dict[ScoreColumn, ClusterMeans] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)

    def column_of(self, entry: str, cluster: str) -> ScoreColumn:
        """Return the column of an entry; nodes, pods and the like share the one of their device."""
        labels = self.dimension.match(entry) if self.dimension else None
        if labels is None or labels.get("cluster", cluster) != cluster:
            return ScoreColumn(entry=entry)
        return ScoreColumn(labels.get("app", ""), labels.get("device", ""))


class FleetColumns:
    """The columns of all scores, filled from AddOnPlacementScores one after the other."""

    def __init__(self, scorers: Iterable[ScorerOverview] = ()) -> None:
        self._formats = {
            item.score: DimensionFormat.parse(item.dimension_format) for item in scorers
        }
        self._scores: dict[str, ScoreColumns] = {}

    @property
    def scores(self) -> Mapping[str, ScoreColumns]:
        """The columns by score name."""
        return self._scores

    def add(self, obj: Object) -> None:
        """Add the entries of an AddOnPlacementScore."""
        score, cluster = name_of(obj), str(obj["metadata"].get("namespace") or "")
        if score not in self._scores:
            stated = self._formats.get(score, _DEFAULT)
            known = stated if isinstance(stated, DimensionFormat) else None
            self._scores[score] = ScoreColumns(known)
        found = self._scores[score]
        written = status_written(obj)
        if written:
            found.written[cluster] = written
        for entry, value in entries_of(obj):
            column = found.columns.setdefault(found.column_of(entry, cluster), {})
            total, number = column.get(cluster, (0, 0))
            column[cluster] = Mean(total + value, number + 1)
