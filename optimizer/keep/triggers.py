"""When to look: what has happened since the last plan, and when to look again if nothing does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from optimizer.keep.score_memory import ScoreMemory
from optimizer.wire.keeping import Keeping, ObjectTrigger, ScheduledObjective

_LOOKS_PER_WINDOW = 10
_MOST_SECONDS = 60.0
_LEAST_SECONDS = 5.0
"""Seconds between two readings of scores: the longest and the shortest."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What triggers compare.

    `clusters`: the taints of each cluster, whatever their form. `lost`: clusters that are not
    available. `plan_requested_at`: the annotation's value. `must_move`: workloads that run where
    they may not stay, or nowhere: a first score may give them a place, and needs no window.
    `constraints`: what workloads and clusters state now, by kind and name.
    """

    clusters: Mapping[str, frozenset[str]]
    lost: frozenset[str]
    workloads: frozenset[str]
    policies: frozenset[str]
    generation: int = 0
    plan_requested_at: str = ""
    must_move: frozenset[str] = frozenset()
    constraints: Mapping[tuple[str, str], object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """The last plan: when it was made, of what, and when it wanted to be made again."""

    at: datetime
    watched: Watched
    memory: ScoreMemory
    again: datetime | None = None


class Due(NamedTuple):
    """Why to plan now, in words for programs; empty: not now. `next_look`: when to read again."""

    reasons: tuple[str, ...]
    next_look: datetime


def due(
    rules: Keeping, last: Look | None, watched: Watched, memory: ScoreMemory, now: datetime
) -> Due:
    """Return why to plan now, and when to read scores again.

    `memory` has observed the scores of now. Times in the future, because a clock went back, count
    as now.
    """
    pause = rules.hysteresis.stabilization_window_seconds / _LOOKS_PER_WINDOW
    soon = now + timedelta(seconds=min(max(pause, _LEAST_SECONDS), _MOST_SECONDS))
    if last is None:
        return Due(("FirstLook",), soon)
    reasons = dict.fromkeys(_reasons(rules, last, watched, memory, now))
    coming = next_plan(rules, now, last.again)
    return Due(tuple(reasons), min(soon, coming) if coming else soon)


def next_plan(rules: Keeping, now: datetime, *further: datetime | None) -> datetime | None:
    """Return when a plan is due although nothing changes, at `further` times too; None: never."""
    changes = (_next_change(item, now) for item in rules.schedules)
    starts = (rules.triggers.next_start(now), *changes, *further)
    return min((at for at in starts if at is not None and at > now), default=None)


def _reasons(
    rules: Keeping, last: Look, watched: Watched, memory: ScoreMemory, now: datetime
) -> Iterator[str]:
    before, began = last.watched, min(last.at, now)
    if watched.generation != before.generation:
        yield "SpecChanged"
    if watched.plan_requested_at != before.plan_requested_at:
        yield "PlanRequested"
    happened = set(_happened(before, watched))
    yield from (name for name in rules.triggers.objects if name in happened)
    if watched.must_move - before.must_move:
        yield "MustMove"
    said = before.constraints
    if any(said.get(key, value) != value for key, value in watched.constraints.items()):
        yield "ConstraintsChanged"
    if _starts_within(rules.triggers.next_start(began), now):
        yield "Scheduled"
    if any(_starts_within(_next_change(item, began), now) for item in rules.schedules):
        yield "ObjectivesChanged"
    if last.again is not None and last.again <= now:
        yield "HoldEnded"
    change = memory.largest_change(last.memory)
    places = bool(watched.must_move) and memory.knows_more_than(last.memory)
    if places or (change > 0 and change >= rules.triggers.score_change):
        yield "ScoreChanged"


def _happened(before: Watched, after: Watched) -> Iterator[ObjectTrigger]:
    if after.clusters.keys() - before.clusters.keys():
        yield "ClusterAdded"
    if before.clusters.keys() - after.clusters.keys() or after.lost - before.lost:
        yield "ClusterLost"
    if any(
        taints != before.clusters[name]
        for name, taints in after.clusters.items()
        if name in before.clusters
    ):
        yield "ClusterTainted"
    if after.workloads - before.workloads:
        yield "WorkloadAdded"
    if before.workloads - after.workloads:
        yield "WorkloadLost"
    if after.policies - before.policies:
        yield "PolicyAdded"
    if before.policies - after.policies:
        yield "PolicyLost"


def _starts_within(start: datetime | None, now: datetime) -> bool:
    return start is not None and start <= now


def _next_change(item: ScheduledObjective, now: datetime) -> datetime | None:
    """Return when a window opens or ends next."""
    until = item.open_until(now)
    return item.next_start(now) if until is None else until
