"""Finds input that names nothing: a name without an object is a problem, the rest are issues."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

from dsf.api.names import score_object_name
from dsf.api.untrusted_text import UntrustedName, joined, listed
from dsf.kube.port import Object
from dsf.kube.selectors import valid_selector
from optimizer.domain.fleet import CLUSTER_NAME_KEY, Cluster, FleetLimit, Workload
from optimizer.domain.issue import Issue, TakenIssue
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.nodes import GPU_KIND
from optimizer.snapshot.annotations import unknown_annotations as unknown_keys
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, WorkloadSpec
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import FieldProblem, ProblemKind, RequestProblem
from optimizer.wire.result import ScoreObject


def unknown_kinds(
    clusters: Iterable[Cluster],
    pools: GpuPools,
    workloads: Iterable[Workload],
    issues: Iterable[Issue],
) -> Iterator[Issue]:
    """Yield the workloads that request a kind which no candidate and no cluster supplies.

    `issues`: of the clusters. Of a kind that others have there, there is some.
    """
    taken = {kind for i in issues if isinstance(i, TakenIssue) for kind, _ in i.taken}
    known = {
        supply.kind
        for cluster in clusters
        for supplies in (cluster.base, *(item.supplies for item in cluster.candidates))
        for supply in supplies
    } | ({GPU_KIND} if pools else set())
    for workload in workloads:
        asked = (workload.kind, *(kind for kind, _ in workload.requests))
        unknown = [kind for kind in asked if kind not in known | taken]
        if unknown:
            message = (
                f"workload {workload.name} requests {listed(unknown)}, which no candidate policy"
                f" and no cluster supplies; there is {listed(sorted(known)) or 'nothing'}"
            )
            yield Issue(reason="UnknownKind", message=message, workload=workload.name)


def unknown_annotations(observation: Observation, request: OptimizeRequest) -> Iterator[Issue]:
    """Yield the annotations with our prefix that the optimizer does not know."""
    policies = {item.name for cluster in request.clusters for item in cluster.available_policies}
    workloads = {item.name for item in request.target_workloads}
    clusters = {item.name for item in request.clusters}
    for objects, names, model in (
        (observation.policies, policies, PolicySpec),
        (observation.workloads, workloads, WorkloadSpec),
        (observation.managed_clusters, clusters, ClusterSpec),
    ):
        for obj in objects:
            for key in unknown_keys(obj, model) if name_of(obj) in names else ():
                message = (
                    f"{obj['kind']} {name_of(obj)}: annotation {UntrustedName(key)} is not known"
                )
                yield Issue(reason="UnknownAnnotation", message=message)


def ineffective_constraints(
    clusters: Sequence[Cluster], workloads: Sequence[Workload], limits: Sequence[FleetLimit]
) -> Iterator[Issue]:
    """Yield limits that count nothing, and labels, clusters and workloads that do not exist.

    `clusters` have all of their labels.
    """
    yield from _unused_limits(clusters, workloads, limits)
    yield from _unknown_labels(clusters, workloads, limits)
    names = frozenset(cluster.name for cluster in clusters)
    for workload in workloads:
        unknown = [name for name in workload.clusters if name not in names]
        if unknown:
            message = (
                f"workload {workload.name} may run on {listed(unknown[:10])},"
                " which the request does not name"
            )
            yield Issue(reason="ClusterNotInRequest", message=message)
    yield from _unmatched_workload_affinity(workloads)


def _unmatched_workload_affinity(workloads: Sequence[Workload]) -> Iterator[Issue]:
    texts = {item.workload_affinity for item in workloads} - {""}
    wanted = {text: valid_selector(text) for text in texts}
    found = {
        text: tuple(islice((item.name for item in workloads if meets.matches(item.labels)), 2))
        for text, meets in wanted.items()
    }
    names = {item.name for item in workloads}
    for workload in workloads:
        for must, named, why in (
            ("together with", workload.together_with, "runs nowhere that this one may run"),
            ("apart from", workload.apart_from, "does not exist"),
        ):
            if missing := sorted(set(named) - names):
                message = (
                    f"workload {workload.name} must run {must} {listed(missing)}, which the request"
                    f" does not name and which {why}"
                )
                yield Issue(reason="UnknownWorkloads", message=message, workload=workload.name)
        text = workload.workload_affinity
        if text and set(found[text]) <= {workload.name}:
            message = (
                f"workload {workload.name} must run with a workload that matches {text}, and no"
                " other workload of the request does"
            )
            yield Issue(reason="UnknownWorkloads", message=message, workload=workload.name)


def _unused_limits(
    clusters: Iterable[Cluster], workloads: Iterable[Workload], limits: Iterable[FleetLimit]
) -> Iterator[Issue]:
    used = {name for workload in workloads for name, _ in workload.uses}
    used |= {name for cluster in clusters for item in cluster.candidates for name, _ in item.uses}
    instead = f"; there is {listed(sorted(used))}" if used else ""
    for limit in limits:
        if limit.uses and limit.uses not in used:
            message = (
                f"limit {limit.name} counts nothing: no workload and no policy uses {limit.uses}"
                f"{instead}"
            )
            yield Issue(reason="UnusedLimit", message=message)


def _unknown_labels(
    clusters: Iterable[Cluster], workloads: Iterable[Workload], limits: Iterable[FleetLimit]
) -> Iterator[Issue]:
    known = {CLUSTER_NAME_KEY, ""}.union(*(cluster.labels for cluster in clusters))
    named = {
        item.key: f"spread of {workload.name}" for workload in workloads for item in workload.spread
    }
    named |= {limit.per: f"limit {limit.name}" for limit in limits}
    for key, where in sorted(named.items()):
        if key not in known:
            message = f"{where}: no cluster of the request has the label {key}"
            yield Issue(reason="UnknownLabel", message=message)


MAX_NAMES = 100
"""Errors in a response, and existing names that one error lists."""

MAX_NAMES_IN_MESSAGE = 10
"""Names or errors that one message spells out: more than a person reads."""

_UnknownName = tuple[str, str, str, frozenset[str]]
"""A field, what it names, the name that does not exist, and those that do."""


def unknown_names(
    observation: Observation, request: OptimizeRequest, scores: Collection[str]
) -> RequestProblem | None:
    """Return the clusters, policies, workloads and scores of the request that do not exist.

    `scores`: the names of AddOnPlacementScores that its clusters have. At most MAX_NAMES are
    returned, each with at most MAX_NAMES that exist: the response must not grow with the product of
    the request and the hub.
    """
    clusters, known_scores = _names(observation.managed_clusters), frozenset(scores)
    policies, workloads = _names(observation.policies), _names(observation.workloads)
    inside = f"in namespace {request.namespace}"
    named = chain(
        (
            (f"clusters[{index}].name", "managed cluster", cluster.name, clusters)
            for index, cluster in enumerate(request.clusters)
        ),
        (
            (
                f"clusters[{index}].availablePolicies[{position}].name",
                f"policy {inside}",
                policy.name,
                policies,
            )
            for index, cluster in enumerate(request.clusters)
            for position, policy in enumerate(cluster.available_policies)
        ),
        (
            (
                f"targetWorkloads[{index}].name",
                f"ManifestWorkReplicaSet {inside}",
                workload.name,
                workloads,
            )
            for index, workload in enumerate(request.target_workloads)
        ),
        (
            (
                f"{field}.addonPlacementScore",
                "AddOnPlacementScore in the namespaces of the request's clusters",
                score.score_name,
                known_scores,
            )
            for field, score in request.read_scores
        ),
    )
    return _problem(item for item in named if item[2] not in item[3])


def unknown_filters(
    scores: Iterable[ScoreObject], *, namespace: str | None, name: str | None
) -> RequestProblem | None:
    """Return the filters that match no score; `scores` are all that the hub has."""
    everything = tuple(scores)
    clusters = frozenset(score.cluster for score in everything)
    names = frozenset(score.name for score in everything)
    unknown: list[_UnknownName] = []
    if namespace is not None and namespace not in clusters:
        unknown.append(("namespace", "managed cluster with scores", namespace, clusters))
    if name is not None and score_object_name(name) not in names:
        unknown.append(("name", "AddOnPlacementScore", name, names))
    return _problem(unknown)


def _problem(unknown: Iterable[_UnknownName]) -> RequestProblem | None:
    found = list(unknown)
    if not found:
        return None
    errors = tuple(_field_problem(*item) for item in found[:MAX_NAMES])
    return ProblemKind.UNKNOWN_NAME.because(
        joined(
            (error.message for error in errors), MAX_NAMES_IN_MESSAGE, separator="; ", of=len(found)
        ),
        errors,
    )


def _names(objects: Iterable[Object]) -> frozenset[str]:
    return frozenset(name_of(obj) for obj in objects)


def _field_problem(field: str, what: str, name: str, known: frozenset[str]) -> FieldProblem:
    available = sorted(known)
    instead = f"; there is {listed(available, MAX_NAMES_IN_MESSAGE)}"
    message = (
        f"no {what} is named {UntrustedName(name)}{instead if available else '; there is none'}"
    )
    return FieldProblem(field, message, tuple(available[:MAX_NAMES]))
