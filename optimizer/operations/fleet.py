"""The operations about the fleet: what it is made of, its matrix, and what was placed on it."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Annotated, TypeVar

from pydantic import Field

from dsf.api.untrusted_text import UntrustedName, joined
from dsf.kube.access_reviews import right
from dsf.kube.errors import NotFound
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    NODE_INVENTORY,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_OPTIMIZATION,
    PLACEMENT_PLAN,
    POLICY,
    Kind,
)
from dsf.kube.port import Object
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_matrix import FleetMatrix
from optimizer.follow.overview.name_search import MAX_NEAR, find_name
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.access.rights import fleet_rights, status_rights
from optimizer.operations.operation import Route, operation
from optimizer.service.observe import list_all
from optimizer.service.observe_fleet import OPTIONAL_KINDS
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import Namespace, OptimizationName
from optimizer.wire.request_problem import ProblemKind, RequestProblem, refused_fields

T = TypeVar("T")


@operation(rights=fleet_rights)
async def fleet_facts(
    optimizer: AuthorizedOptimizer, namespace: str
) -> FleetFacts | RequestProblem:
    """Return what answers about the fleet are made of; refused for a namespace that is none.

    Scorers and capacity are in it for users who may list DynamicScorers and NodeInventories; which
    scores are asked for, and which plans wait, for those who may list PlacementOptimizations.
    """
    listed = await _listable(optimizer, namespace)
    facts = await optimizer.service.fleet(namespace, listed=listed)
    if not facts.is_empty:
        return facts
    others = await namespaces_with_workloads(optimizer)
    missing = await optimizer.service.missing_namespace(namespace, others)
    return missing or replace(facts, with_workloads=others)


async def namespaces_with_workloads(optimizer: AuthorizedOptimizer) -> tuple[str, ...]:
    """Return the namespaces that have workloads; none for users who may not list these."""
    known = await optimizer.may((right("list", MANIFEST_WORK_REPLICA_SET),))
    return await optimizer.service.namespaces_with_workloads() if known else ()


@operation(rights=None)
async def with_namespaces(
    optimizer: AuthorizedOptimizer, found: T | RequestProblem, said: Iterable[str], namespace: str
) -> T | RequestProblem:
    """Return what was found; a refusal of unknown workloads says which namespaces have them.

    For users who may list ManifestWorkReplicaSets of all namespaces.
    """
    if not isinstance(found, RequestProblem) or found.reason != ProblemKind.UNKNOWN_NAME.value[1]:
        return found
    if not await optimizer.may((right("list", MANIFEST_WORK_REPLICA_SET),)):
        return found
    names = await optimizer.service.workload_names()
    there = {word: dict(_spaces_of(word, names)) for word in said}
    more = joined(
        (
            f"{UntrustedName(name)} in namespace {UntrustedName(space)}"
            for spaces in there.values()
            if namespace not in spaces
            for space, name in spaces.items()
        ),
        MAX_NEAR,
    )
    if not more:
        return found
    *others, last = found.errors
    more = f"{last.message}; elsewhere there is {more}: say the namespace"
    return refused_fields(found.reason, found.title, *others, replace(last, message=more))


def _spaces_of(said: str, names: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the namespaces that have what is meant by a part of a name, and its name there."""
    for namespace, known in names.items():
        name = find_name(said, known, field="workload", what="workload")
        if isinstance(name, str):
            yield namespace, name


async def _listable(optimizer: AuthorizedOptimizer, namespace: str) -> frozenset[Kind]:
    """Return the OPTIONAL_KINDS that the caller may list."""
    asked = {
        kind: right("list", kind, "" if kind in _OF_ALL else namespace) for kind in OPTIONAL_KINDS
    }
    return frozenset([kind for kind in asked if await optimizer.may((asked[kind],))])


GENERATED_KINDS = (PLACEMENT, PLACEMENT_BINDING, POLICY)
"""Kinds of what plans generate."""

SHOWN_KINDS = (
    *GENERATED_KINDS,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT_PLAN,
    PLACEMENT_OPTIMIZATION,
    MANAGED_CLUSTER,
    DYNAMIC_SCORER,
    NODE_INVENTORY,
)
"""Kinds whose objects are shown as they are."""

_OF_ALL = (MANAGED_CLUSTER, DYNAMIC_SCORER, NODE_INVENTORY)
"""Those that belong to no namespace of workloads."""


@operation(rights=None)
async def named_objects(
    optimizer: AuthorizedOptimizer, said: str, namespace: str, kinds: Sequence[Kind] = SHOWN_KINDS
) -> tuple[Object, ...] | RequestProblem:
    """Return the objects whose kind and name have all words, of kinds that the caller may list.

    A word that is one of the kinds means this kind only.
    """
    words = said.lower().split()
    named = [kind for kind in kinds if {kind.kind.lower(), kind.plural} & {*words}]
    found, refused = list[Object](), list[RequestProblem]()
    for kind in named or kinds:
        objects = await listed_objects(optimizer, kind, "" if kind in _OF_ALL else namespace)
        if isinstance(objects, RequestProblem):
            refused.append(objects)
            continue
        for obj in objects:
            text = f"{kind.kind} {kind.plural} {name_of(obj)}".lower()
            if all(word in text for word in words):
                metadata = {"metadata": obj["metadata"]}
                found.append({**kind.object(**metadata), **obj, **kind.object()})
    return refused[0] if refused and not found else tuple(found)


@operation(rights=lambda kind, namespace: (right("list", kind, namespace),))
async def listed_objects(
    optimizer: AuthorizedOptimizer, kind: Kind, namespace: str
) -> Sequence[Object] | RequestProblem:
    """Return the objects of a kind, of a namespace or of the hub; none if it lacks the kind."""
    try:
        return await list_all(optimizer.service.hub, kind, namespace or None)
    except NotFound:  # the hub does not serve the kind
        return ()


@operation(
    rights=fleet_rights,
    route=Route("GET", "/fleet", "Show the fleet as a matrix of clusters and scores"),
)
async def fleet(
    optimizer: AuthorizedOptimizer, namespace: Namespace = "default"
) -> FleetMatrix | RequestProblem:
    """Return clusters, scores, what is enforced and runs where, scorers, and what is wrong.

    Values of scores are lists in the order of the clusters. The ETag stays the same until
    something else than `observed_at` changes. Scorers and capacity are in it for callers who may
    list DynamicScorers and NodeInventories.
    """
    listed = await _listable(optimizer, namespace)
    found = await optimizer.service.matrices.matrix(namespace, listed=listed)
    empty = not (found.workloads or found.policies)
    return await optimizer.of_namespace(namespace, found, empty=empty)


@operation(
    rights=fleet_rights,
    route=Route("GET", "/fleet/events", "Hear when the fleet has changed", problems=(404, 422)),
)
async def follow_fleet(
    optimizer: AuthorizedOptimizer, namespace: Namespace = "default"
) -> AsyncGenerator[FleetMatrix] | RequestProblem:
    """Tell whenever GET /fleet would answer the caller something else; first, what it answers now.

    An event has the ETag of that answer. The stream ends after 15 minutes; open another one.
    """
    found = await fleet(optimizer, namespace)
    if isinstance(found, RequestProblem):
        return found
    listed = await _listable(optimizer, namespace)
    return _until_end(optimizer.service.matrices.changing(namespace, listed=listed))


STREAM_SECONDS = 900.0
"""How long a stream lasts: the rights of its caller are checked again when the next one begins."""


async def _until_end(changes: AsyncGenerator[FleetMatrix]) -> AsyncGenerator[FleetMatrix]:
    end = asyncio.get_running_loop().time() + STREAM_SECONDS
    async with aclosing(changes):
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout_at(end):
                    found = await anext(changes)
                yield found


@operation(
    rights=status_rights,
    route=Route("GET", "/placements/status", "Compare what was decided with what OCM has done"),
)
async def placement_status(
    optimizer: AuthorizedOptimizer,
    namespace: Namespace,
    optimization: Annotated[
        OptimizationName | None, Field(description="Only what this optimization generated.")
    ] = None,
) -> PlacementStatus | RequestProblem:
    """Tell how far OCM is with each workload on each cluster that a plan placed it on.

    Also which policy of a cluster is compliant, and which generated objects were edited or name
    a cluster that was lost. A namespace in which nothing was placed has empty lists.
    """
    found = await optimizer.service.placement_status(namespace, optimization)
    return await optimizer.of_namespace(namespace, found, empty=found.is_empty)
