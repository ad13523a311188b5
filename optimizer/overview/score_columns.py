"""The entries of scores as columns: an app on a device, and its value on each managed cluster."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.placement_scores import status_written
from dsf.kube.port import Object
from optimizer.overview.score_overview import ScorerOverview
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.score_index import entries_of
from optimizer.wire.request import DEFAULT_FORMAT

MAX_KNOWN = 100_000
"""Entry names whose columns are kept: more than apps times devices, less than pods of a fleet."""


class ScoreColumn(NamedTuple):
    """What a column is about. `entry`: the name of entries that do not match the format."""

    app: str = ""
    device: str = ""
    entry: str = ""


ClusterValues = dict[str, int]
"""A value by managed cluster: the best of the entries that belong to one column.

That is what a plan counts unless its request says otherwise (`aggregation`).
"""


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The columns of one score. `written`: when each cluster's score was written last.

    `best` returns the better of two values.
    """

    dimension: DimensionFormat | None = None
    best: Callable[[int, int], int] = max
    columns: dict[ScoreColumn, ClusterValues] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)

    def column_of(self, entry: str, cluster: str) -> ScoreColumn:
        """Return the column of an entry; nodes, pods and the like share the one of their device."""
        labels = self.dimension.match(entry) if self.dimension else None
        if labels is None or labels.get("cluster", cluster) != cluster:
            return ScoreColumn(entry=entry)
        return ScoreColumn(labels.get("app", ""), labels.get("device", ""))

    def at_most(self, most: int) -> dict[ScoreColumn, ClusterValues]:
        """Return at most so many columns, in order.

        If there are more, those of one device count as one, with the best of its apps. If there
        are still more, those with values on the most clusters are left.
        """
        found = self.columns if len(self.columns) <= most else self._by_device()
        fullest = sorted(found, key=lambda column: (-len(found[column]), column))[:most]
        return {column: found[column] for column in sorted(fullest)}

    def _by_device(self) -> dict[ScoreColumn, ClusterValues]:
        found: dict[ScoreColumn, ClusterValues] = {}
        for column, values in self.columns.items():
            folded = found.setdefault(column._replace(app=""), {})
            for cluster, value in values.items():
                folded[cluster] = self.best(folded.get(cluster, value), value)
        return found


class FleetColumns:
    """The columns of all scores, filled from AddOnPlacementScores one after the other."""

    def __init__(self, scorers: Iterable[ScorerOverview] = ()) -> None:
        self._scorers = {item.score: item for item in scorers}
        self._scores: dict[str, ScoreColumns] = {}
        self._known: dict[tuple[str, str], ClusterValues] = {}

    @property
    def scores(self) -> Mapping[str, ScoreColumns]:
        """The columns by score name."""
        return self._scores

    def add(self, obj: Object) -> None:
        """Add the entries of an AddOnPlacementScore."""
        score, cluster = name_of(obj), str(obj["metadata"].get("namespace") or "")
        if score not in self._scores:
            self._scores[score] = self._empty(score)
        found = self._scores[score]
        written = status_written(obj)
        if written:
            found.written[cluster] = written
        for entry, value in entries_of(obj):
            values = self._values(found, score, entry, cluster)
            values[cluster] = found.best(values.get(cluster, value), value)

    def _empty(self, score: str) -> ScoreColumns:
        scorer = self._scorers.get(score)
        stated = DimensionFormat.parse(scorer.dimension_format if scorer else DEFAULT_FORMAT)
        lowest = scorer is not None and scorer.direction == "LowerIsBetter"
        known = stated if isinstance(stated, DimensionFormat) else None
        return ScoreColumns(known, min if lowest else max)

    def _values(self, found: ScoreColumns, score: str, entry: str, cluster: str) -> ClusterValues:
        """Return the column of an entry; clusters mostly have the same entries, so it is kept."""
        values = self._known.get((score, entry))
        if values is None:
            column = found.column_of(entry, cluster)
            values = found.columns.setdefault(column, {})
            named = found.dimension is not None and "cluster" in found.dimension.fields
            if not named and len(self._known) < MAX_KNOWN:
                self._known[score, entry] = values
        return values
