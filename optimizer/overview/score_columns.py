"""The entries of scores as columns: an app on a device, and its value on each managed cluster."""

from collections.abc import Iterable, Mapping
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

_DEFAULT = DimensionFormat.parse(DEFAULT_FORMAT)


class ScoreColumn(NamedTuple):
    """What a column is about. `entry`: the name of entries that do not match the format."""

    app: str = ""
    device: str = ""
    entry: str = ""


@dataclass(slots=True)
class ClusterMeans:
    """A value by managed cluster: the mean of the entries that belong to one column.

    `numbers`: how many entries a cluster has, where it has several.
    """

    totals: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, cluster: str, total: int, number: int = 1) -> None:
        """Add the sum of a number of entries of one cluster."""
        if cluster in self.totals:
            self.numbers[cluster] = self.numbers.get(cluster, 1) + number
            self.totals[cluster] += total
            return
        self.totals[cluster] = total
        if number > 1:
            self.numbers[cluster] = number

    def mean(self, cluster: str) -> float | None:
        """Return the mean of a cluster with at most two decimals; None without entries."""
        total = self.totals.get(cluster)
        return None if total is None else round(total / self.numbers.get(cluster, 1), 2)


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The columns of one score. `written`: when each cluster's score was written last."""

    dimension: DimensionFormat | None = None
    columns: dict[ScoreColumn, ClusterMeans] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)

    def column_of(self, entry: str, cluster: str) -> ScoreColumn:
        """Return the column of an entry; nodes, pods and the like share the one of their device."""
        labels = self.dimension.match(entry) if self.dimension else None
        if labels is None or labels.get("cluster", cluster) != cluster:
            return ScoreColumn(entry=entry)
        return ScoreColumn(labels.get("app", ""), labels.get("device", ""))

    def at_most(self, most: int) -> dict[ScoreColumn, ClusterMeans]:
        """Return at most so many columns, in order.

        If there are more, those of one device count as one, with the mean of its apps. If there
        are still more, those with values on the most clusters are left.
        """
        found = self.columns if len(self.columns) <= most else self._by_device()
        fullest = sorted(found, key=lambda column: (-len(found[column].totals), column))[:most]
        return {column: found[column] for column in sorted(fullest)}

    def _by_device(self) -> dict[ScoreColumn, ClusterMeans]:
        found: dict[ScoreColumn, ClusterMeans] = {}
        for column, means in self.columns.items():
            folded = found.setdefault(column._replace(app=""), ClusterMeans())
            for cluster, total in means.totals.items():
                folded.add(cluster, total, means.numbers.get(cluster, 1))
        return found


class FleetColumns:
    """The columns of all scores, filled from AddOnPlacementScores one after the other."""

    def __init__(self, scorers: Iterable[ScorerOverview] = ()) -> None:
        self._formats = {
            item.score: DimensionFormat.parse(item.dimension_format) for item in scorers
        }
        self._scores: dict[str, ScoreColumns] = {}
        self._known: dict[tuple[str, str], ClusterMeans] = {}

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
            self._means(found, score, entry, cluster).add(cluster, value)

    def _means(self, found: ScoreColumns, score: str, entry: str, cluster: str) -> ClusterMeans:
        """Return the column of an entry; clusters mostly have the same entries, so it is kept."""
        means = self._known.get((score, entry))
        if means is None:
            column = found.column_of(entry, cluster)
            means = found.columns.setdefault(column, ClusterMeans())
            named = found.dimension is not None and "cluster" in found.dimension.fields
            if not named and len(self._known) < MAX_KNOWN:
                self._known[score, entry] = means
        return means
