"""Finds the names in a request that the hub does not have, and lists those that it has."""

from collections.abc import Collection, Iterable
from itertools import chain

from dsf.api.names import score_object_name
from dsf.api.plural import joined
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.port import Object
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import UNPROCESSABLE, FieldProblem, RequestProblem
from optimizer.wire.result import ScoreObject

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
    unknown = chain(
        (
            (f"clusters[{index}].name", "managed cluster", cluster.name, clusters)
            for index, cluster in enumerate(request.clusters)
            if cluster.name not in clusters
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
            if policy.name not in policies
        ),
        (
            (
                f"targetWorkloads[{index}].name",
                f"ManifestWorkReplicaSet {inside}",
                workload.name,
                workloads,
            )
            for index, workload in enumerate(request.target_workloads)
            if workload.name not in workloads
        ),
        (
            (
                f"{field}.addonPlacementScore",
                "AddOnPlacementScore in the namespaces of the request's clusters",
                score.score_name,
                known_scores,
            )
            for field, score in request.read_scores
            if score.score_name not in known_scores
        ),
    )
    return _problem(unknown)


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
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="UnknownName",
        title="The request names objects that do not exist",
        detail=joined(
            (error.message for error in errors), MAX_NAMES_IN_MESSAGE, separator="; ", of=len(found)
        ),
        errors=errors,
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
