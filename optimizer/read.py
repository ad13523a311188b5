"""Objects to Fleet: what does not fit becomes a named gap."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from dsf.kube.port import Object
from optimizer.fleet import Candidate, Cluster, Fleet, Objective, Workload
from optimizer.labels import candidate_of, labels_of, name_of, selectors, workload_of
from optimizer.observation import Observation
from optimizer.request import OptimizeRequest, Preference
from optimizer.results import Gap
from optimizer.score_table import ScoreTable, entry_name, score_object, table
from optimizer.settings import Settings


def read_fleet(
    observation: Observation, request: OptimizeRequest, *, settings: Settings, now: datetime
) -> Fleet:
    """Read what the request names; names that the hub does not know have been refused before.

    `now` is aware; scores whose `validUntil` has passed are gaps.
    """
    clusters, policy_gaps = _clusters(observation, request, settings.cluster_label_key)
    workloads, workload_gaps = _workloads(observation.workloads, request)
    tables, object_gaps = _tables(observation.scores, clusters, request.preference, now)
    scores, score_gaps = _scores(clusters, workloads, tables, settings.missing_score)
    return Fleet(
        namespace=request.namespace,
        clusters=clusters,
        workloads=workloads,
        scores={request.preference.score_name: scores},
        objectives=(Objective(request.preference.score_name),),
        gaps=(*policy_gaps, *workload_gaps, *object_gaps, *score_gaps),
    )


def _clusters(
    observation: Observation, request: OptimizeRequest, label_key: str
) -> tuple[tuple[Cluster, ...], list[Gap]]:
    named = {policy.name for cluster in request.clusters for policy in cluster.available_policies}
    read = {
        name_of(obj): candidate_of(obj) for obj in observation.policies if name_of(obj) in named
    }
    select = selectors(observation.managed_clusters, label_key)
    managed = {name_of(obj): labels_of(obj) for obj in observation.managed_clusters}
    clusters = tuple(
        Cluster(
            cluster.name,
            select[cluster.name],
            _candidates(read[policy.name] for policy in cluster.available_policies),
            managed[cluster.name],
        )
        for cluster in request.clusters
    )
    return clusters, [gap for _, gap in sorted(read.items()) if isinstance(gap, Gap)]


def _candidates(read: Iterable[Candidate | Gap]) -> tuple[Candidate, ...]:
    return tuple(candidate for candidate in read if isinstance(candidate, Candidate))


def _workloads(
    replica_sets: Iterable[Object], request: OptimizeRequest
) -> tuple[tuple[Workload, ...], list[Gap]]:
    by_name = {name_of(obj): obj for obj in replica_sets}
    read = [workload_of(by_name[workload.name]) for workload in request.target_workloads]
    workloads = [item for item in read if isinstance(item, Workload)]
    shared = _shared_placements(workloads)
    alone = tuple(item for item in workloads if item.placement not in shared)
    gaps = [item for item in read if isinstance(item, Gap)]
    return alone, gaps + [_shared(item) for item in workloads if item.placement in shared]


def _shared_placements(workloads: Sequence[Workload]) -> set[str]:
    counts = Counter(workload.placement for workload in workloads)
    return {placement for placement, count in counts.items() if count > 1}


def _shared(workload: Workload) -> Gap:
    return Gap(
        reason="SharedPlacement",
        message=f"workload {workload.name}: another workload of the request refers to Placement"
        f" {workload.placement} too; give each one its own",
        workload=workload.name,
    )


def _tables(
    scores: Iterable[Object],
    clusters: Iterable[Cluster],
    preference: Preference,
    now: datetime,
) -> tuple[dict[str, ScoreTable], list[Gap]]:
    name = preference.score_name
    objects = {obj["metadata"].get("namespace"): obj for obj in scores if name_of(obj) == name}
    tables, gaps = dict[str, ScoreTable](), list[Gap]()
    for cluster in clusters:
        read = _table(objects.get(cluster.name), cluster.name, preference, now)
        if isinstance(read, Gap):
            gaps.append(read)
        else:
            tables[cluster.name] = read
    return tables, gaps


def _table(
    obj: Object | None, cluster: str, preference: Preference, now: datetime
) -> ScoreTable | Gap:
    name = preference.score_name
    if obj is None:
        message = f"cluster {cluster} has no AddOnPlacementScore {name}"
        return Gap(reason="MissingScoreObject", message=message, cluster=cluster)
    score = score_object(obj, now=now)
    if score.expired:
        until = (obj.get("status") or {}).get("validUntil")
        message = f"cluster {cluster}: AddOnPlacementScore {name} was valid until {until}"
        return Gap(reason="ExpiredScore", message=message, cluster=cluster)
    return table(score, preference.dimension)


def _scores(
    clusters: Iterable[Cluster],
    workloads: Iterable[Workload],
    tables: Mapping[str, ScoreTable],
    missing: float | str,
) -> tuple[dict[tuple[str, str, str], float], list[Gap]]:
    apps = sorted({(workload.kind, workload.app) for workload in workloads})
    scores, gaps = dict[tuple[str, str, str], float](), list[Gap]()
    for cluster in clusters:
        for app, device in _pairs(cluster, apps):
            found = _score(tables.get(cluster.name), app, device)
            if isinstance(found, Gap):
                gaps.append(found)
            if isinstance(found, int):
                scores[cluster.name, app, device] = found
            elif not isinstance(missing, str):
                scores[cluster.name, app, device] = missing
    return scores, gaps


def _pairs(cluster: Cluster, apps: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    supplied = sorted(
        {
            (supply.kind, supply.device)
            for candidate in cluster.candidates
            for supply in candidate.supplies
        }
    )
    pairs = {
        (app, device)
        for kind, app in apps
        for supplied_kind, device in supplied
        if kind == supplied_kind
    }
    return sorted(pairs)


def _score(scores: ScoreTable | None, app: str, device: str) -> int | Gap | None:
    if scores is None:
        return None
    match scores.value(app, device):
        case int(value):
            return value
        case reason:
            return _pair_gap(reason, scores, app, device)


def _pair_gap(reason: str, scores: ScoreTable, app: str, device: str) -> Gap:
    entry = entry_name(scores.dimension, scores.cluster, app, device)
    what = "no entry" if reason == "MissingScore" else "several entries"
    return Gap(
        reason=reason,
        message=f"cluster {scores.cluster}: {what} for app {app} on device {device}"
        f" (looked for {entry!r} in the form {scores.dimension})",
        cluster=scores.cluster,
        device=device,
    )
