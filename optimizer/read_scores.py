"""AddOnPlacementScores to values: per named score, by cluster, app and device, or a named gap."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from dsf.kube.port import Object
from optimizer.fleet import Cluster, Scores, Supply, Workload
from optimizer.labels import name_of
from optimizer.request import ScoreRef
from optimizer.results import Gap
from optimizer.score_table import ScoreTable, entries_of, entry_name, table, validity

_MOST_GAPS = 20
"""Pairs of one cluster's device that are named; of more only their number is kept."""


def read_score(
    objects: Iterable[Object],
    clusters: Sequence[Cluster],
    workloads: Iterable[Workload],
    *,
    score: ScoreRef,
    missing: float | None,
    now: datetime,
) -> tuple[Scores, tuple[Gap, ...]]:
    """Read one named score of every app on every device that could supply it.

    `missing`: the value of a pair without a usable score; None leaves it out.
    """
    named = {obj["metadata"].get("namespace"): obj for obj in objects if _is(obj, score)}
    apps = sorted({(workload.kind, workload.app) for workload in workloads})
    scores, gaps = dict[tuple[str, str, str], float](), list[Gap]()
    for cluster in clusters:
        read = _table(named.get(cluster.name), cluster.name, score, now)
        if isinstance(read, Gap):
            gaps.append(read)
        lost = Counter[str]()
        for app, device in _pairs(cluster, apps):
            found = None if isinstance(read, Gap) else read.value(app, device)
            if isinstance(found, str) and not isinstance(read, Gap):
                lost[device] += 1
                if lost[device] <= _MOST_GAPS:
                    gaps.append(_pair_gap(found, read, score.score_name, app, device))
            value = found if isinstance(found, int) else missing
            if value is not None:
                scores[cluster.name, app, device] = value
        gaps += _unnamed(cluster.name, lost)
    return scores, tuple(gaps)


def _is(obj: Object, score: ScoreRef) -> bool:
    return name_of(obj) == score.score_name


def _table(obj: Object | None, cluster: str, score: ScoreRef, now: datetime) -> ScoreTable | Gap:
    name = score.score_name
    if obj is None:
        message = f"cluster {cluster} has no AddOnPlacementScore {name}"
        return Gap(reason="MissingScoreObject", message=message, cluster=cluster)
    if validity(obj, now=now)[1]:
        until = (obj.get("status") or {}).get("validUntil")
        message = f"cluster {cluster}: AddOnPlacementScore {name} was valid until {until}"
        return Gap(reason="ExpiredScore", message=message, cluster=cluster)
    names = [entry for entry, _ in entries_of(obj)]
    if names and not any(score.dimension.match(text) is not None for text in names):
        message = (
            f"cluster {cluster}: no entry of AddOnPlacementScore {name} has the form"
            f" {score.dimension}; there is {names[0]!r}"
        )
        return Gap(reason="WrongScoreFormat", message=message, cluster=cluster)
    return table(cluster, entries_of(obj), score.dimension)


def _pairs(cluster: Cluster, apps: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    supplied = sorted({(supply.kind, supply.device) for supply in _supplies(cluster)})
    pairs = {
        (app, device)
        for kind, app in apps
        for supplied_kind, device in supplied
        if kind == supplied_kind
    }
    return sorted(pairs)


def _supplies(cluster: Cluster) -> Iterator[Supply]:
    for candidate in cluster.candidates:
        yield from candidate.supplies
    yield from cluster.base


def _pair_gap(reason: str, scores: ScoreTable, name: str, app: str, device: str) -> Gap:
    entry = entry_name(scores.dimension, scores.cluster, app, device)
    what = "no entry" if reason == "MissingScore" else "several entries"
    where = f"device {device}" if device else "a supply that names no device"
    return Gap(
        reason=reason,
        message=f"cluster {scores.cluster}: AddOnPlacementScore {name} has {what} for app {app} on"
        f" {where} (looked for {entry!r} in the form {scores.dimension})",
        cluster=scores.cluster,
        device=device,
    )


def _unnamed(cluster: str, lost: Mapping[str, int]) -> Iterator[Gap]:
    for device, count in lost.items():
        if count > _MOST_GAPS:
            message = f"cluster {cluster}: {count - _MOST_GAPS} more apps have no usable entry"
            where = f"for device {device}" if device else "for a supply that names no device"
            yield Gap(
                reason="MissingScore", message=f"{message} {where}", cluster=cluster, device=device
            )
