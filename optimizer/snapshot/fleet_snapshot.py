"""The fleet of a request, read from the hub's objects; `FleetReader` adds the scores.

What can't be used becomes an issue.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain

from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.placement_scores import declared_formats
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, FleetLimit, Objective, Workload
from optimizer.domain.issue import Issue
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import PolicyEnforcement
from optimizer.snapshot.capacity.seen_capacity import Inventories, read_inventories
from optimizer.snapshot.capacity.seen_fleet import nodes_of, seen_fleet
from optimizer.snapshot.eligible_clusters import (
    default_tolerations,
    eligible_clusters,
    selectable_fleet,
)
from optimizer.snapshot.ineffective_input import (
    ineffective_constraints,
    unknown_annotations,
    unknown_kinds,
)
from optimizer.snapshot.object_readers import (
    cluster_selectors,
    labels_of,
    name_of,
    read_cluster,
    read_policy,
    stated_drain,
    tolerations_of,
    until_text,
)
from optimizer.snapshot.observation import (
    CurrentDecisions,
    Observation,
    RequestedHub,
    own_decisions,
)
from optimizer.snapshot.ownership.others import decided_works, others_on_clusters
from optimizer.snapshot.ownership.others_part import without_others_part
from optimizer.snapshot.requested_gpus import mig_rules, read_gpu_pools
from optimizer.snapshot.requested_workloads import (
    places_of_others,
    requested_workloads,
    selected_keys,
    with_others_places,
)
from optimizer.snapshot.scores.score_index import ScoreIndex, score_index
from optimizer.snapshot.scores.score_meanings import direction_issues
from optimizer.snapshot.workload_pods import pending_workloads
from optimizer.wire.object_specs import NO_END
from optimizer.wire.request import OptimizeRequest, RequestedCluster


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """The fleet of a request, and what candidates for its GPUs are generated from.

    `pools`: the GPUs by cluster. `enforced`: the policies in force. `score_index`: the scores
    that the fleet needs, those of every device that its GPUs could supply included.
    `declared_formats`: what DynamicScorers declare of the names of entries, by score name.
    `score_versions`: the resource versions of the scores that were read, by cluster and name.
    `oldest_score`: when the one of them was written that was written first; None if unknown.
    `lasts`: for how many seconds the same objects read the same; then a toleration ends, the grace
    of pending Pods, or a drain changes. `settled`: as of a SeenFleet.
    """

    fleet: Fleet
    score_index: ScoreIndex
    pools: GpuPools
    enforced: frozenset[PolicyEnforcement]
    declared_formats: Mapping[str, tuple[DimensionFormat, ...]] = field(default_factory=dict)
    score_versions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    oldest_score: datetime | None = None
    lasts: float = math.inf
    settled: datetime | None = None


def read_objects(
    observation: Observation, request: OptimizeRequest, settings: OptimizerSettings
) -> FleetSnapshot:
    """Read the objects that a request names, which all exist; the fleet has no scores yet."""
    select = cluster_selectors(observation.managed_clusters, settings.cluster_label_key)
    running = own_decisions(observation, request, settings)
    hub = RequestedHub(observation, request, select, running)
    asked, defaults = tolerations_of(request.tolerations), default_tolerations(settings)
    eligible = eligible_clusters(observation, request, defaults)
    listed, cluster_issues = _clusters(hub)
    workloads, workload_issues = requested_workloads(observation.workloads, request, running)
    places = places_of_others(workloads, hub)
    workloads = with_others_places(workloads, observation, places)
    inventories = read_inventories(listed, observation)
    kept = _kept(request, inventories)
    listed = tuple(_with_those_in_force(item) if item.name in kept else item for item in listed)
    decided = partial(decided_works, hub)
    nodes = nodes_of(inventories, workloads, decided)
    described, pool_issues = read_gpu_pools(observation.managed_clusters, request, nodes, kept)
    others = others_on_clusters(hub)
    seen = seen_fleet(
        listed,
        workloads,
        described,
        others,
        inventories,
        nodes,
        observation=observation,
        request=request,
        claim_name=settings.claim_name,
        bound=running.bound,
    )
    workloads = seen.workloads
    unshared, pools, of_others = without_others_part(
        seen.clusters,
        described,
        seen.others,
        namespace=request.namespace,
        workloads=workloads,
        observation=observation,
    )
    clusters, workloads, pools, lost = selectable_fleet(unshared, workloads, pools, eligible, asked)
    limits = (*_limits(request), *_limits_of_clusters(clusters, places.values()))
    relevant = _relevant(clusters, workloads, limits)
    stuck = pending_workloads(workloads, observation, settings.pending_grace_seconds)
    workloads = stuck.workloads
    fleet = Fleet(
        namespace=request.namespace,
        optimization=request.optimization,
        clusters=relevant,
        workloads=workloads,
        scores={},
        objectives=tuple(
            Objective(item.key, item.weight, item.minimum, item.maximum, item.invert)
            for item in request.scored
        ),
        limits=limits,
        busy_devices_stay=mig_rules(request).mode == "instance",
        tolerations=(*asked, *defaults),
        cluster_sets=request.cluster_sets,
        avoidance_cost=settings.prefer_no_select_cost,
        issues=(
            *lost,
            *cluster_issues,
            *workload_issues,
            *stuck.issues,
            *of_others,
            *seen.issues,
            *unknown_kinds(seen.clusters, described, workloads, seen.issues),
            *unknown_annotations(observation, request),
            *ineffective_constraints(clusters, workloads, limits),
            *pool_issues,
            *direction_issues(observation, request),
        ),
    )
    tolerations = {item.tolerations for item in workloads}
    tolerations |= {item.tolerations for one in unshared for item in one.candidates}
    return FleetSnapshot(
        fleet,
        score_index(relevant, pools, workloads),
        pools,
        running.policies,
        declared_formats(observation.scorers or ()),
        lasts=min(
            stuck.lasts,
            eligible.seconds_left((asked, *tolerations)),
            _drains_change(observation, request),
        ),
        settled=seen.settled,
    )


def _kept(request: OptimizeRequest, inventories: Inventories) -> frozenset[str]:
    """Return the clusters that keep the devices which their nodes advertise."""
    if not (request.mig and request.mig.keep_advertised):
        return frozenset()
    known = inventories.not_relied.union(inventories.of)
    return frozenset(item.name for item in request.clusters if item.name in known and not item.gpus)


def _with_those_in_force(cluster: Cluster) -> Cluster:
    """Return a cluster that may keep policies in force that the request does not list."""
    return replace(cluster, candidates=(*cluster.candidates, *cluster.enforced), enforced=())


def _clusters(hub: RequestedHub) -> tuple[tuple[Cluster, ...], list[Issue]]:
    observation, request, select, running = hub
    policies = {name_of(obj): obj for obj in observation.policies}
    managed = {name_of(obj): obj for obj in observation.managed_clusters}
    clusters, issues = list[Cluster](), list[Issue]()
    for choice in request.clusters:
        read = [
            read_policy(policies[policy.name], choice.name, policy)
            for policy in choice.available_policies
        ]
        cluster = read_cluster(
            managed[choice.name], select[choice.name], choice, observation.observed_at
        )
        issues += [item for item in (*read, cluster) if isinstance(item, Issue)]
        if isinstance(cluster, Issue):
            asked = choice.drain.drained_until(observation.observed_at) if choice.drain else None
            cluster = Cluster(
                choice.name,
                select[choice.name],
                (),
                labels_of(managed[choice.name]),
                drained=until_text(asked),
                max_workloads=choice.max_workloads,
            )
        candidates = (
            replace(item, current=(choice.name, item.policy) in running.policies)
            for item in read
            if isinstance(item, CandidatePolicy)
        )
        enforced = tuple(_enforced(choice, policies, running))
        clusters.append(replace(cluster, candidates=tuple(candidates), enforced=enforced))
    return tuple(clusters), sorted(dict.fromkeys(issues), key=lambda issue: issue.policy)


def _relevant(
    clusters: Iterable[Cluster], workloads: Sequence[Workload], limits: Iterable[FleetLimit]
) -> tuple[Cluster, ...]:
    """Drop labels and kinds that no constraint mentions: a plan must not depend on them."""
    texts = [text for item in workloads for text in item.cluster_selectors]
    texts += [limit.selector for limit in limits]
    keys = selected_keys(texts) | {item.key for workload in workloads for item in workload.spread}
    keys |= {limit.per for limit in limits}
    kinds = {kind for item in workloads for kind in (item.kind, *dict(item.requests))}
    return tuple(
        replace(
            cluster,
            labels={key: value for key, value in cluster.labels.items() if key in keys},
            base=tuple(supply for supply in cluster.base if supply.kind in kinds),
        )
        for cluster in clusters
    )


def _enforced(
    choice: RequestedCluster, policies: Mapping[str, Object], running: CurrentDecisions
) -> Iterator[CandidatePolicy]:
    """Yield the policies in force that the request does not list; unreadable ones are skipped."""
    listed = {policy.name for policy in choice.available_policies}
    for name in sorted(policies.keys() - listed):
        if PolicyEnforcement(choice.name, name) in running.policies:
            read = read_policy(policies[name], choice.name)
            if isinstance(read, CandidatePolicy):
                yield replace(read, current=True)


def _limits(request: OptimizeRequest) -> tuple[FleetLimit, ...]:
    return tuple(
        FleetLimit(
            name=item.name,
            most=item.maximum,
            score=item.score.key if item.score else "",
            uses=item.uses,
            selector=item.cluster_selector,
            per=item.per,
        )
        for item in request.limits
    )


def _limits_of_clusters(
    clusters: Iterable[Cluster], others: Iterable[Iterable[str]]
) -> Iterator[FleetLimit]:
    """Yield how many workloads each cluster may get besides the others that stay there."""
    there = Counter(chain.from_iterable(others))
    for item in clusters:
        if item.max_workloads is not None:
            most = float(max(0, item.max_workloads - there[item.name]))
            yield FleetLimit(f"workloads on {item.name}", most, cluster=item.name)


def _drains_change(observation: Observation, request: OptimizeRequest) -> float:
    """Return in how many seconds a drain of a cluster begins or ends next."""
    asked, now = {item.name: item for item in request.clusters}, observation.observed_at
    drains = (stated_drain(obj, asked.get(name_of(obj))) for obj in observation.managed_clusters)
    changes = (item.next_change(now) for item in drains if item)
    return min(((at - now).total_seconds() for at in changes if at != NO_END), default=math.inf)
