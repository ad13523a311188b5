"""The request that a PlacementOptimization means now: what its names and selectors select."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, label_selector
from dsf.placement import bound_sets, sets_of
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.question_completion import UNSTATED, policies_of
from optimizer.snapshot.object_readers import labels_of, name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_optimization import PlacementOptimizationSpec, read_spec
from optimizer.wire.request import OptimizeRequest, RequestedCluster, RequestedWorkload
from optimizer.wire.request_problem import RequestProblem

MAX_NAMED = 5
"""Names that a message spells out."""


class NotKept(NamedTuple):
    """Why nothing is kept placed, for a Condition."""

    reason: str
    message: str


class KeptRequest(NamedTuple):
    """A request, and in a sentence which names of the spec the hub does not have; or empty."""

    request: OptimizeRequest
    missing: str = ""


def kept_request(obj: Object, others: Iterable[Object], facts: FleetFacts) -> KeptRequest | NotKept:
    """Return what is to be kept by a PlacementOptimization whose spec is valid, or why nothing is.

    `others`: the PlacementOptimizations of the namespace. Of two that claim a workload the younger
    gives way; one that gives way itself claims nothing.
    """
    spec = read_spec(obj)
    if isinstance(spec, RequestProblem):
        return NotKept(spec.reason, spec.detail)
    workloads = tuple(_workloads(spec, facts.workloads))
    claimed = _claimed(obj, others, facts)
    taken = sorted(claimed.keys() & {item["name"] for item in workloads})
    if taken:
        owner = UntrustedName(claimed[taken[0]])
        return NotKept(
            "WorkloadClaimed",
            f"PlacementOptimization {owner}, which is older, claims {listed(taken[:MAX_NAMED])}:"
            " change the workloads of one of them, or delete it",
        )
    clusters = tuple(_clusters(spec, facts))
    if not workloads:
        where = f"namespace {facts.namespace}"
        return NotKept(
            "NoWorkloads",
            f"no workload of {where} is selected: look at targetWorkloads and workloadSelector, and"
            " at the labels of its ManifestWorkReplicaSets",
        )
    if not clusters:
        return NotKept("NoClusters", _no_clusters(spec, facts.observation))
    further = {**_generated(spec, clusters), **_objectives(spec, facts.observation.observed_at)}
    request = spec.request(clusters=clusters, targetWorkloads=workloads, **further)
    if isinstance(request, RequestProblem):
        return NotKept(request.reason, request.detail)
    return KeptRequest(request, _missing(spec, facts))


def _claimed(obj: Object, others: Iterable[Object], facts: FleetFacts) -> dict[str, str]:
    """Return the workloads that older PlacementOptimizations keep, and which one does."""
    return claims((other for other in others if _age(other) < _age(obj)), facts.workloads)


def kept_elsewhere(
    kept: Iterable[Object], workloads: Mapping[str, Object], optimization: str
) -> Mapping[str, str]:
    """Return the workloads that another PlacementOptimization keeps, and which one does.

    `workloads`: those of the namespace. One that is suspended leaves them to others.
    """
    objects = tuple(kept)
    resting = {name_of(obj) for obj in objects if (obj.get("spec") or {}).get("suspend")}
    return {
        name: owner
        for name, owner in claims(objects, workloads).items()
        if owner not in {*resting, optimization}
    }


def named_elsewhere(elsewhere: Mapping[str, str], kept: Iterable[Object]) -> frozenset[str]:
    """Return the workloads kept elsewhere that a spec names or selects; others keep all."""
    specs = ((name_of(obj), obj.get("spec") or {}) for obj in kept)
    naming = {
        name for name, spec in specs if spec.get("targetWorkloads") or spec.get("workloadSelector")
    }
    return frozenset(name for name, owner in elsewhere.items() if owner in naming)


KEPT_ELSEWHERE, PLANNED_AGAIN = "KeptElsewhere", "PlannedAgain"
KEEPER_REASONS = frozenset({KEPT_ELSEWHERE, PLANNED_AGAIN})
"""Reasons of what other PlacementOptimizations keep of a question."""


def keeper_issues(
    elsewhere: Mapping[str, str], planned: Collection[str], left_out: Collection[str]
) -> Iterator[Issue]:
    """Yield which workloads a question leaves to PlacementOptimizations, and which it does not."""
    for owner, names in members_by_key((owner, name) for name, owner in elsewhere.items()).items():
        shown = UntrustedName(owner)
        if left := [name for name in names if name in left_out]:
            them = "it is" if len(left) == 1 else "they are"
            yield Issue(
                KEPT_ELSEWHERE,
                f"not planned: {listed(left, MAX_NAMED)}, which PlacementOptimization {shown}"
                f" keeps; named in workloads, {them} planned anyway",
            )
        if too := [name for name in names if name in planned]:
            them = "it" if len(too) == 1 else "them"
            yield Issue(
                PLANNED_AGAIN,
                f"PlacementOptimization {shown} keeps {listed(too, MAX_NAMED)} too, and plans"
                f" {them} again at its next look: plan {them} for that optimization, or suspend"
                " that",
            )


def claims(kept: Iterable[Object], workloads: Mapping[str, Object]) -> dict[str, str]:
    """Return the workloads that PlacementOptimizations keep, and which one does."""
    found = dict[str, str]()
    for other in sorted(kept, key=_age):
        spec = read_spec(other)
        if isinstance(spec, RequestProblem) or other["metadata"].get("deletionTimestamp"):
            continue
        names = [item["name"] for item in _workloads(spec, workloads)]
        if found.keys().isdisjoint(names):
            found |= dict.fromkeys(names, name_of(other))
    return found


def _age(obj: Object) -> tuple[str, str]:
    return str(obj["metadata"].get("creationTimestamp") or ""), name_of(obj)


def _workloads(
    spec: PlacementOptimizationSpec, workloads: Mapping[str, Object]
) -> Iterator[dict[str, Any]]:
    yield from _selected(spec.target_workloads, spec.workload_selector, workloads)


def _clusters(spec: PlacementOptimizationSpec, facts: FleetFacts) -> Iterator[dict[str, Any]]:
    """Yield the clusters; those that state no policies and no GPUs with all that they may have."""
    known = facts.hub.clusters
    if not spec.clusters:
        known = {name: known[name] for name in sorted(known) if _admitted(spec, known[name], facts)}
    for item in _selected(spec.clusters, spec.cluster_selector, known):
        if "availablePolicies" in item or "gpus" in item:
            yield item
        else:
            names = [policy.policy for policy in policies_of(facts, item["name"])]
            yield {**item, "availablePolicies": [{"name": name} for name in names]}


def _selected(
    stated: Sequence[RequestedCluster | RequestedWorkload], text: str, known: Mapping[str, Object]
) -> Iterator[dict[str, Any]]:
    """Yield the stated parts of a request, or one for all objects, that a selector selects."""
    selector = label_selector(text)
    if not isinstance(selector, LabelSelector):
        raise TypeError(text)  # a spec that can't be read selects nothing
    parts = [item.model_dump(mode="json", by_alias=True, exclude_unset=True) for item in stated]
    for part in parts or ({"name": name} for name in known):
        name = part["name"]
        if name in known and selector.matches(labels_of(known[name])):
            yield part


def _admitted(spec: PlacementOptimizationSpec, cluster: Object, facts: FleetFacts) -> bool:
    """Tell whether the namespace is bound to a cluster set of a cluster, of those that are asked.

    A hub without any cluster set, such as files, is not asked about sets.
    """
    seen = facts.observation
    if not seen.cluster_sets:
        return True
    bound = bound_sets(seen.set_bindings, seen.cluster_sets) & sets_of(cluster, seen.cluster_sets)
    return bool(bound & set(spec.cluster_sets) if spec.cluster_sets else bound)


def _generated(
    spec: PlacementOptimizationSpec, clusters: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the field that lets policies be generated where nobody says what clusters supply."""
    bare = not any(
        item.get("availablePolicies") or "gpus" in item or "allocatable" in item
        for item in clusters
    )
    return UNSTATED if bare and spec.mig is None else {}


def _objectives(spec: PlacementOptimizationSpec, now: datetime) -> dict[str, Any]:
    """Return the fields of the scores that count now."""
    active, fields = spec.open_schedule(now) or spec, {"preference", "objectives"}
    body = active.model_dump(mode="json", by_alias=True, exclude_unset=True, include=fields)
    return {"objectives": [], **body}


def _no_clusters(spec: PlacementOptimizationSpec, seen: Observation) -> str:
    if spec.clusters or spec.cluster_selector:
        return "no managed cluster is selected: look at clusters and clusterSelector"
    if seen.cluster_sets and not seen.set_bindings:
        return (
            f"namespace {spec.namespace} is bound to no cluster set:"
            f" `clusteradm clusterset bind SET --namespace {spec.namespace}`"
        )
    return "the cluster sets of the namespace, or those in clusterSets, have no managed cluster"


def _missing(spec: PlacementOptimizationSpec, facts: FleetFacts) -> str:
    clusters = [item.name for item in spec.clusters if item.name not in facts.hub.clusters]
    workloads = [i.name for i in spec.target_workloads if i.name not in facts.workloads]
    named = {"cluster": clusters, "workload": workloads}
    return "; ".join(
        f"the hub has no {what} {listed(names[:MAX_NAMED])}"
        for what, names in named.items()
        if names
    )
