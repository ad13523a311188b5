"""Decides which worker clusters are nominated for the Workloads that wait; pure.

Workloads that are nominated already are decided first, the others in Kueue's order: by priority,
then by age. The first cluster is the eligible one with the best score that has room, given what the
Workloads before it take, or that of a plan for all of one priority. Further ones are added when
nobody has admitted it within a time. A nomination is withdrawn only from a cluster that can't take
the Workload any more: another one may have reserved quota meanwhile, and Kueue deletes what is no
longer nominated.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from dsf.api.conditions import MESSAGE_LIMIT
from dsf.api.times import shown_duration
from dsf.api.untrusted_text import InvalidInput, UntrustedName, escaped, joined
from dsf.hub.dispatch.candidates import QueuedWorkload, WorkerFleet, queued
from dsf.hub.dispatch.queue_pass import Choice, NominationSettings, QueuePass, Solve
from dsf.hub.dispatch.queue_preferences import PREFERENCES_ANNOTATION, weighted_score
from dsf.hub.dispatch.workloads import AssignedWorkload, WaitingWorkload, first_sentence

_MOST_TOLD = 5
"""Clusters that a message names of each sort."""


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


def decide(
    waiting: Sequence[WaitingWorkload],
    assigned: Sequence[AssignedWorkload],
    fleet: WorkerFleet,
    settings: NominationSettings,
    now: datetime,
    solve: Solve | None = None,
) -> list[Nomination]:
    """Return what to write; nothing for a Workload that is as it should be.

    Without `solve` all is decided in order.
    """
    queue = QueuePass(fleet, settings, now)
    for each in assigned:
        cluster = fleet.managed_cluster(each.cluster)
        room = fleet.rooms.get(cluster)
        queue.take(cluster, each, of_nodes=bool(room and each.since > room.times.observed))
    entries = [
        queued(workload, config, fleet, now)
        for workload in waiting
        for config in [fleet.checks[name] for name in workload.checks if name in fleet.checks][:1]
    ]
    entries.sort(key=lambda each: (each.turn, each.workload.created, each.at))
    found = [
        _nomination(choice, fleet, settings, now)
        for _, turn in groupby(entries, key=lambda each: each.turn)
        for choice in queue.decided([*turn], solve)
    ]
    return [each for each in found if each]


def next_seconds(
    waiting: Sequence[WaitingWorkload], settings: NominationSettings, now: datetime
) -> float | None:
    """Return in how many seconds the next clusters are due for a Workload; None for none."""
    ends = [item.since for item in waiting if item.nominated and item.since]
    left = [settings.next_after_seconds - (now - since).total_seconds() for since in ends]
    return min((seconds for seconds in left if seconds > 0), default=None)


def _nomination(
    choice: Choice, fleet: WorkerFleet, settings: NominationSettings, now: datetime
) -> Nomination | None:
    """Return what to write about a Workload; None for nothing."""
    queued, workload = choice.queued, choice.queued.workload
    clusters = tuple(item.name for item in choice.clusters)
    if clusters and workload.is_told and clusters == workload.nominated:
        return None
    issue = _issue(queued)
    after = shown_duration(settings.next_after_seconds)
    sentences = (
        first_sentence(clusters),
        _sentence("Scores", choice.clusters),
        choice.plan,
        _sentence(f"Next after {after}", choice.following) if clusters else "",
        issue,
        _sentence("Not eligible", list(queued.obstacles.values())),
        _sentence("Without a score, so after the others", _unscored(queued)),
        _better_elsewhere(queued, fleet, now),
    )
    message = escaped(" ".join(filter(None, sentences)))[:MESSAGE_LIMIT]
    if message == workload.told and not workload.nominated:
        return None
    reason = ("ByName" if issue else "ByScore") if clusters else "NoEligibleCluster"
    warns = len(queued.kept) < len(workload.nominated) or bool(issue) or not clusters
    return Nomination(workload, clusters, bool(clusters), reason, message, warns)


def _better_elsewhere(queued: QueuedWorkload, fleet: WorkerFleet, now: datetime) -> str:
    """Return which managed clusters are better, but not in the MultiKueueConfig."""
    if queued.config not in fleet.configs or not isinstance(queued.preferences, tuple):
        return ""
    known = {fleet.managed_cluster(name) for name in fleet.configs[queued.config]}
    best = _best(queued)
    better = [
        f"{UntrustedName(name)} ({score:g})"
        for name in sorted(fleet.managed.keys() - known)
        for score in (weighted_score(name, queued.preferences, fleet.find_score, now),)
        if isinstance(score, float) and score > best
    ]
    return _sentence(f"Better, but not in MultiKueueConfig {UntrustedName(queued.config)}", better)


def _best(queued: QueuedWorkload) -> float:
    """Return the best score of a cluster that can take a Workload; without one, less than any."""
    return max((item.number for item in queued.candidates.values()), default=-math.inf)


def _issue(queued: QueuedWorkload) -> str:
    """Return why the order is that of the names; empty if it is that of scores."""
    queue, preferences = UntrustedName(queued.workload.queue[1]), queued.preferences
    if preferences is None:
        return f"LocalQueue {queue} has no annotation {PREFERENCES_ANNOTATION}: in order of names."
    if isinstance(preferences, InvalidInput):
        why = f"{PREFERENCES_ANNOTATION} of LocalQueue {queue} can't be used"
        return f"{why}, in order of names: {preferences.message}."
    unscored = queued.candidates and _best(queued) == -math.inf
    return "No cluster has a score: in order of names." if unscored else ""


def _unscored(queued: QueuedWorkload) -> list[str]:
    return [
        f"{UntrustedName(item.name)}: {item.score}"
        for item in queued.candidates.values()
        if isinstance(item.score, str) and item.score
    ]


def _sentence(what: str, items: Sequence[object]) -> str:
    return f"{what}: {joined(map(str, items), _MOST_TOLD, separator='; ')}." if items else ""
