"""Reads one named score from AddOnPlacementScores into an array, with issues for the rest."""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from dsf.kube.port import Object
from optimizer.domain.arrays import Floats, wide_enough
from optimizer.domain.issue import Issue
from optimizer.domain.score_matrix import (
    ClusterDevice,
    CountedEntries,
    CountedEntry,
    ScoreMatrix,
    empty_scores,
)
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.entry_formats import (
    ClaimedTwice,
    EntryFormats,
    EntryKey,
    FormatScores,
    claimed_twice,
    entry_issue,
    expired,
    further_issue,
    key_of,
    wrong_format,
)
from optimizer.snapshot.scores.score_doubts import ScoreDoubts, TrustRule
from optimizer.snapshot.scores.score_index import ClusterShape, ScoreIndex, entries_of

MAX_ISSUES_PER_DEVICE = 20
"""Issues listed for one device of a cluster; the further ones are counted in one issue."""

MAX_CACHED_SHAPES = 32
"""Shapes whose keys are cached. Memory must stay bounded when every cluster is different."""

_ANY_CLUSTER = "\0"
"""Placeholder for the cluster in keys that all clusters share; no cluster has this name."""

LazyIssue = Callable[[], Issue]
"""Makes an issue on demand, because there can be millions that nobody lists."""


class _MissingScores(NamedTuple):
    """The number of apps without a usable score on a device, and the first of them with reasons."""

    device: str
    apps: int
    first: tuple[tuple[int, str], ...]


FormatKeys = list[list[list[EntryKey]]]
"""The keys of the scores that are asked for: format by format, device by device."""


class ScoreReader:
    """Reads one named score of the apps and devices in a score index.

    `missing`: the value of an app on a device without a usable score; None makes it NaN. `now` is
    aware. `trust`: from which trust on scores count in full; None uses all of them in full.
    `explained`: whether the scores say which entries they are. `last`: one of the same arguments,
    from which the scores that have not changed are taken, unless they are doubted or explained.
    """

    def __init__(
        self,
        wanted: ScoreIndex,
        formats: EntryFormats,
        *,
        missing: float | None,
        now: datetime,
        trust: TrustRule | None = None,
        explained: bool = False,
        last: "ScoreReader | None" = None,
    ) -> None:
        self._wanted = wanted
        self._formats = formats
        self._missing = np.nan if missing is None else missing
        self._now = now
        self._doubts = ScoreDoubts(trust, formats.score) if trust else None
        self._apps = tuple(wanted.apps)
        made = partial(_made_keys, formats, self._apps)
        self._keys_of = lru_cache(MAX_CACHED_SHAPES)(made)
        self._read: dict[str, Issue | tuple[_MissingScores, ...]] = {}
        self._versions: dict[str, str] = {}
        self._last = None if trust or explained else last
        self._values = empty_scores(len(self._apps), len(wanted.places))
        self._counted = _Counted(self._values.shape) if explained else None
        for cluster in wanted.clusters if missing is not None else ():
            self._leave_out(cluster)

    def add(self, obj: Object) -> None:
        """Read an AddOnPlacementScore if its name and cluster are needed.

        It replaces one that was read before for the same cluster.
        """
        cluster = str(obj["metadata"].get("namespace") or "")
        if name_of(obj) != self._formats.score or cluster not in self._wanted.clusters:
            return
        refused = self._doubts.refuse(cluster, obj) if self._doubts else None
        wrong = expired(obj, cluster, self._now) or refused
        version = self._versions[cluster] = str(obj["metadata"].get("resourceVersion") or "")
        if not wrong and self._last and (known := self._last.used(cluster, version)):
            block, self._read[cluster] = known
            self._write(self._wanted.clusters[cluster][0], block)
            return
        if not wrong:
            keys = self._keys(cluster, self._wanted.clusters[cluster][1])
            found = _entries(obj, cluster, self._formats, keys)
            if not isinstance(found, Issue):
                self._read[cluster] = tuple(self._fill(cluster, found, keys))
                return
            wrong = found
        self._leave_out(cluster)
        self._read[cluster] = wrong

    def used(self, cluster: str, version: str) -> tuple[Floats, tuple[_MissingScores, ...]] | None:
        """Return what was read of a version of a cluster's score; None if it was not used."""
        read = self._read.get(cluster)
        if not version or version != self._versions.get(cluster) or not isinstance(read, tuple):
            return None
        first, shape = self._wanted.clusters[cluster]
        block = self._values[:, first : first + len(shape.devices)]
        return np.asarray(block, np.float64), read

    def scores(self) -> ScoreMatrix:
        """Return what was read so far; doubted scores are weighed. Nothing is read afterwards."""
        self._last = None
        for cluster, columns in self._doubts.weighed() if self._doubts else ():
            self._put(cluster, [self._complete(column) for column in columns])
        counted = self._counted.entries() if self._counted else None
        return ScoreMatrix(self._wanted.apps, self._wanted.places, self._values, counted)

    def issues(self, asked: Container[ClusterDevice] | None) -> Iterator[LazyIssue]:
        """Yield the issues, cluster by cluster.

        `asked`: only on these devices a missing score is an issue; None for all devices.
        """
        doubts = self._doubts.issues() if self._doubts else {}
        if self._doubts:
            used = (name for name, read in self._read.items() if isinstance(read, tuple))
            yield from self._doubts.unknown(used)
        for cluster in self._wanted.clusters:
            read = self._read.get(cluster)
            if isinstance(read, tuple):
                if cluster in doubts:
                    yield doubts[cluster]
                yield from self._lost(cluster, read, asked)
            elif read is None:
                message = f"cluster {cluster} has no AddOnPlacementScore {self._formats.score}"
                yield partial(Issue, reason="MissingScoreObject", message=message, cluster=cluster)
            else:
                yield partial(replace, read)

    def _leave_out(self, cluster: str) -> None:
        first, shape = self._wanted.clusters[cluster]
        self._put(cluster, [np.full(len(rows), self._missing) for rows in shape.asked])
        if self._counted:
            self._counted.forget(first, len(shape.devices))

    def _fill(
        self, cluster: str, found: Sequence[FormatScores], keys: FormatKeys
    ) -> Iterator[_MissingScores]:
        """Take a cluster's values from its entries; yield devices for which some have none."""
        first, shape = self._wanted.clusters[cluster]
        columns = list[Floats]()
        if self._counted:
            self._counted.forget(first, len(shape.devices))
        for number, (device, rows) in enumerate(zip(shape.devices, shape.asked, strict=True)):
            own = [of_format[number] for of_format in keys]
            values, formats = _column(found, own)
            columns.append(values)
            lacking = np.nonzero(np.isnan(values))[0].tolist()
            if lacking:
                reasons = (
                    (int(rows[i]), "MissingScore" if formats[i] is None else "AmbiguousScore")
                    for i in lacking[:MAX_ISSUES_PER_DEVICE]
                )
                yield _MissingScores(device, len(lacking), tuple(reasons))
            if self._counted:
                for at, of in enumerate(formats):
                    if of is not None and not np.isnan(values[at]):
                        entry = found[of].entry(own[of][at])
                        self._counted.note(int(rows[at]), first + number, entry)
        if self._doubts:
            self._doubts.note(cluster, columns)
        self._put(cluster, [self._complete(column) for column in columns])

    def _complete(self, column: Floats) -> Floats:
        """Return scores with the value of a missing one where there is none."""
        return np.where(np.isnan(column), self._missing, column)

    def _put(self, cluster: str, columns: Sequence[Floats]) -> None:
        first, shape = self._wanted.clusters[cluster]
        block = np.full((len(self._apps), len(columns)), np.nan)
        for number, (rows, column) in enumerate(zip(shape.asked, columns, strict=True)):
            block[rows, number] = column
        self._write(first, block)

    def _write(self, first: int, block: Floats) -> None:
        self._values = wide_enough(self._values, block)
        self._values[:, first : first + block.shape[1]] = block

    def _keys(self, cluster: str, shape: ClusterShape) -> FormatKeys:
        """Return the keys of the scores that are asked for on a cluster."""
        return [
            [[_with_cluster(key, cluster) for key in own] for own in keys]
            if "cluster" in dimension.fields
            else keys
            for dimension, keys in zip(self._formats.formats, self._keys_of(shape), strict=True)
        ]

    def _lost(
        self, cluster: str, lost: Sequence[_MissingScores], asked: Container[ClusterDevice] | None
    ) -> Iterator[LazyIssue]:
        pairs = [(row, item.device, why) for item in lost for row, why in item.first]
        for row, device, why in sorted(pairs):
            if why != "MissingScore" or asked is None or (cluster, device) in asked:
                app = self._apps[row]
                yield partial(entry_issue, why, self._formats, cluster, app, device)
        for item in sorted(lost, key=lambda item: (item.first[0][0], item.device)):
            more = item.apps - len(item.first)
            if more and (asked is None or (cluster, item.device) in asked):
                yield partial(further_issue, cluster, item.device, more)


class _Counted:
    """Notes which entry each score is. `shape`: the numbers of apps and places."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._numbers: dict[CountedEntry, int] = {}
        self._table = np.full(shape, -1, dtype=np.int32)

    def forget(self, first: int, places: int) -> None:
        self._table[:, first : first + places] = -1

    def note(self, row: int, column: int, entry: CountedEntry) -> None:
        self._table[row, column] = self._numbers.setdefault(entry, len(self._numbers))

    def entries(self) -> CountedEntries:
        return CountedEntries(tuple(self._numbers), self._table)


def _column(
    found: Sequence[FormatScores], keys: Sequence[Sequence[EntryKey]]
) -> tuple[Floats, Sequence[int | None]]:
    """Return the scores of the apps on a device, NaN without one, and the formats of their entries.

    `keys`: for each format those of the apps. A format is None where no entry has the key.
    """
    values = np.array([found[0].values.get(key) for key in keys[0]], dtype=np.float64)  # None: NaN
    formats: list[int | None] = [0] * len(values)
    for at in np.nonzero(np.isnan(values))[0].tolist():
        formats[at] = of = next(
            (number for number, own in enumerate(keys) if own[at] in found[number].values), None
        )
        value = None if of is None else found[of].values[keys[of][at]]
        values[at] = np.nan if value is None else value
    return values, formats


def _entries(
    obj: Object, cluster: str, formats: EntryFormats, keys: FormatKeys
) -> tuple[FormatScores, ...] | Issue:
    """Return the scores of an AddOnPlacementScore in each format, or why none can be used."""
    named = dict[str, int | None]()
    for name, value in entries_of(obj):
        named[name] = None if name in named else value
    found = formats.read(cluster, named, keys)
    if isinstance(found, ClaimedTwice):
        return claimed_twice(found, cluster, formats.score)
    usable = formats.guessed and any(scores.values for scores in found)
    if not named or usable or any(map(formats.has_form, named)):
        return found
    return wrong_format(formats, cluster, next(iter(named)))


def _made_keys(formats: EntryFormats, apps: Sequence[str], shape: ClusterShape) -> FormatKeys:
    return [
        [
            [key_of(dimension, _ANY_CLUSTER, apps[row], device) for row in rows.tolist()]
            for device, rows in zip(shape.devices, shape.asked, strict=True)
        ]
        for dimension in formats.formats
    ]


def _with_cluster(key: EntryKey, cluster: str) -> EntryKey:
    return key.replace(_ANY_CLUSTER, cluster) if isinstance(key, str) else key
