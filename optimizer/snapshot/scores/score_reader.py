"""Reads one named score from AddOnPlacementScores into an array, with issues for the rest."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.placement_scores import validity_of
from dsf.api.untrusted_text import UntrustedName, quoted
from dsf.kube.port import Object
from optimizer.domain.arrays import Floats, wide_enough
from optimizer.domain.issue import Issue
from optimizer.domain.score_matrix import ClusterDevice, ScoreMatrix, empty_scores
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.score_doubts import ScoreDoubts, TrustRule
from optimizer.snapshot.scores.score_index import (
    ClusterShape,
    EntryKey,
    ScoreIndex,
    entries_of,
    entry_name,
    key_of,
    scores_by_key,
)
from optimizer.wire.request import ScoreRef

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


class ScoreReader:
    """Reads one named score of the apps and devices in a score index.

    `missing`: the value of an app on a device without a usable score; None makes it NaN. `now` is
    aware. `trust`: from which trust on scores count in full; None uses all of them in full.
    """

    def __init__(
        self,
        wanted: ScoreIndex,
        score: ScoreRef,
        *,
        missing: float | None,
        now: datetime,
        trust: TrustRule | None = None,
    ) -> None:
        self._wanted = wanted
        self._score = score
        self._missing = np.nan if missing is None else missing
        self._now = now
        self._doubts = ScoreDoubts(trust, score.score_name) if trust else None
        self._apps = tuple(wanted.apps)
        self._by_cluster = "cluster" in score.dimension.fields
        made = partial(_made_keys, score.dimension, self._apps)
        self._keys_of = lru_cache(MAX_CACHED_SHAPES)(made)
        self._read: dict[str, Issue | tuple[_MissingScores, ...]] = {}
        self._values = empty_scores(len(self._apps), len(wanted.places))
        for cluster in wanted.clusters if missing is not None else ():
            self._leave_out(cluster)

    def add(self, obj: Object) -> None:
        """Read an AddOnPlacementScore if its name and cluster are needed.

        It replaces one that was read before for the same cluster.
        """
        cluster = str(obj["metadata"].get("namespace") or "")
        if name_of(obj) != self._score.score_name or cluster not in self._wanted.clusters:
            return
        refused = self._doubts.refuse(cluster, obj) if self._doubts else None
        wrong = _unusable(obj, cluster, self._score, self._now) or refused
        if wrong:
            self._leave_out(cluster)
            self._read[cluster] = wrong
        else:
            entries = scores_by_key(cluster, entries_of(obj), self._score.dimension)
            self._read[cluster] = tuple(self._fill(cluster, entries))

    def scores(self) -> ScoreMatrix:
        """Return what was read so far; doubted scores are weighed."""
        for cluster, columns in self._doubts.weighed() if self._doubts else ():
            self._put(cluster, [self._complete(column) for column in columns])
        return ScoreMatrix(self._wanted.apps, self._wanted.places, self._values)

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
                message = f"cluster {cluster} has no AddOnPlacementScore {self._score.score_name}"
                yield partial(Issue, reason="MissingScoreObject", message=message, cluster=cluster)
            else:
                yield partial(_same, read)

    def _leave_out(self, cluster: str) -> None:
        asked = self._wanted.clusters[cluster][1].asked
        self._put(cluster, [np.full(len(rows), self._missing) for rows in asked])

    def _fill(
        self, cluster: str, entries: Mapping[EntryKey, int | None]
    ) -> Iterator[_MissingScores]:
        """Take a cluster's values from its entries; yield devices for which some have none."""
        shape, columns = self._wanted.clusters[cluster][1], list[Floats]()
        pairs = zip(shape.devices, shape.asked, self._keys(cluster, shape), strict=True)
        for device, rows, keys in pairs:
            found = np.array([entries.get(key) for key in keys], dtype=np.float64)  # None: NaN
            lacking = np.nonzero(np.isnan(found))[0].tolist()
            columns.append(found)
            if lacking:
                first = (
                    (int(rows[i]), "AmbiguousScore" if keys[i] in entries else "MissingScore")
                    for i in lacking[:MAX_ISSUES_PER_DEVICE]
                )
                yield _MissingScores(device, len(lacking), tuple(first))
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
        self._values = wide_enough(self._values, block)
        self._values[:, first : first + len(columns)] = block

    def _keys(self, cluster: str, shape: ClusterShape) -> list[list[EntryKey]]:
        """Return, for each device of a cluster, the keys of the scores that are asked for."""
        keys = self._keys_of(shape)
        if not self._by_cluster:
            return keys
        return [
            [key.replace(_ANY_CLUSTER, cluster) if isinstance(key, str) else key for key in own]
            for own in keys
        ]

    def _lost(
        self, cluster: str, lost: Sequence[_MissingScores], asked: Container[ClusterDevice] | None
    ) -> Iterator[LazyIssue]:
        pairs = [(row, item.device, why) for item in lost for row, why in item.first]
        for row, device, why in sorted(pairs):
            if why != "MissingScore" or asked is None or (cluster, device) in asked:
                app = self._apps[row]
                yield partial(_entry_issue, why, self._score, cluster, app, device)
        for item in sorted(lost, key=lambda item: (item.first[0][0], item.device)):
            more = item.apps - len(item.first)
            if more and (asked is None or (cluster, item.device) in asked):
                yield partial(_further_issue, cluster, item.device, more)


def _unusable(obj: Object, cluster: str, score: ScoreRef, now: datetime) -> Issue | None:
    """Return why no entry of an AddOnPlacementScore can be used; None if some can."""
    name = score.score_name
    if validity_of(obj, now)[1]:
        until = (obj.get("status") or {}).get("validUntil")
        message = (
            f"cluster {cluster}: AddOnPlacementScore {name} was valid until {UntrustedName(until)}"
        )
        return Issue(reason="ExpiredScore", message=message, cluster=cluster)
    first = next((entry for entry, _ in entries_of(obj)), None)
    dimension = score.dimension
    if first is None or any(dimension.match(text) is not None for text, _ in entries_of(obj)):
        return None
    message = (
        f"cluster {cluster}: no entry of AddOnPlacementScore {name} has the form"
        f" {quoted(str(dimension))}; there is {quoted(first)}"
    )
    return Issue(reason="WrongScoreFormat", message=message, cluster=cluster)


def _made_keys(
    dimension: DimensionFormat, apps: Sequence[str], shape: ClusterShape
) -> list[list[EntryKey]]:
    return [
        [key_of(dimension, _ANY_CLUSTER, apps[row], device) for row in rows.tolist()]
        for device, rows in zip(shape.devices, shape.asked, strict=True)
    ]


def _same(issue: Issue) -> Issue:
    return issue


def _entry_issue(reason: str, score: ScoreRef, cluster: str, app: str, device: str) -> Issue:
    entry = entry_name(score.dimension, cluster, app, device)
    what = "no entry" if reason == "MissingScore" else "several entries"
    where = f"device {UntrustedName(device)}" if device else "a supply that names no device"
    return Issue(
        reason=reason,
        message=f"cluster {cluster}: AddOnPlacementScore {score.score_name} has {what} for app"
        f" {UntrustedName(app)} on {where} (looked for {quoted(entry)} in the form"
        f" {quoted(str(score.dimension))})",
        cluster=cluster,
        device=device,
    )


def _further_issue(cluster: str, device: str, count: int) -> Issue:
    where = f"for device {UntrustedName(device)}" if device else "for a supply that names no device"
    return Issue(
        reason="MissingScore",
        message=f"cluster {cluster}: {count} more apps have no usable entry {where}",
        cluster=cluster,
        device=device,
    )
