"""From the results of a scoring call to the entries of an AddOnPlacementScore.

The rules, in this order, for each result:

1. A score that is not finite is dropped and counted.
2. The labels are cut to 256 characters; a missing one is empty. The agent itself sets `cluster`
   and `scoreName`, whatever the result says.
3. The first result of a name counts; later ones of the same name are dropped and counted. The
   metrics drop only a later one whose labels are all the same.
4. The value is rounded down and brought into -100..100, what OCM accepts; the latter is counted.

Entries are ordered by name. Where they are too many for one object, the last of that order are
left out and counted.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from dsf.api.dimension import PLACEHOLDERS, DimensionFormat
from dsf.api.scoring_api import ScoreResult

LABEL_LIMIT = 256
LOWEST, HIGHEST = -100, 100

OBJECT_BYTES = 1 << 20
"""Room for the entries; etcd accepts 1.5 MiB per object (etcd's `--max-request-bytes`)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of `status.scores`."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One score as a metric: label values in the order of PLACEHOLDERS, the unrounded score."""

    labels: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Scores:
    """What a round publishes, and how many results the rules changed or dropped."""

    entries: tuple[Entry, ...] = ()
    samples: tuple[Sample, ...] = ()
    not_finite: int = 0
    duplicates: int = 0
    clamped: int = 0
    cut: int = 0


def convert(
    results: Iterable[ScoreResult],
    *,
    cluster: str,
    score_name: str,
    dimension: DimensionFormat,
    object_bytes: int = OBJECT_BYTES,
) -> Scores:
    """Apply the rules to the results in the order of the response."""
    entries, samples = dict[str, int](), dict[tuple[str, ...], float]()
    not_finite = duplicates = clamped = 0
    for result in results:
        if not math.isfinite(result.score):
            not_finite += 1
            continue
        labels = _labels(result, cluster, score_name)
        samples.setdefault(tuple(labels.values()), result.score)
        name = dimension.render(labels)
        if name in entries:
            duplicates += 1
            continue
        entries[name], outside = _value(result.score)
        clamped += outside
    kept = _fitting(sorted(entries), object_bytes)
    return Scores(
        entries=tuple(Entry(name, entries[name]) for name in kept),
        samples=tuple(Sample(labels, score) for labels, score in sorted(samples.items())),
        not_finite=not_finite,
        duplicates=duplicates,
        clamped=clamped,
        cut=len(entries) - len(kept),
    )


def _labels(result: ScoreResult, cluster: str, score_name: str) -> dict[str, str]:
    stamped = {**result.metric, "cluster": cluster, "scoreName": score_name}
    return {label: stamped.get(label, "")[:LABEL_LIMIT] for label in PLACEHOLDERS}


def _value(score: float) -> tuple[int, bool]:
    floor = math.floor(score)
    value = min(max(floor, LOWEST), HIGHEST)
    return value, value != floor


def _fitting(names: list[str], room: int) -> list[str]:
    for index, name in enumerate(names):
        room -= _size(name)
        if room < 0:
            return names[:index]
    return names


def _size(name: str) -> int:
    """Return the bytes of an entry: once in `status.scores`, once as a key of managedFields."""
    text = json.dumps(name)
    entry = len('{"name":,"value":-100},') + len(text)
    return (
        entry + len('"k:{\\"name\\":}":{".":{},"f:name":{},"f:value":{}},') + len(json.dumps(text))
    )
