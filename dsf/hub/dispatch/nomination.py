"""Decides which worker clusters are nominated for the Workloads that wait; pure.

Workloads that are nominated already are decided first, the others in Kueue's order: by priority,
then by age. The first cluster is the eligible one with the best score that has room, given what the
Workloads before it take. Further ones are added when nobody has admitted it within a time. A
nomination is withdrawn only from a cluster that can't take the Workload any more: another one may
have reserved quota meanwhile, and Kueue deletes what is no longer nominated.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from dsf.api.conditions import MESSAGE_LIMIT
from dsf.api.invalid_input import InvalidInput
from dsf.api.times import shown_duration
from dsf.api.untrusted_text import UntrustedName, escaped, listed
from dsf.hub.dispatch.queue_preferences import (
    PREFERENCES_ANNOTATION,
    FindScore,
    Preferences,
    weighted_score,
)
from dsf.hub.dispatch.worker_clusters import Room, obstacle, total
from dsf.hub.dispatch.workloads import AssignedWorkload, WaitingWorkload
from dsf.kube.changes import key
from dsf.kube.port import Object

MOST_NOMINATED = 20
"""Clusters that Kueue's API allows in status.nominatedClusterNames."""

_MOST_TOLD = 5
"""Clusters that a message names of each sort."""


@dataclass(frozen=True, slots=True)
class NominationSettings:
    """How many clusters are nominated at once, and after how many seconds the next ones."""

    at_once: int = 1
    next_after_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class WorkerFleet:
    """What decides besides the Workloads.

    `checks`: the MultiKueueConfig of each admission check of MultiKueue. `configs`: the clusters of
    each MultiKueueConfig. `workers`: MultiKueueClusters, and `managed`: managed clusters, by name.
    `rooms`: by managed cluster.
    """

    checks: Mapping[str, str]
    configs: Mapping[str, Sequence[str]]
    queues: Mapping[tuple[str, str], Preferences]
    workers: Mapping[str, Object]
    managed: Mapping[str, Object]
    find_score: FindScore
    rooms: Mapping[str, Room]

    def managed_cluster(self, worker: str) -> str:
        """Return which managed cluster a MultiKueueCluster is; empty if OCM knows none.

        That is the one of its ClusterProfile, or of its own name. Older releases of OCM's Kueue
        add-on put the name of the MultiKueueConfig in front.
        """
        spec = (self.workers.get(worker) or {}).get("spec") or {}
        profile = ((spec.get("clusterSource") or {}).get("clusterProfileRef") or {}).get("name", "")
        names = (profile, worker, *(worker.removeprefix(f"{each}-") for each in self.configs))
        return next((name for name in names if name in self.managed), "")


class Nomination(NamedTuple):
    """What to write about a Workload: its nominated clusters, and a condition that says why.

    `status`, `reason` and `message` are those of the condition. `warns`: something is wrong.
    """

    workload: WaitingWorkload
    clusters: tuple[str, ...]
    status: bool
    reason: str
    message: str
    warns: bool = False


class _Candidate(NamedTuple):
    """A worker cluster that can take a Workload; `score` is a text if it has none."""

    name: str
    managed: str
    score: float | str
    room: bool

    @property
    def number(self) -> float:
        """The score; without one, less than any."""
        return self.score if isinstance(self.score, float) else -math.inf

    @property
    def rank(self) -> tuple[bool, float, str]:
        """Clusters with room first, then the best score, then the first by name."""
        return not self.room, -self.number, self.name

    def __str__(self) -> str:
        score = f"{self.score:g}" if isinstance(self.score, float) else "no score"
        return f"{UntrustedName(self.name)} ({score}{'' if self.room else ', no room'})"


def decide(
    waiting: Sequence[WaitingWorkload],
    assigned: Sequence[AssignedWorkload],
    fleet: WorkerFleet,
    settings: NominationSettings,
    now: datetime,
) -> list[Nomination]:
    """Return what to write; nothing for a Workload that is as it should be."""
    turn = _QueuePass(fleet, settings, now)
    for each in assigned:
        cluster = fleet.managed_cluster(each.cluster)
        room = fleet.rooms.get(cluster)
        if room and each.since > room.times.observed:
            turn.take(cluster, each)
    ordered = sorted(
        waiting, key=lambda item: (not item.nominated, -item.priority, item.created, key(item.obj))
    )
    found = list[Nomination]()
    for workload in ordered:
        config = next((fleet.checks[name] for name in workload.checks if name in fleet.checks), "")
        if config in fleet.configs and (nomination := turn.nomination(workload, config)):
            found.append(nomination)
    return found


def next_seconds(
    waiting: Sequence[WaitingWorkload], settings: NominationSettings, now: datetime
) -> float | None:
    """Return in how many seconds the next clusters are due for a Workload; None for none."""
    ends = [item.since for item in waiting if item.nominated and item.since]
    left = [settings.next_after_seconds - (now - since).total_seconds() for since in ends]
    return min((seconds for seconds in left if seconds > 0), default=None)


class _QueuePass:
    """One decision about all Workloads: what the first ones take is not there for the others."""

    def __init__(self, fleet: WorkerFleet, settings: NominationSettings, now: datetime) -> None:
        self._fleet = fleet
        self._settings = settings
        self._now = now
        self._taken = dict[str, dict[str, float]]()

    def take(self, cluster: str, workload: WaitingWorkload | AssignedWorkload) -> None:
        """Count what a Workload requests as used on a managed cluster."""
        amounts = self._taken.setdefault(cluster, {})
        for resource, amount in total(workload.pod_sets).items():
            amounts[resource] = amounts.get(resource, 0.0) + amount

    def nomination(self, workload: WaitingWorkload, config: str) -> Nomination | None:
        """Return what to write about a Workload of a MultiKueueConfig; None for nothing."""
        preferences = self._fleet.queues.get(workload.queue)
        candidates, obstacles = self._candidates(workload, config, preferences)
        kept = tuple(name for name in workload.nominated if name in candidates)
        ranked = sorted(
            (item for name, item in candidates.items() if name not in kept),
            key=lambda item: item.rank,
        )
        told = workload.told.startswith(f"{_head(workload.nominated)} ")
        wait = timedelta(seconds=self._settings.next_after_seconds)
        over = told and workload.since is not None and self._now >= workload.since + wait
        free = min(self._settings.at_once, MOST_NOMINATED - len(kept))
        added = ranked[:free] if not kept or (over and kept == workload.nominated) else []
        clusters = (*kept, *(item.name for item in added))
        if clusters:
            self.take(candidates[clusters[0]].managed, workload)
            if told and clusters == workload.nominated:
                return None
        issue = _issue(workload, preferences)
        after = shown_duration(self._settings.next_after_seconds)
        sentences = (
            _head(clusters),
            _sentence("Scores", [candidates[name] for name in clusters]),
            _sentence(f"Next after {after}", ranked[len(added) :]) if clusters else "",
            issue,
            _sentence("Not eligible", list(obstacles.values())),
            _sentence("Without a score, so after the others", _unscored(candidates.values())),
            self._better_elsewhere(config, preferences, candidates.values()),
        )
        message = escaped(" ".join(filter(None, sentences)))[:MESSAGE_LIMIT]
        if message == workload.told and not workload.nominated:
            return None
        reason = ("ByName" if issue else "ByScore") if clusters else "NoEligibleCluster"
        lost = any(name not in candidates for name in workload.nominated)
        warns = lost or bool(issue) or not clusters
        return Nomination(workload, clusters, bool(clusters), reason, message, warns)

    def _candidates(
        self, workload: WaitingWorkload, config: str, preferences: Preferences
    ) -> tuple[dict[str, _Candidate], dict[str, str]]:
        """Return the worker clusters that can take a Workload, and why the others can't."""
        fleet, now = self._fleet, self._now
        candidates, obstacles = dict[str, _Candidate](), dict[str, str]()
        for name in fleet.configs[config]:
            cluster = fleet.managed_cluster(name)
            nominated, managed = name in workload.nominated, fleet.managed.get(cluster)
            if why := obstacle(
                name, fleet.workers.get(name), managed, nominated=nominated, now=now
            ):
                obstacles[name] = why
                continue
            score: float | str = "" if cluster else "OCM has no managed cluster of this name"
            if cluster and isinstance(preferences, tuple):
                score = weighted_score(cluster, preferences, fleet.find_score, now)
            room, taken = fleet.rooms.get(cluster), self._taken.get(cluster, {})
            fits = not room or not room.times.relied_on(now) or room.fits(workload.pod_sets, taken)
            candidates[name] = _Candidate(name, cluster or name, score, fits)
        return candidates, obstacles

    def _better_elsewhere(
        self, config: str, preferences: Preferences, candidates: Collection[_Candidate]
    ) -> str:
        """Return which managed clusters are better, but not in the MultiKueueConfig."""
        known = {self._fleet.managed_cluster(name) for name in self._fleet.configs[config]}
        best = max((item.number for item in candidates), default=-math.inf)
        better = [
            f"{UntrustedName(name)} ({score:g})"
            for name in sorted(self._fleet.managed.keys() - known)
            if isinstance(preferences, tuple)
            for score in (weighted_score(name, preferences, self._fleet.find_score, self._now),)
            if isinstance(score, float) and score > best
        ]
        return _sentence(f"Better, but not in MultiKueueConfig {UntrustedName(config)}", better)


def _head(clusters: Sequence[str]) -> str:
    """Return the first sentence of the message, which tells whether it is about these clusters."""
    return f"Nominated: {listed(clusters)}." if clusters else "No worker cluster is eligible."


def _issue(workload: WaitingWorkload, preferences: Preferences) -> str:
    """Return why the order is that of the names; empty if it is that of scores."""
    queue = UntrustedName(workload.queue[1])
    if preferences is None:
        return f"LocalQueue {queue} has no annotation {PREFERENCES_ANNOTATION}: in order of names."
    if isinstance(preferences, InvalidInput):
        why = f"{PREFERENCES_ANNOTATION} of LocalQueue {queue} can't be used"
        return f"{why}, in order of names: {preferences.message}."
    return ""


def _unscored(candidates: Iterable[_Candidate]) -> list[str]:
    return [
        f"{UntrustedName(item.name)}: {item.score}"
        for item in candidates
        if isinstance(item.score, str) and item.score
    ]


def _sentence(what: str, items: Sequence[object]) -> str:
    if not items:
        return ""
    more = [f"{len(items) - _MOST_TOLD} more"] if len(items) > _MOST_TOLD else []
    return f"{what}: {'; '.join([*map(str, items[:_MOST_TOLD]), *more])}."
