"""Drift from a record: what is on the hub no longer as the plan in force found or wrote it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dsf.api.optimization import Optimization
from dsf.api.untrusted_text import InvalidInput, UntrustedName, joined, listed, quoted
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import (
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_PLAN,
    POLICY,
)
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Selector
from optimizer.follow.placement_status.drift import drifted
from optimizer.follow.placement_status.exceeded_capacity import exceeded_capacity
from optimizer.follow.placement_status.hub_state import read_hub_state
from optimizer.follow.record.content import RecordContent, recorded_facts
from optimizer.follow.record.plan_history import unwritten
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.plan.generated_objects import taken_names
from optimizer.plan.manifests import generated_name
from optimizer.snapshot.object_readers import cluster_selectors, name_of, placement_of
from optimizer.snapshot.observation import Observation, workloads_by_placement
from optimizer.snapshot.ownership.others import contradicting
from optimizer.snapshot.ownership.others_part import enforces
from optimizer.wire.placement_status import NotCompared, PlacementDrift, WorkloadLanding
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Unplaced

MAX_PATHS = 10
"""Fields of one object that a drift names."""

_KINDS = {"policy": POLICY, "workload": MANIFEST_WORK_REPLICA_SET, "cluster": MANAGED_CLUSTER}


class RecordDrift(NamedTuple):
    """How the hub differs from a record.

    `explained`: Placements whose drift follows from that. `misplaced`: the planned replicas of
    workloads that refer to another Placement than the plan wrote for them.
    """

    drift: tuple[PlacementDrift, ...] = ()
    explained: frozenset[str] = frozenset()
    misplaced: tuple[WorkloadLanding, ...] = ()
    not_compared: NotCompared | None = None
    unplaced: tuple[Unplaced, ...] = ()


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
    content = record.verified_content()
    if isinstance(content, InvalidInput):
        said = f"the hub is not compared with PlacementPlan {record.name}: {content.message}"
        return RecordDrift(not_compared=NotCompared(reason=content.reason, message=said))
    select = cluster_selectors(observation.managed_clusters, cluster_label_key)
    drift = _Comparison(record, content, observation, select).drift()
    return drift._replace(unplaced=content.unplaced)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A record with a content, and the hub that it is compared with."""

    record: RecordedPlan
    content: RecordContent
    observation: Observation
    select: Mapping[str, Selector]

    @property
    def plan(self) -> str:
        """The plan, as messages name it."""
        return f"revision {self.record.spec.revision}"

    @property
    def owner(self) -> Optimization:
        """The optimization whose plan it is."""
        return Optimization(self.record.namespace, self.record.spec.optimization)

    def drift(self) -> RecordDrift:
        """Return each way in which the hub differs."""
        request, edited = self.content.asked(), tuple(self._edited())
        restated = () if isinstance(request, InvalidInput) else self._restated(request)
        differing = {item.name for item in edited if item.kind == PLACEMENT.kind}
        missing = {item.name for item in edited if item.reason == "MissingFromHub"}
        moved = {name: to for name, to in self._moved_labels().items() if name not in differing}
        bound = {
            obj["placementRef"]["name"]
            for obj in self.content.objects
            if obj["kind"] == PLACEMENT_BINDING.kind and obj["metadata"]["name"] in missing
        }
        return RecordDrift(
            (*edited, *_relabelled(moved), *restated, *self._contradicted()),
            frozenset(moved) | bound,
            tuple(self._misplaced()),
        )

    def _edited(self) -> Iterator[PlacementDrift]:
        """Yield each generated object that is not as it was recorded."""
        unlabelled = taken_names(self.content.objects, self.observation, self.owner.name)
        for change in unwritten(self.content, self.owner.name, self.observation):
            lost = f"{change.kind.kind} {change.name}" in unlabelled
            reason, message = _difference(change, self.plan, lost=lost)
            yield drifted(reason, change.kind, change.name, message)

    def _moved_labels(self) -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return the clusters that Placements lose and gain by today's labels, by Placement."""
        hub = read_hub_state(self.observation, *self.owner)
        found = {}
        for name, planned in sorted(self._planned_clusters().items()):
            there = hub.placements.get(name)
            if there and planned != set(there.clusters):
                lost = tuple(sorted(planned.difference(there.clusters)))
                found[name] = lost, tuple(sorted(set(there.clusters) - planned))
        return found

    def _planned_clusters(self) -> Mapping[str, set[str]]:
        """Return the clusters for which each recorded Placement was made.

        Records of earlier versions do not say which Placement a workload refers to: it counts while
        no other workload refers to it.
        """
        placements = self.content.placements
        if not placements:
            referring = workloads_by_placement(self.observation.workloads)
            placements = {names[0]: found for found, names in referring.items() if len(names) == 1}
        found = defaultdict[str, set[str]](set)
        for choice in self.content.policies:
            found[generated_name("placement", self.owner, choice)].add(choice.cluster)
        for item in self.content.assignments:
            if item.workload in placements:
                found[placements[item.workload]].add(item.cluster)
        return found

    def _restated(self, request: OptimizeRequest) -> Iterator[PlacementDrift]:
        """Yield the objects that do not say what they said when the plan was made.

        Policies and clusters that are missing are left out: bindings and Placements name them.
        """
        now = recorded_facts(self.observation, request, self.content.decision)
        for subject, then in self.content.stated.items():
            if now.stated.get(subject, then) != then:
                reason = "SupplyChanged" if subject.startswith("policy ") else "RequestChanged"
                message = f"it {now.stated[subject]} now; in {self.plan} it {then}"
                yield _changed(reason, subject, message)
        for subject, digests in self.content.digests.items():
            fields = now.digests.get(subject, digests)
            every = sorted({*digests, *fields})
            differing = [name for name in every if digests.get(name) != fields.get(name)]
            if differing:
                reason = f"{subject.partition(' ')[0].capitalize()}Changed"
                named = joined(map(quoted, differing), MAX_PATHS)
                verb = "differ" if len(differing) > 1 else "differs"
                message = f"{named} {verb} from what {self.plan} was made for"
                yield _changed(reason, subject, message)
        replica_sets = set(map(name_of, self.observation.workloads))
        for name in sorted({item.workload for item in self.content.assignments} - replica_sets):
            message = f"{self.plan} places it, and somebody deleted it"
            yield drifted("WorkloadMissing", MANIFEST_WORK_REPLICA_SET, name, message)
        for name, message in self._references_changed().items():
            yield drifted("ReferenceChanged", MANIFEST_WORK_REPLICA_SET, name, message)
        yield from exceeded_capacity(
            self.record, self.content, request, self.observation, self.select
        )

    def _references_changed(self) -> Mapping[str, str]:
        """Return to which other Placements workloads refer than a plan has written for them."""
        today = {name_of(obj): placement_of(obj) for obj in self.observation.workloads}
        return {
            name: f"it refers to {_placement_named(today[name])} instead of"
            f" {_placement_named(then)}, by which {self.plan} places it"
            for name, then in self.content.placements.items()
            if today.get(name, then) != then
        }

    def _misplaced(self) -> Iterator[WorkloadLanding]:
        messages = self._references_changed()
        for item in self.content.assignments:
            if message := messages.get(item.workload):
                yield WorkloadLanding(
                    workload=item.workload,
                    cluster=item.cluster,
                    state="Planned",
                    reason="ReferenceChanged",
                    message=message,
                )

    def _contradicted(self) -> Iterator[PlacementDrift]:
        """Yield the enforced policies beside which others enforce one of the same pool."""
        for choice, other in contradicting(
            self.content.policies, self.observation, self.owner, self.select
        ):
            message = (
                f"{self.plan} enforces it on {UntrustedName(choice.cluster)}, where"
                f" {enforces(other)} in the same pool"
            )
            yield drifted("HeldByOthers", POLICY, choice.policy, message)


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


def _relabelled(
    moved: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
) -> Iterator[PlacementDrift]:
    for (lost, gained), names in members_by_key((c, name) for name, c in moved.items()).items():
        message = (
            f"by the labels of clusters as they are now, {listed(names)} select"
            f" {listed(gained) or 'nothing'} instead of {listed(lost) or 'nothing'}"
        )
        yield drifted("ClusterLabelMoved", MANAGED_CLUSTER, (*lost, *gained)[0], message)


def _placement_named(name: str | None) -> str:
    return f"Placement {UntrustedName(name)}" if name else "no Placement"


def _changed(reason: str, subject: str, message: str) -> PlacementDrift:
    kind, _, name = subject.partition(" ")
    return drifted(reason, _KINDS[kind], name, message)


def _paths(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a merge patch, two levels deep, such as `spec.tolerations`.

    Their names are those of the API, as nobody can store others in such an object.
    """
    for field, value in body.items():
        if isinstance(value, Mapping):
            yield from (f"{field}.{inner}" for inner in value)
        else:
            yield field
