"""The entries of a score as columns: an app on a device, and its value on each managed cluster.

Most clusters have entries of the same names: their values are one array, and each name is read
once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dsf.api.scoring.dimension_format import DimensionFormat
from optimizer.domain.arrays import Ints, members_by_key
from optimizer.follow.overview.score_overview import ScorerOverview
from optimizer.snapshot.scores.score_row import ScoreRow, entry_names
from optimizer.wire.request import DEFAULT_FORMAT

MAX_KNOWN = 100_000
"""Entry names whose columns are kept: more than apps times devices, less than pods of a fleet."""

_NONE = np.iinfo(np.int64).min


class ScoreColumn(NamedTuple):
    """What a column is about. `entry`: the name of entries that do not match the format."""

    app: str = ""
    device: str = ""
    entry: str = ""


ColumnValues = Sequence[int | None]
"""A value for each managed cluster: the best of the entries that belong to one column.

That is what a plan counts unless its request says otherwise (`aggregation`).
"""


class ShownColumns(NamedTuple):
    """Some columns of a score, in order. `omitted`: how many there are besides, or are one."""

    columns: Mapping[ScoreColumn, ColumnValues]
    omitted: int


def score_columns(
    rows: Iterable[ScoreRow], scorer: ScorerOverview | None, clusters: Sequence[str], most: int
) -> ShownColumns:
    """Return at most so many columns of a score, with values in the order of the clusters.

    If there are more, those of one device count as one, with the best of its apps. If there are
    still more, those with values on the most clusters are left.
    """
    at = {cluster: number for number, cluster in enumerate(clusters)}
    known = [row for row in rows if row.cluster in at]
    found = _Columns(known, scorer, lambda column: column)
    every = len(found.numbers)
    if every > most:
        found = _Columns(known, scorer, lambda column: column._replace(app=""))
    shown = found.shown(most, at)
    return ShownColumns(shown, every - len(shown))


class _Alike(NamedTuple):
    """Rows whose entries have the same names, and the number of the column of each entry."""

    rows: Sequence[ScoreRow]
    columns: Ints


class _Columns:
    """The columns of some rows. `fold` returns the one that a column is shown as."""

    def __init__(
        self,
        rows: Sequence[ScoreRow],
        scorer: ScorerOverview | None,
        fold: Callable[[ScoreColumn], ScoreColumn],
    ) -> None:
        self.numbers = dict[ScoreColumn, int]()
        stated = DimensionFormat.parse(scorer.dimension_format if scorer else DEFAULT_FORMAT)
        self._dimension = stated if isinstance(stated, DimensionFormat) else None
        self._names_cluster = "cluster" in (self._dimension.fields if self._dimension else ())
        lowest = scorer is not None and scorer.direction == "LowerIsBetter"
        self._best = np.minimum if lowest else np.maximum
        self._fold = fold
        self._known = dict[str, int]()
        alike = members_by_key(
            ((row.names, row.cluster if self._names_cluster else ""), row) for row in rows
        )
        self._alike = [
            _Alike(members, np.array([self._number(name, cluster) for name in entry_names(names)]))
            for (names, cluster), members in alike.items()
            if names
        ]

    def shown(self, most: int, clusters: Mapping[str, int]) -> dict[ScoreColumn, ColumnValues]:
        """Return at most so many columns: those with values on the most clusters."""
        counts = np.zeros(len(self.numbers), dtype=np.int64)
        for rows, columns in self._alike:
            counts[np.unique(columns)] += len(rows)
        fullest = sorted(self.numbers, key=lambda one: (-counts[self.numbers[one]], one))[:most]
        kept = sorted(fullest)
        place = np.full(len(self.numbers), -1, dtype=np.int64)
        place[[self.numbers[column] for column in kept]] = np.arange(len(kept))
        values = np.full((len(kept), len(clusters)), _NONE, dtype=np.int64)
        for rows, columns in self._alike:
            entries = np.nonzero(place[columns] >= 0)[0]
            if not len(entries):
                continue
            entries = entries[np.argsort(place[columns[entries]], kind="stable")]
            to, starts = np.unique(place[columns[entries]], return_index=True)
            at = np.array([clusters[row.cluster] for row in rows])
            read = np.array([row.values for row in rows], dtype=np.int64)[:, entries]
            values[to[:, None], at[None, :]] = self._best.reduceat(read, starts, axis=1).T
        return {column: _listed(values[number]) for number, column in enumerate(kept)}

    def _number(self, entry: str, cluster: str) -> int:
        """Return the number of an entry's column; clusters mostly have the same entries."""
        number = self._known.get(entry)
        if number is None:
            column = self._fold(self._column_of(entry, cluster))
            number = self.numbers.setdefault(column, len(self.numbers))
            if not self._names_cluster and len(self._known) < MAX_KNOWN:
                self._known[entry] = number
        return number

    def _column_of(self, entry: str, cluster: str) -> ScoreColumn:
        """Return the column of an entry; nodes, pods and the like share the one of their device."""
        labels = self._dimension.match(entry) if self._dimension else None
        if labels is None or labels.get("cluster", cluster) != cluster:
            return ScoreColumn(entry=entry)
        return ScoreColumn(labels.get("app", ""), labels.get("device", ""))


def _listed(values: Ints) -> list[int | None]:
    found: list[int | None] = values.tolist()
    return [None if value == _NONE else value for value in found]
