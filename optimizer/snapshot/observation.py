"""The objects that a plan for one namespace depends on: what they decide, and what runs.

The decision in force is read from the generated Placements and PlacementBindings.
PlacementDecisions lag until the clusters' claims are compliant. What runs are the ManifestWorks
that OCM made for ManifestWorkReplicaSets.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from dsf.api.names import PLACEMENT_LABEL, WORK_PLACEMENT_LABEL
from dsf.api.times import read_time
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, Kind
from dsf.kube.port import Object
from optimizer.domain.fleet import Selector
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import PolicyEnforcement
from optimizer.snapshot.object_readers import (
    cluster_selectors,
    generated_by,
    labels_of,
    name_of,
    placement_of,
    replica_set_of,
)
from optimizer.wire.request import OptimizeRequest


@dataclass(frozen=True, slots=True)
class Observation:
    """Objects as the API server returned them, one list per kind.

    Policies, workloads, Placements, PlacementBindings and ManagedClusterSetBindings are those of
    the request's namespace; managed clusters, cluster sets and AddOnPlacementScores are the whole
    hub's. Scores are left out where they are read page by page. `decisions` are the namespace's
    PlacementDecisions. `elsewhere`: by namespace, the policies, workloads, Placements, bindings and
    decisions of the others; `unread`: the kinds that could not be listed there. `named`: whether
    a plan may name them. `works`: the ManifestWorks of the namespace's ManifestWorkReplicaSets on
    all clusters, or of all namespaces' if `elsewhere` was read; without manifests; None if they may
    not be listed. `usage_scores`: OCM's resource usage scores. `scorers`: DynamicScorers;
    None if they may not be listed. `inventories`: NodeInventories; None if they may not be listed.
    `observed_at` is aware.
    """

    managed_clusters: tuple[Object, ...] = ()
    policies: tuple[Object, ...] = ()
    workloads: tuple[Object, ...] = ()
    placements: tuple[Object, ...] = ()
    bindings: tuple[Object, ...] = ()
    scores: tuple[Object, ...] = ()
    cluster_sets: tuple[Object, ...] = ()
    set_bindings: tuple[Object, ...] = ()
    observed_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    decisions: tuple[Object, ...] = ()
    elsewhere: Mapping[str, "Observation"] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    named: bool = True
    works: tuple[Object, ...] | None = ()
    usage_scores: tuple[Object, ...] = ()
    scorers: tuple[Object, ...] | None = ()
    inventories: tuple[Object, ...] | None = ()

    def has_objects_of(self, other: "Observation") -> bool:
        """Return whether both are of the same objects, whenever they were observed."""
        return replace(self, observed_at=other.observed_at) == other


CEL_CLUSTER_NAME = re.compile(r'"([a-z0-9.-]+)"')
"""A cluster's name in the CEL expression of a generated Placement."""


@dataclass(frozen=True, slots=True)
class CurrentDecisions:
    """The clusters that each generated Placement selects, and the policies bound to clusters.

    `bound`: when the last of its policies was bound to a cluster.
    """

    placements: Mapping[str, tuple[str, ...]]
    policies: frozenset[PolicyEnforcement]
    bound: Mapping[str, datetime] = field(default_factory=dict)


class RequestedHub(NamedTuple):
    """What a request is about: the objects, the clusters' selectors, and its decision in force."""

    observation: Observation
    request: OptimizeRequest
    select: Mapping[str, Selector]
    running: CurrentDecisions


def read_current_decisions(
    observation: Observation, selectors: Mapping[str, Selector], optimization: str | None
) -> CurrentDecisions:
    """Return the decision in force of one optimization, or of all of a namespace.

    What was not generated is ignored.
    """
    by_label = {(item.key, item.cluster): name for name, item in selectors.items()}
    placements = {
        name_of(obj): tuple(
            dict.fromkeys(
                cluster for cluster in _selected_clusters(obj, by_label) if cluster in selectors
            )
        )
        for obj in generated_by(observation.placements, optimization)
    }
    policies, bound = set[PolicyEnforcement](), dict[str, datetime]()
    for binding in generated_by(observation.bindings, optimization):
        created = read_time(binding["metadata"].get("creationTimestamp"))
        for cluster in placements.get(str((binding.get("placementRef") or {}).get("name")), ()):
            names = (str(subject.get("name")) for subject in binding.get("subjects") or ())
            policies |= {PolicyEnforcement(cluster, name) for name in names}
            if created:
                bound[cluster] = max(created, bound.get(cluster, created))
    return CurrentDecisions(placements, frozenset(policies), bound)


def _selected_clusters(placement: Object, by_label: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the clusters that a generated Placement selects."""
    for predicate in (placement.get("spec") or {}).get("predicates") or ():
        wanted = predicate.get("requiredClusterSelector") or {}
        labels = wanted.get("labelSelector") or {}
        pairs = list((labels.get("matchLabels") or {}).items())
        for expression in labels.get("matchExpressions") or ():
            if expression.get("operator") == "In":
                pairs += [
                    (expression.get("key"), value) for value in expression.get("values") or ()
                ]
        yield from (by_label[pair] for pair in pairs if pair in by_label)
        for expression in (wanted.get("celSelector") or {}).get("celExpressions") or ():
            yield from CEL_CLUSTER_NAME.findall(str(expression))


class RunningWork(NamedTuple):
    """A ManifestWork: its cluster, and the Placement that selected it.

    `placement` is empty if OCM is too old to name it. `deleting`: OCM removes it.
    """

    cluster: str
    placement: str
    labels: Mapping[str, str]
    deleting: bool = False
    name: str = ""

    def as_replica_set(self, name: str) -> Object:
        """Return as much of its ManifestWorkReplicaSet as its labels tell."""
        metadata = {"name": name, "labels": self.labels}
        return {"metadata": metadata, "spec": {"placementRefs": [{"name": self.placement}]}}


def running_works(works: Iterable[Object]) -> dict[str, dict[str, list[RunningWork]]]:
    """Return what runs by namespace and name of the ManifestWorkReplicaSet.

    A ManifestWork that is being deleted counts: its workload runs until the agent has removed it.
    """
    found: dict[str, dict[str, list[RunningWork]]] = {}
    for work in works:
        namespace, name = replica_set_of(work)
        labels = labels_of(work)
        item = RunningWork(
            str(work["metadata"].get("namespace")),
            labels.get(WORK_PLACEMENT_LABEL, ""),
            labels,
            deleting=bool(work["metadata"].get("deletionTimestamp")),
            name=name_of(work),
        )
        found.setdefault(namespace, {}).setdefault(name, []).append(item)
    return found


def selected_clusters(decisions: Iterable[Object]) -> Mapping[str, list[str]]:
    """Return the clusters that OCM has selected, by Placement."""
    found = defaultdict[str, list[str]](list)
    for decision in decisions:
        listed = (decision.get("status") or {}).get("decisions") or ()
        owner = labels_of(decision).get(PLACEMENT_LABEL, "")
        found[owner] += [str(item["clusterName"]) for item in listed if item.get("clusterName")]
    return found


def unselected_works(
    observation: Observation, select: Mapping[str, Selector]
) -> Iterator[tuple[tuple[str, str, str], Object]]:
    """Yield the ManifestWorks whose Placement does not select their cluster, or is gone.

    Each with namespace and name of its ManifestWorkReplicaSet, and its cluster.
    """
    selected = set[tuple[str, str, str]]()
    for namespace, seen in (("", observation), *observation.elsewhere.items()):
        named = read_current_decisions(seen, select, None).placements
        for places in (named, selected_clusters(seen.decisions)):
            selected |= {(namespace, item, name) for item, on in places.items() for name in on}
    for work in observation.works or ():
        namespace, name = replica_set_of(work)
        cluster = str(work["metadata"].get("namespace"))
        placement = labels_of(work).get(WORK_PLACEMENT_LABEL, "")
        where = namespace if namespace in observation.elsewhere else ""
        if (where, placement, cluster) not in selected:
            yield (namespace, name, cluster), work


def with_works(
    observation: Observation, earlier: Mapping[tuple[str, str, str], Object]
) -> Observation:
    """Return an observation in which the unselected works of an earlier one are still there."""
    if observation.works is None:
        return observation
    there = {(*replica_set_of(obj), obj["metadata"]["namespace"]) for obj in observation.works}
    gone = tuple(obj for key, obj in earlier.items() if key not in there)
    return replace(observation, works=(*observation.works, *gone))


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
