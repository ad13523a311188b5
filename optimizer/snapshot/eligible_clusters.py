"""Which managed clusters OCM can select for Placements of a namespace, and why not the others."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from dsf import placement
from dsf.kube.port import Object
from optimizer.domain.fleet import Cluster, Workload
from optimizer.domain.issue import Issue
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.settings import OptimizerSettings
from optimizer.snapshot.object_readers import has_unread_drain, name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest

Tolerations = tuple[placement.Toleration, ...]

CENTURY = 100 * 365 * 86_400
"""Seconds from which on a toleration has no end: no time could be told."""


@dataclass(frozen=True, slots=True)
class EligibleClusters:
    """The clusters of a request as OCM's placement controller sees them from one namespace.

    `blocked`: those that no Placement of the namespace can select, each with an issue. `taints`:
    those of the other clusters. `closed`: those that get nothing new, each with an issue.
    `defaults`: tolerations that hold where something runs already.
    """

    blocked: Mapping[str, Issue]
    taints: Mapping[str, tuple[placement.Taint, ...]]
    closed: Mapping[str, Issue]
    defaults: Tolerations
    now: datetime

    def unselectable(self, tolerations: Tolerations) -> dict[str, Issue]:
        """Return the clusters that no new Placement with these tolerations selects, and why."""
        found = {**self.blocked, **self.closed}
        for name, taints in self.taints.items():
            taint = placement.untolerated(taints, tolerations, selected=False, now=self.now)
            if taint:
                found[name] = _issue(name, placement.taint_obstacle(name, taint))
        return found

    def may_stay(self, cluster: str, tolerations: Tolerations) -> bool:
        """Return whether a Placement that selects the cluster now goes on selecting it."""
        tolerated, taints = tolerations + self.defaults, self.taints.get(cluster, ())
        return cluster not in self.blocked and not placement.untolerated(
            taints, tolerated, selected=True, now=self.now
        )

    def seconds_left(self, tolerations: Iterable[Tolerations]) -> float:
        """Return in how many seconds the next of these, or of the defaults, ends; inf: none."""
        limits = {
            item.seconds
            for one in (*tolerations, self.defaults)
            for item in one
            if item.seconds is not None
        }
        ages = [
            (self.now - taint.added).total_seconds()
            for taints in self.taints.values()
            for taint in taints
            if taint.added is not None
        ]
        left = (limit - age for limit in limits for age in ages)
        return min((seconds for seconds in left if 0 < seconds < CENTURY), default=math.inf)

    def avoided(self, tolerations: Tolerations) -> tuple[str, ...]:
        """Return the clusters with a taint PreferNoSelect that is not tolerated."""
        return tuple(
            name
            for name, taints in self.taints.items()
            if any(
                taint.effect == "PreferNoSelect"
                and not placement.tolerates(tolerations, taint, now=self.now)
                for taint in taints
            )
        )


def default_tolerations(settings: OptimizerSettings) -> Tolerations:
    """Return what every generated Placement tolerates: a short loss of contact with a cluster.

    As in Kubernetes, where Pods tolerate not-ready and unreachable nodes for 300 seconds.
    """
    seconds = settings.default_toleration_seconds
    keys = (placement.UNAVAILABLE, placement.UNREACHABLE) if seconds else ()
    return tuple(placement.Toleration(key, "Exists", seconds=seconds) for key in keys)


def eligible_clusters(
    observation: Observation, request: OptimizeRequest, defaults: Tolerations
) -> EligibleClusters:
    """Return which clusters of a request OCM can select.

    A hub without any cluster set, such as files without a ManagedClusterSetBinding, is not asked
    about sets: OCM always has some.
    """
    bound = placement.bound_sets(observation.set_bindings, observation.cluster_sets)
    named = {
        name_of(item): item
        for item in observation.managed_clusters
        if name_of(item) in request.cluster_names
    }
    drains = {item.name: item.drain for item in request.clusters}
    obstacles = {
        name: obstacle
        for name, cluster in named.items()
        if (obstacle := _obstacle(name, cluster, observation, bound, request))
    }
    return EligibleClusters(
        blocked={name: _issue(name, obstacle) for name, obstacle in obstacles.items()},
        taints={
            name: taints
            for name, cluster in named.items()
            if name not in obstacles and (taints := placement.read_taints(cluster))
        },
        closed={
            name: Issue(
                reason="InvalidAllocatable",
                message=f"cluster {name}: its drain can't be read, so it gets nothing new, and what"
                " runs there stays: mend the annotation, or state the drain in the request",
                cluster=name,
            )
            for name, cluster in named.items()
            if name not in obstacles and drains[name] is None and has_unread_drain(cluster)
        },
        defaults=defaults,
        now=observation.observed_at,
    )


def _obstacle(
    name: str,
    cluster: Object,
    observation: Observation,
    bound: Collection[str],
    request: OptimizeRequest,
) -> placement.Obstacle | None:
    """Return why no Placement of the namespace can select a cluster; None if some can."""
    found = placement.state_obstacle(cluster)
    if found or not observation.cluster_sets:
        return found
    member = placement.sets_of(cluster, observation.cluster_sets)
    return placement.sets_obstacle(
        name, member, bound, request.namespace
    ) or placement.sets_asked_obstacle(name, member & set(bound), request.cluster_sets)


def _issue(cluster: str, obstacle: placement.Obstacle) -> Issue:
    return Issue(obstacle.reason, obstacle.message, cluster=cluster)


class SelectableFleet(NamedTuple):
    """Clusters without the policies, and workloads without the clusters, that OCM can't select.

    `pools`: the GPUs that policies may be generated for. `issues`: one for each cluster on which
    something can't be.
    """

    clusters: tuple[Cluster, ...]
    workloads: tuple[Workload, ...]
    pools: GpuPools
    issues: tuple[Issue, ...]


def selectable_fleet(
    clusters: Sequence[Cluster],
    workloads: Sequence[Workload],
    pools: GpuPools,
    eligible: EligibleClusters,
    asked: Tolerations,
) -> SelectableFleet:
    """Return what OCM can select of a fleet; `asked` are the tolerations of the request.

    What is in force, or runs, and may stay is selectable where it is.
    """
    of_workloads = dict.fromkeys(item.tolerations + asked for item in workloads)
    of_policies = (item.tolerations + asked for one in clusters for item in one.candidates)
    lost = {each: eligible.unselectable(each) for each in {*of_workloads, *of_policies, asked}}
    issues = list[Issue]()
    for cluster in clusters:
        used = [*of_workloads, *(item.tolerations + asked for item in cluster.candidates)]
        used += [asked] if cluster.name in pools else []
        issues += [lost[each][cluster.name] for each in used if cluster.name in lost[each]][:1]
    names = {each: tuple(found) for each, found in lost.items()}
    avoided = {each: eligible.avoided(each) for each in of_workloads}
    kept = tuple(_with_selectable_policies(item, eligible, lost, asked) for item in clusters)
    return SelectableFleet(
        kept,
        tuple(_with_selectable_clusters(i, eligible, names, avoided, asked) for i in workloads),
        {
            item.name: pools[item.name]
            for item in kept
            if item.name in pools and not _nothing_stays(item, eligible, asked)
        },
        tuple(issues),
    )


def _with_selectable_policies(
    cluster: Cluster,
    eligible: EligibleClusters,
    lost: Mapping[Tolerations, Collection[str]],
    asked: Tolerations,
) -> Cluster:
    kept = tuple(
        item
        for item in cluster.candidates
        if cluster.name not in lost[item.tolerations + asked]
        or (item.current and eligible.may_stay(cluster.name, item.tolerations + asked))
    )
    return replace(cluster, candidates=kept, no_new_policies=cluster.name in lost[asked])


def _nothing_stays(cluster: Cluster, eligible: EligibleClusters, asked: Tolerations) -> bool:
    """Return whether no policy can be generated for a cluster's GPUs and none of them may stay."""
    stays = bool(cluster.enforced) and eligible.may_stay(cluster.name, asked)
    return cluster.no_new_policies and not stays


def _with_selectable_clusters(
    workload: Workload,
    eligible: EligibleClusters,
    lost: Mapping[Tolerations, tuple[str, ...]],
    avoided: Mapping[Tolerations, tuple[str, ...]],
    asked: Tolerations,
) -> Workload:
    tolerations = workload.tolerations + asked
    found = lost[tolerations]
    staying = {name for name in workload.current if eligible.may_stay(name, tolerations)}
    if staying.intersection(found):
        found = tuple(name for name in found if name not in staying)
    return replace(workload, unselectable=found, avoided=avoided[tolerations])
