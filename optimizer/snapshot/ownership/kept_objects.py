"""What a request without pruning keeps: placed workloads that it does not name, their policies."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, Kind
from dsf.kube.port import Object
from optimizer.domain.settings import OptimizerSettings
from optimizer.snapshot.object_readers import (
    cluster_selectors,
    generated_by,
    name_of,
    placement_of,
)
from optimizer.snapshot.observation import (
    CurrentDecisions,
    Observation,
    read_current_decisions,
    running_works,
)
from optimizer.wire.request import OptimizeRequest

KeptObjects = frozenset[tuple[Kind, str]]
"""Kinds and names of generated objects that a plan does not delete."""


def own_decisions(
    observation: Observation, request: OptimizeRequest, settings: OptimizerSettings
) -> CurrentDecisions:
    """Return the decision in force of a request's optimization.

    A workload of the request whose Placement is gone is where it runs: OCM leaves it there until
    the Placement exists again.
    """
    select = cluster_selectors(observation.managed_clusters, settings.cluster_label_key)
    found = read_current_decisions(observation, select, request.optimization)
    left = {
        placement: tuple(name for name in clusters if name in select)
        for placement, clusters in left_over(observation, request).items()
    }
    return replace(found, placements={**found.placements, **left})


def left_over(observation: Observation, request: OptimizeRequest) -> dict[str, list[str]]:
    """Return the clusters where workloads of a request run whose Placement is gone, by Placement.

    A ManifestWork of another Placement is not among them: writing this one does not govern it.
    """
    named = {item.name for item in request.target_workloads}
    there = set(map(name_of, observation.placements))
    works = running_works(observation.works or ()).get(request.namespace, {})
    found = dict[str, list[str]]()
    for obj in observation.workloads:
        placement = placement_of(obj)
        if placement and placement not in there and name_of(obj) in named:
            running = works.get(name_of(obj), ())
            found[placement] = sorted(i.cluster for i in running if i.placement in ("", placement))
    return {placement: clusters for placement, clusters in found.items() if clusters}


def kept_objects(
    observation: Observation, request: OptimizeRequest, running: CurrentDecisions
) -> KeptObjects:
    """Return what must not be deleted; nothing if the request prunes.

    That are the Placements of workloads that the request does not name, and on their clusters the
    policies in force, because the workloads run on what these supply.
    """
    if request.prune:
        return frozenset()
    referring = workloads_by_placement(observation.workloads)
    named = {item.name for item in request.target_workloads}
    left = {
        placement
        for placement in running.placements
        if placement in referring and named.isdisjoint(referring[placement])
    }
    clusters = {cluster for placement in left for cluster in running.placements[placement]}
    bound = {
        (name_of(binding), placement)
        for binding in generated_by(observation.bindings, request.optimization)
        for placement in [str((binding.get("placementRef") or {}).get("name"))]
        if not clusters.isdisjoint(running.placements.get(placement, ()))
    }
    return frozenset(
        [(PLACEMENT, name) for name in left | {placement for _, placement in bound}]
        + [(PLACEMENT_BINDING, name) for name, _ in bound]
    )


def only_kept(kept: KeptObjects, observation: Observation) -> Observation:
    """Return an observation whose generated objects are only those that are kept."""
    return replace(
        observation,
        policies=(),
        placements=tuple(i for i in observation.placements if (PLACEMENT, name_of(i)) in kept),
        bindings=tuple(i for i in observation.bindings if (PLACEMENT_BINDING, name_of(i)) in kept),
    )


def workloads_by_placement(replica_sets: Iterable[Object]) -> Mapping[str, list[str]]:
    """Return the names of the ManifestWorkReplicaSets that refer to each Placement first."""
    found = defaultdict[str, list[str]](list)
    for obj in replica_sets:
        found[placement_of(obj)].append(name_of(obj))
    return found
