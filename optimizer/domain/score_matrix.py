"""One named score of every app on every device, as an array because there can be millions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dsf.api.scoring.dimension_format import DimensionFormat
from optimizer.domain.arrays import WIDTHS, FloatArray, wide_enough

ScoreKey = tuple[str, str, str]
"""Cluster, app and device."""

ClusterDevice = tuple[str, str]
"""Cluster and device."""


class CountedEntry(NamedTuple):
    """The entry that counts for several places: its name, in which what they have is left open.

    `several`: from how many entries the score was aggregated, in words; empty if it is one.
    """

    form: DimensionFormat
    several: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CountedEntries:
    """Which entry counts for each place. `table` [apps, places] has its number; -1: none."""

    entries: Sequence[CountedEntry]
    table: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrix(Mapping[ScoreKey, float]):
    """The scores of one name: a mapping from (cluster, app, device) to the score.

    `table` [apps, places] is NaN where there is no score. `apps` and `places` give the row and the
    column; a place is a device of a cluster. `counted`: the entries that the scores are; None if
    nobody asks for them.
    """

    apps: Mapping[str, int]
    places: Mapping[ClusterDevice, int]
    table: FloatArray
    counted: CountedEntries | None = None

    @classmethod
    def of(cls, values: Mapping[ScoreKey, float]) -> Self:
        """Return the scores of a dictionary."""
        return cls({}, {}, empty_scores(0, 0)).with_values(values)

    def __getitem__(self, key: ScoreKey) -> float:
        """Return a score; raises KeyError if there is none."""
        cluster, app, device = key
        value = float(self.table[self.apps[app], self.places[cluster, device]])
        if np.isnan(value):
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[ScoreKey]:
        """Yield what has a score, by cluster, app and device; for small fleets."""
        for cluster, places in groupby(self.places, key=lambda place: place[0]):
            own = list(places)
            for app in self.apps:
                keys = ((cluster, app, device) for _, device in own)
                yield from (key for key in keys if key in self)

    def __len__(self) -> int:
        """Return how many scores there are."""
        return int(np.count_nonzero(~np.isnan(self.table)))

    def entry(self, key: ScoreKey) -> str:
        """Return the name of the entry that a score is; empty if it is none, or not known."""
        cluster, app, device = key
        row, column = self.apps.get(app), self.places.get((cluster, device))
        if self.counted is None or row is None or column is None:
            return ""
        number = int(self.counted.table[row, column])
        if number < 0:
            return ""
        form, several = self.counted.entries[number]
        return f"{form.bound({'cluster': cluster, 'app': app, 'device': device})}{several}"

    def of_app(self, app: str) -> NDArray[np.float64]:
        """Return the scores of an app by place, and NaN after the last."""
        row = np.full(len(self.places) + 1, np.nan)
        if app in self.apps:
            row[:-1] = self.table[self.apps[app]]
        return row

    def lacks(self, app: str) -> bytes:
        """Return the places without a score of an app, as bytes; equal bytes mean equal places."""
        return np.isnan(self.of_app(app)).tobytes()

    def known(self) -> frozenset[ClusterDevice]:
        """Return the places for which some app has a score."""
        scored = np.any(~np.isnan(self.table), axis=0).tolist()
        return frozenset(place for place, found in zip(self.places, scored, strict=True) if found)

    def with_values(self, added: Mapping[ScoreKey, float]) -> Self:
        """Return the scores with others added; new apps, clusters and devices extend the matrix."""
        apps, places = dict(self.apps), dict(self.places)
        for cluster, app, device in added:
            apps.setdefault(app, len(apps))
            places.setdefault((cluster, device), len(places))
        numbers = np.array(list(added.values()), dtype=np.float64)
        values = wide_enough(empty_scores(len(apps), len(places)), numbers)
        rows, columns = self.table.shape
        values = values.astype(np.promote_types(values.dtype, self.table.dtype))
        values[:rows, :columns] = self.table
        at = [(apps[app], places[cluster, device]) for cluster, app, device in added]
        for (row, column), number in zip(at, numbers.tolist(), strict=True):
            values[row, column] = number
        return type(self)(apps, places, values)


def empty_scores(apps: int, places: int) -> FloatArray:
    """Return an array [apps, places] without any score."""
    return np.full((apps, places), np.nan, dtype=WIDTHS[0])
