"""Names in a request that the hub does not know, with those that it does."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice

from dsf.api.names import score_object_name
from dsf.kube.port import Object
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import UNPROCESSABLE, FieldProblem, RequestProblem
from optimizer.wire.result import ScoreObject

MAX_NAMES = 100
"""Errors in an answer, and names in an error of what exists instead."""

MAX_NAMES_IN_MESSAGE = 10


def unknown_names(
    observation: Observation, request: OptimizeRequest, scores: Collection[str]
) -> RequestProblem | None:
    """Return the clusters, policies, workloads and scores of the request that do not exist.

    `scores`: the names of AddOnPlacementScores that its clusters have. At most MOST_NAMED unknown
    ones, and `available` holds at most as many: an answer must not grow with the product of the
    request and the hub.
    """
    unknown = chain(
        _unknown_clusters(observation, request),
        _unknown_policies(observation, request),
        _unknown_workloads(observation, request),
        _unknown_score(frozenset(scores), request),
    )
    return _problem(unknown)


def unknown_filters(
    scores: Iterable[ScoreObject], *, namespace: str | None, name: str | None
) -> RequestProblem | None:
    """Return the filters for which the hub has no scores; `scores` are all that it has."""
    everything = tuple(scores)
    clusters = frozenset(score.cluster for score in everything)
    names = frozenset(score.name for score in everything)
    unknown: list[FieldProblem] = []
    if namespace is not None and namespace not in clusters:
        unknown.append(_unknown("namespace", "managed cluster with scores", namespace, clusters))
    if name is not None and score_object_name(name) not in names:
        unknown.append(_unknown("name", "AddOnPlacementScore", name, names))
    return _problem(unknown)


def _problem(unknown: Iterable[FieldProblem]) -> RequestProblem | None:
    errors = tuple(islice(unknown, MAX_NAMES))
    if not errors:
        return None
    more = ["and more"] if len(errors) > MAX_NAMES_IN_MESSAGE else []
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="UnknownName",
        title="The request names what does not exist",
        detail="; ".join([*(error.message for error in errors[:MAX_NAMES_IN_MESSAGE]), *more]),
        errors=errors,
    )


def _unknown_clusters(observation: Observation, request: OptimizeRequest) -> Iterator[FieldProblem]:
    known = _names(observation.managed_clusters)
    for index, cluster in enumerate(request.clusters):
        if cluster.name not in known:
            yield _unknown(f"clusters[{index}].name", "managed cluster", cluster.name, known)


def _unknown_policies(observation: Observation, request: OptimizeRequest) -> Iterator[FieldProblem]:
    known, where = _names(observation.policies), f"policy in namespace {request.namespace}"
    for index, cluster in enumerate(request.clusters):
        for position, policy in enumerate(cluster.available_policies):
            if policy.name not in known:
                field = f"clusters[{index}].availablePolicies[{position}].name"
                yield _unknown(field, where, policy.name, known)


def _unknown_workloads(
    observation: Observation, request: OptimizeRequest
) -> Iterator[FieldProblem]:
    known = _names(observation.workloads)
    where = f"ManifestWorkReplicaSet in namespace {request.namespace}"
    for index, workload in enumerate(request.target_workloads):
        if workload.name not in known:
            yield _unknown(f"targetWorkloads[{index}].name", where, workload.name, known)


def _unknown_score(known: frozenset[str], request: OptimizeRequest) -> Iterator[FieldProblem]:
    where = "AddOnPlacementScore in the namespaces of the clusters named"
    for field, score in request.read_scores:
        if score.score_name not in known:
            yield _unknown(f"{field}.addonPlacementScore", where, score.score_name, known)


def _names(objects: Iterable[Object]) -> frozenset[str]:
    return frozenset(name_of(obj) for obj in objects)


def _unknown(field: str, what: str, name: str, known: frozenset[str]) -> FieldProblem:
    available = tuple(sorted(known))
    message = f"no {what} is named {name}{_instead(available)}"
    return FieldProblem(field, message, available[:MAX_NAMES])


def _instead(available: tuple[str, ...]) -> str:
    if not available:
        return " (there is none at all)"
    more = (
        f" and {len(available) - MAX_NAMES_IN_MESSAGE} more"
        if len(available) > MAX_NAMES_IN_MESSAGE
        else ""
    )
    return f"; there is {', '.join(available[:MAX_NAMES_IN_MESSAGE])}{more}"
