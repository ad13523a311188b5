"""Drift from a record: what is on the hub no longer as the plan in force found or wrote it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dsf.api.invalid_input import InvalidInput
from dsf.api.optimization import Optimization
from dsf.api.plural import joined
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import (
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_PLAN,
    POLICY,
)
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Selector
from optimizer.domain.issue import Issue
from optimizer.domain.settings import DEFAULTS
from optimizer.placement_status.comparison import placement_status
from optimizer.placement_status.drift import drifted
from optimizer.placement_status.hub_state import read_hub_state
from optimizer.plan.basis import stated
from optimizer.plan.generated_objects import taken_names
from optimizer.plan.manifests import generated_name
from optimizer.record.content import RecordContent
from optimizer.record.plan_history import unwritten
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.record.signature import NOT_SIGNED
from optimizer.snapshot.object_readers import cluster_selectors, name_of, placement_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.others import contradicting
from optimizer.snapshot.ownership.others_part import enforces
from optimizer.wire.placement_status import (
    NotCompared,
    PlacementDrift,
    PlacementStatus,
    SolverFailure,
)

MAX_PATHS = 10
"""Fields of one object that a drift names."""


def plans_in_force(
    records: Iterable[RecordedPlan], optimization: str | None = None
) -> list[RecordedPlan]:
    """Return the applied plans of an optimization, or of all; none while a rollout replaces it.

    One that the optimizer did not sign counts only where there is no other.
    """
    every = list(records)
    leaving = {record.spec.optimization for record in every if record.is_rolling_out}
    applied = [item for item in every if item.phase == "Applied"]
    signed = {item.spec.optimization for item in applied if item.signed is not False}
    return [
        record
        for record in applied
        if record.spec.optimization not in leaving
        and optimization in (None, record.spec.optimization)
        and (record.signed is not False or record.spec.optimization not in signed)
    ]


def recorded_status(
    observation: Observation,
    namespace: str,
    records: Sequence[RecordedPlan] | Issue,
    optimization: str | None = None,
    *,
    cluster_label_key: str = DEFAULTS.cluster_label_key,
) -> PlacementStatus:
    """Return the status of a namespace, or of an optimization, compared with its records too.

    It names the plans in force whose solver failed. An object that differs in itself is not named
    twice. A Placement that is as it was recorded was not edited, whatever the labels of clusters
    make of it now, or whoever deleted its binding.
    """
    unread = tuple[NotCompared, ...]()
    if isinstance(records, Issue):
        unread = (NotCompared(reason=records.reason, message=records.message),)
        records = ()
    rolling_out = {item.spec.optimization for item in records if item.is_rolling_out}
    status = placement_status(observation, namespace, optimization, rolling_out=rolling_out)
    in_force = plans_in_force(records, optimization)
    found = [record_drift(record, observation, cluster_label_key) for record in in_force]
    explained = {(PLACEMENT.kind, name) for each in found for name in each.explained}
    kept = [item for item in status.drift if (item.kind, item.name) not in explained]
    known = {(item.kind, item.name) for item in kept}
    more = [item for each in found for item in each.drift if (item.kind, item.name) not in known]
    return status.model_copy(
        update={
            "drift": (*kept, *more),
            "solver_failures": tuple(_solver_failures(in_force)),
            "not_compared": (*unread, *(each.not_compared for each in found if each.not_compared)),
        }
    )


def _solver_failures(in_force: Iterable[RecordedPlan]) -> Iterator[SolverFailure]:
    for record in in_force:
        if failed := record.solver_failure:
            yield SolverFailure(
                optimization=record.spec.optimization,
                revision=record.spec.revision,
                cause=failed.reason,
                message=failed.message,
            )


class RecordDrift(NamedTuple):
    """How the hub differs from a record; `explained`: Placements whose drift follows from that."""

    drift: tuple[PlacementDrift, ...] = ()
    explained: frozenset[str] = frozenset()
    not_compared: NotCompared | None = None


def record_drift(
    record: RecordedPlan, observation: Observation, cluster_label_key: str
) -> RecordDrift:
    """Return each way in which the hub is no longer as a recorded plan left it.

    These are generated objects that differ, clusters whose labels have moved, policies and
    workloads that say something else, and policies of others in the same pool.
    A record without a usable content says why nothing is compared with it. One that was edited by
    hand is named itself.
    """
    if not record.intact:
        message = "it was edited by hand, so nothing is compared with it: apply a plan again"
        return RecordDrift((drifted("RecordEdited", PLACEMENT_PLAN, record.name, message),))
    content = NOT_SIGNED if record.signed is False else record.content()
    if isinstance(content, InvalidInput):
        said = f"the hub is not compared with PlacementPlan {record.name}: {content.message}"
        return RecordDrift(not_compared=NotCompared(reason=content.reason, message=said))
    select = cluster_selectors(observation.managed_clusters, cluster_label_key)
    edited = tuple(_edited(record, content, observation))
    moved = _moved_labels(record, content, observation)
    differing = {item.name for item in edited if item.kind == PLACEMENT.kind}
    missing = {item.name for item in edited if item.reason == "MissingFromHub"}
    moved = {name: change for name, change in moved.items() if name not in differing}
    return RecordDrift(
        (
            *edited,
            *_relabelled(moved),
            *_restated(record, content, observation),
            *_contradicted(record, content, observation, select),
        ),
        frozenset(moved) | {obj["placementRef"]["name"] for obj in _bindings(content, missing)},
    )


def _bindings(content: RecordContent, names: Collection[str]) -> Iterator[Object]:
    for obj in content.objects:
        if obj["kind"] == PLACEMENT_BINDING.kind and obj["metadata"]["name"] in names:
            yield obj


def _edited(
    record: RecordedPlan, content: RecordContent, observation: Observation
) -> Iterator[PlacementDrift]:
    """Yield each generated object that is not as it was recorded."""
    optimization = record.spec.optimization
    unlabelled = taken_names(content.objects, observation, optimization)
    for change in unwritten(content, optimization, observation):
        lost = f"{change.kind.kind} {change.name}" in unlabelled
        reason, message = _difference(change, f"revision {record.spec.revision}", lost=lost)
        yield drifted(reason, change.kind, change.name, message)


def _difference(change: Change, plan: str, *, lost: bool) -> tuple[str, str]:
    """Return reason and message of a change; `lost`: the object is no longer known as generated."""
    match change:
        case Create() if lost:
            message = f"{plan} generated it, and its labels no longer say so: somebody changed them"
            return "LabelRemoved", message
        case Create():
            return "MissingFromHub", f"{plan} has it, and somebody deleted it"
        case Patch():
            return "DiffersFromPlan", f"{joined(_paths(change.body), MAX_PATHS)} differ from {plan}"
    return "NotInPlan", f"{plan} does not have it, and it was generated"


def _moved_labels(
    record: RecordedPlan, content: RecordContent, observation: Observation
) -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the clusters that Placements lose and gain by today's labels, by Placement."""
    hub = read_hub_state(observation, record.namespace, record.spec.optimization)
    found = {}
    for name, planned in sorted(_planned_clusters(record, content, observation).items()):
        there = hub.placements.get(name)
        if there and planned != set(there.clusters):
            lost = tuple(sorted(planned.difference(there.clusters)))
            found[name] = lost, tuple(sorted(set(there.clusters) - planned))
    return found


def _relabelled(
    moved: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
) -> Iterator[PlacementDrift]:
    for (lost, gained), names in members_by_key((c, name) for name, c in moved.items()).items():
        message = (
            f"by the labels of clusters as they are now, {listed(names)} select"
            f" {listed(gained) or 'nothing'} instead of {listed(lost) or 'nothing'}"
        )
        yield drifted("ClusterLabelMoved", MANAGED_CLUSTER, (*lost, *gained)[0], message)


def _planned_clusters(
    record: RecordedPlan, content: RecordContent, observation: Observation
) -> Mapping[str, set[str]]:
    """Return the clusters for which each recorded Placement was made."""
    owner = Optimization(record.namespace, record.spec.optimization)
    placements = {name_of(item): placement_of(item) for item in observation.workloads}
    found = defaultdict[str, set[str]](set)
    for choice in content.policies:
        found[generated_name("placement", owner, choice)].add(choice.cluster)
    for item in content.assignments:
        if item.workload in placements:
            found[placements[item.workload]].add(item.cluster)
    return found


def _restated(
    record: RecordedPlan, content: RecordContent, observation: Observation
) -> Iterator[PlacementDrift]:
    """Yield the policies and workloads that do not say what they said when the plan was made."""
    request = content.asked()
    if isinstance(request, InvalidInput):
        return
    now = stated(observation, request, content.decision)
    for subject, then in content.stated.items():
        if subject in now and now[subject] != then:
            kind, _, name = subject.partition(" ")
            policy = kind == "policy"
            yield drifted(
                "SupplyChanged" if policy else "RequestChanged",
                POLICY if policy else MANIFEST_WORK_REPLICA_SET,
                name,
                f"it {now[subject]} now; in revision {record.spec.revision} it {then}",
            )


def _contradicted(
    record: RecordedPlan,
    content: RecordContent,
    observation: Observation,
    select: Mapping[str, Selector],
) -> Iterator[PlacementDrift]:
    """Yield the enforced policies beside which others enforce one of the same pool."""
    owner = Optimization(record.namespace, record.spec.optimization)
    for choice, other in contradicting(content.policies, observation, owner, select):
        message = (
            f"revision {record.spec.revision} enforces it on {UntrustedName(choice.cluster)}, where"
            f" {enforces(other)} in the same pool"
        )
        yield drifted("HeldByOthers", POLICY, choice.policy, message)


def _paths(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a merge patch, two levels deep, such as `spec.tolerations`.

    Their names are those of the API, as nobody can store others in such an object.
    """
    for field, value in body.items():
        if isinstance(value, Mapping):
            yield from (f"{field}.{inner}" for inner in value)
        else:
            yield field
