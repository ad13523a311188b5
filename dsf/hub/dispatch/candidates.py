"""Which worker clusters can take a Workload that waits, by what score, and who can't; pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from dsf.api.untrusted_text import UntrustedName
from dsf.hub.dispatch.queue_preferences import FindScore, Preferences, weighted_score
from dsf.hub.dispatch.worker_clusters import Room, obstacle
from dsf.hub.dispatch.workloads import WaitingWorkload
from dsf.kube.changes import key
from dsf.kube.port import Object


@dataclass(frozen=True, slots=True)
class WorkerFleet:
    """What decides besides the Workloads.

    `checks`: the MultiKueueConfig of each admission check of MultiKueue. `configs`: the clusters of
    each MultiKueueConfig. `workers`: MultiKueueClusters, and `managed`: managed clusters, by name.
    `rooms`, and `quotas` by `quota_of`: by managed cluster.
    """

    checks: Mapping[str, str]
    configs: Mapping[str, Sequence[str]]
    queues: Mapping[tuple[str, str], Preferences]
    workers: Mapping[str, Object]
    managed: Mapping[str, Object]
    find_score: FindScore
    rooms: Mapping[str, Room]
    quotas: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def managed_cluster(self, worker: str) -> str:
        """Return which managed cluster a MultiKueueCluster is; empty if OCM knows none.

        That is the one of its ClusterProfile, or of its own name. Older releases of OCM's Kueue
        add-on put the name of the MultiKueueConfig in front.
        """
        spec = (self.workers.get(worker) or {}).get("spec") or {}
        profile = ((spec.get("clusterSource") or {}).get("clusterProfileRef") or {}).get("name", "")
        names = (profile, worker, *(worker.removeprefix(f"{each}-") for each in self.configs))
        return next((name for name in names if name in self.managed), "")


class Candidate(NamedTuple):
    """A worker cluster that can take a Workload; `score` is a text if it has none."""

    name: str
    managed: str
    score: float | str
    room: bool = True

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


class QueuedWorkload(NamedTuple):
    """A Workload, its candidates, and why the other clusters of its MultiKueueConfig are none.

    `kept`: the nominated clusters that still are candidates.
    """

    workload: WaitingWorkload
    config: str
    preferences: Preferences
    candidates: Mapping[str, Candidate]
    obstacles: Mapping[str, str]
    kept: tuple[str, ...]

    @property
    def at(self) -> tuple[str, str]:
        """The namespace and the name of the Workload."""
        return key(self.workload.obj)

    @property
    def turn(self) -> tuple[bool, int]:
        """Workloads that keep a nomination come first, then those of the highest priority."""
        return not self.kept, 0 if self.kept else -self.workload.priority


def queued(
    workload: WaitingWorkload, config: str, fleet: WorkerFleet, now: datetime
) -> QueuedWorkload:
    """Return a Workload with the clusters of its MultiKueueConfig."""
    preferences = fleet.queues.get(workload.queue)
    candidates, obstacles = dict[str, Candidate](), dict[str, str]()
    if config not in fleet.configs:
        obstacles[config] = f"there is no MultiKueueConfig {UntrustedName(config)}"
    for name in fleet.configs.get(config, ()):
        cluster = fleet.managed_cluster(name)
        nominated, managed = name in workload.nominated, fleet.managed.get(cluster)
        if why := obstacle(name, fleet.workers.get(name), managed, nominated=nominated, now=now):
            obstacles[name] = why
            continue
        score: float | str = "" if cluster else "OCM has no managed cluster of this name"
        if cluster and isinstance(preferences, tuple):
            score = weighted_score(cluster, preferences, fleet.find_score, now)
        candidates[name] = Candidate(name, cluster or name, score)
    kept = tuple(name for name in workload.nominated if name in candidates)
    return QueuedWorkload(workload, config, preferences, candidates, obstacles, kept)
