"""A reset: what it deletes, what goes on running, and what it stops."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.api.optimization import Optimization
from dsf.kube.changes import Change, Delete
from dsf.kube.kinds import MANIFEST_WORK, PLACEMENT, PLACEMENT_BINDING, POLICY
from dsf.kube.port import Object
from optimizer.domain.fleet import Selector
from optimizer.domain.issue import Issue
from optimizer.plan.basis import digest_of_json
from optimizer.plan.generated_objects import changes, selects_no_cluster
from optimizer.plan.manifests import stopped_placement
from optimizer.plan.uncovered_others import as_result
from optimizer.snapshot.object_readers import generated_by, is_workload, name_of, placement_of
from optimizer.snapshot.observation import (
    Observation,
    RunningWork,
    running_works,
    selected_clusters,
)
from optimizer.snapshot.ownership.others import dependents_of_others, policies_of_others
from optimizer.wire.result import WorkloadClusters
from optimizer.wire.rollout import UncoveredOthers

_UNREAD = Issue(
    reason="OthersNotRead",
    message=f"the optimizer may not list {MANIFEST_WORK.kind}s, so what runs is taken from what OCM"
    " has decided; what runs without a Placement is not known",
)


class ResetOutcome(NamedTuple):
    """What a reset does to what runs."""

    running: tuple[WorkloadClusters, ...] = ()
    stopping: tuple[WorkloadClusters, ...] = ()
    uncovers_others: tuple[UncoveredOthers, ...] = ()
    gaps: tuple[Issue, ...] = ()


def reset_changes(
    observation: Observation,
    namespace: str,
    optimization: str | None,
    *,
    stop_workloads: bool = False,
) -> tuple[Change, ...]:
    """Return what a reset writes: it deletes what an optimization generated, or what any did.

    With `stop_workloads`, the Placements of workloads select nothing instead. If all of a namespace
    is reset, each workload that runs although its Placement is gone gets one that selects nothing.

    Otherwise the Placements of workloads are deleted before any policy is released. OCM would stop
    those that are left while the claim of their cluster is not compliant.
    """
    if not stop_workloads:
        writes = changes((), replace(observation, workloads=()), optimization)
        bound = {str((obj.get("placementRef") or {}).get("name")) for obj in observation.bindings}
        return tuple(sorted(writes, key=lambda i: i.kind != PLACEMENT or i.name in bound))
    owner, made = Optimization(namespace, DEFAULT_OPTIMIZATION), dict[str, Object]()
    works = running_works(observation.works or ()).get(namespace, {})
    there = {"", *map(name_of, observation.placements)}
    for obj in observation.workloads if optimization is None else ():
        placement = placement_of(obj)
        runs = any(i.placement in ("", placement) for i in works.get(name_of(obj), ()))
        if is_workload(obj) and runs and placement not in there:
            made[placement] = stopped_placement(owner, placement)
    return changes(made.values(), observation, optimization)


def left_empty(observation: Observation, optimization: str | None, writes: Iterable[Change]) -> int:
    """Return how many generated Placements select nothing already, and are not written."""
    written = {item.name for item in writes if item.kind == PLACEMENT}
    return sum(
        selects_no_cluster(obj) and name_of(obj) not in written
        for obj in generated_by(observation.placements, optimization)
    )


def reset_digest(
    deletions: Iterable[Change], observation: Observation, scope: tuple[str, str | None]
) -> str:
    """Return the SHA-256 of what a reset changes: the objects as they are, and each change.

    `scope`: the namespace, and the optimization if it is only one.
    """
    objects = {
        (kind, name_of(obj)): {key: part for key, part in obj.items() if key != "status"}
        for kind, found in (
            (PLACEMENT, observation.placements),
            (PLACEMENT_BINDING, observation.bindings),
            (POLICY, observation.policies),
        )
        for obj in found
    }
    changed = [(str(change), objects.get((change.kind, change.name))) for change in deletions]
    return digest_of_json([scope, [[said, _identity(obj)] for said, obj in changed]])


def _identity(obj: Object | None) -> list[Any]:
    """Return the uid of an object, and what people decided of it: all but metadata and status."""
    if obj is None:
        return []
    content = {key: part for key, part in obj.items() if key != "metadata"}
    return [obj["metadata"].get("uid"), content]


def reset_outcome(
    observation: Observation,
    namespace: str,
    optimization: str | None,
    writes: Sequence[Change],
    *,
    select: Mapping[str, Selector],
    claim_name: str,
) -> ResetOutcome:
    """Return what becomes of what runs when a reset is written."""
    gone = {i.name for i in writes if i.kind == PLACEMENT and isinstance(i, Delete)}
    written = {i.name for i in writes if i.kind == PLACEMENT} - gone
    there = {*map(name_of, observation.placements), *written} - gone
    own = set(map(name_of, generated_by(observation.placements, optimization)))
    works = _works(observation, namespace)
    return ResetOutcome(
        tuple(_running(observation, works, lambda name: name not in there)),
        tuple(_running(observation, works, lambda name: name in there & (own | written))),
        _uncovered(observation, namespace, optimization, select, claim_name),
        (_UNREAD,) if observation.works is None else (),
    )


def _works(observation: Observation, namespace: str) -> Mapping[str, Sequence[RunningWork]]:
    """Return what runs by workload; where ManifestWorks are not read, what OCM has decided."""
    if observation.works is not None:
        return running_works(observation.works).get(namespace, {})
    decided = selected_clusters(observation.decisions)
    return {
        name_of(obj): [RunningWork(cluster, name, {}) for cluster in decided.get(name, ())]
        for obj in observation.workloads
        for name in [placement_of(obj)]
    }


def _running(
    observation: Observation,
    works: Mapping[str, Sequence[RunningWork]],
    is_meant: Callable[[str], bool],
) -> Iterator[WorkloadClusters]:
    """Yield the workloads with what runs by a Placement that is meant."""
    for obj in observation.workloads:
        clusters = sorted(
            work.cluster
            for work in works.get(name_of(obj), ())
            if not work.deleting and is_meant(work.placement or placement_of(obj))
        )
        if clusters:
            yield WorkloadClusters(workload=name_of(obj), clusters=tuple(clusters))


def _uncovered(
    observation: Observation,
    namespace: str,
    optimization: str | None,
    select: Mapping[str, Selector],
    claim_name: str,
) -> tuple[UncoveredOthers, ...]:
    """Return the workloads of others on clusters that lose their last policy, and so the claim."""
    left = replace(
        observation,
        placements=_without(observation.placements, optimization),
        bindings=_without(observation.bindings, optimization),
    )
    anybody = Optimization(namespace, "")
    before, after = (policies_of_others(seen, anybody, select) for seen in (observation, left))
    found = dependents_of_others(
        left, anybody, select, workloads=frozenset(), claim_name=claim_name
    )
    return as_result(
        {
            name: waiting
            for name in sorted(before.keys() - after.keys())
            if (waiting := tuple(item for item in found.get(name, ()) if not item.left_over))
        }
    )


def _without(objects: Sequence[Object], optimization: str | None) -> tuple[Object, ...]:
    own = set(map(name_of, generated_by(objects, optimization)))
    return tuple(obj for obj in objects if name_of(obj) not in own)
