"""What is broken on the way from a scorer to a workload that has landed, and what to do next."""

from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import Field

from dsf.api.invalid_input import InvalidInput
from dsf.api.plural import counted
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.kinds import MANAGED_CLUSTER
from dsf.kube.port import Object
from dsf.placement import Obstacle
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue
from optimizer.follow.overview.capacity import ClusterCapacity
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.score_overview import (
    NO_SCORES,
    ClusterScores,
    ScorerFailure,
    ScorerOverview,
)
from optimizer.snapshot.annotations import PREFIX, read_annotations
from optimizer.snapshot.object_readers import has_unread_drain, placements_of, read_workload
from optimizer.snapshot.workload_pods import PODS_PENDING
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.object_specs import ClusterSpec, WorkloadSpec
from optimizer.wire.placement_status import PlacementStatus, WorkloadLanding
from optimizer.wire.rollout import ROLLOUT_IN_PROGRESS

Stage = Literal["scorer", "score", "cluster", "namespace", "workload", "generated object", "plan"]

Severity = Literal["error", "warning", "info"]
_SEVERITIES = get_args(Severity)

MAX_NAMED = 5
"""Managed clusters that one sentence names."""

_NEXT_FOR_STATE = {
    "WaitingForPolicy": "look at the policy's status on the cluster: what does it report?",
    "WaitingForClaim": "wait for the policy watcher's stable window; if it lasts, look at the"
    " policy watcher of the cluster",
    "WaitingForPods": "look at its Pods on the cluster; where the scheduler finds no node, free or"
    " add one, or plan again: after a grace a plan avoids the cluster",
    "Planned": "wait; if it lasts, look at OCM's placement controller and at the ManifestWorks",
    "Refused": "mend what the message names, or plan again without it",
}


SCORE_EXPIRED = "ScoreExpired"
"""The reason of a score that nobody renews, here and in the status of a DynamicScorer."""

DRAINED = "Drained"
"""The reason of a cluster where people let no workload run for a while."""


class FleetFinding(ResultPart):
    """Something that is broken or missing, since when, and the next step."""

    stage: Annotated[Stage, Field(description="Where on the way from scorer to workload.")]
    name: Name
    reason: Name
    message: Sentence
    next: Sentence
    severity: Annotated[
        Severity,
        Field(description="warning: a part is missing. info: at work, or on purpose. Else error."),
    ] = "error"
    since: datetime | None = Field(
        default=None,
        description="Of the oldest with this cause; left out: not known.",
        exclude_if=lambda value: value is None,
    )
    cause: Name = Field(
        default="",
        description="Reason of the finding that it follows from; left out: of none.",
        exclude_if=lambda value: not value,
    )
    count: Annotated[int, Field(description="Objects with this cause; `name` is the first.")] = 1
    names: Annotated[tuple[Name, ...], Field(exclude=True)] = ()
    """All objects with this cause."""


_Found = tuple[FleetFinding, Hashable]
"""A finding about one object, and its cause: findings with equal causes are merged."""


def findings(facts: FleetFacts) -> tuple[FleetFinding, ...]:
    """Return what is wrong, one finding for each cause: errors first, what is at work last.

    Of equal severity they have the order of the way: scorers first, the plan in force last.
    """
    return tuple(sorted(_by_cause(_all(facts)), key=lambda item: _SEVERITIES.index(item.severity)))


def findings_of(facts: FleetFacts, names: Container[str]) -> tuple[FleetFinding, ...]:
    """Return the findings about objects of these names, as if there were no others."""
    return tuple(_by_cause(found for found in _all(facts) if found[0].name in names))


def scorer_findings(scorers: Iterable[ScorerOverview]) -> tuple[FleetFinding, ...]:
    """Return the findings about scorers that do not work wherever they should."""
    return tuple(_by_cause(_of_scorers(scorers, {})))


def cluster_findings(faults: Mapping[str, Obstacle]) -> tuple[FleetFinding, ...]:
    """Return the findings about managed clusters that OCM selects for nothing new."""
    return tuple(_by_cause(_of_clusters(faults)))


def status_findings(status: PlacementStatus) -> tuple[FleetFinding, ...]:
    """Return each workload that has not landed, each drift, and what is wrong with plans."""
    return tuple(finding for finding, _ in _of_status(status))


def findings_about(found: Iterable[FleetFinding], names: Iterable[str]) -> tuple[FleetFinding, ...]:
    """Return the findings that are about one of these objects."""
    wanted = frozenset(names)
    return tuple(item for item in found if not wanted.isdisjoint(item.names))


def _all(facts: FleetFacts) -> Iterator[_Found]:
    yield from _of_scorers(facts.scorers, facts.faults, facts.scores)
    yield from _of_scores(facts)
    yield from _of_clusters(facts.faults)
    yield from _of_drains(facts.drained)
    yield from _of_annotations("cluster", facts.hub.clusters, ClusterSpec)
    yield from _of_inventories(facts)
    yield from _of_namespace(facts)
    yield from _of_annotations("workload", facts.workloads, WorkloadSpec)
    yield from filter(None, (shortfall(facts, name) for name in facts.workloads))
    yield from _of_status(facts.status, facts.faults)


def landed(item: WorkloadLanding) -> bool:
    """Return whether a workload has landed on a cluster."""
    return item.state == "Landed"


def _by_cause(found: Iterable[_Found]) -> Iterator[FleetFinding]:
    """Yield one finding for each cause: that of the first object, with the names of the others."""
    alike = members_by_key(
        ((item.stage, item.reason, item.severity, cause), item) for item, cause in found
    )
    for items in alike.values():
        first, names = items[0], list(dict.fromkeys(item.name for item in items))
        said = first.message
        if len(names) > 1:
            nouns = "objects" if first.stage == "generated object" else f"{first.stage}s"
            said = f"{len(names)} {nouns} ({listed(names, MAX_NAMED)}); the first: {said}"
        since = min((item.since for item in items if item.since), default=None)
        summary = {"message": said, "count": len(names), "names": tuple(names), "since": since}
        yield first.model_copy(update=summary)


def _found(
    stage: Stage,
    name: str,
    reason: str,
    message: str,
    next_step: str,
    severity: Severity = "error",
    *,
    since: datetime | None = None,
    cause: str = "",
) -> FleetFinding:
    return FleetFinding(
        stage=stage,
        name=name,
        reason=reason,
        message=message,
        next=next_step,
        severity=severity,
        since=since,
        cause=cause,
    )


def _of_scorers(
    scorers: Iterable[ScorerOverview],
    faults: Mapping[str, Obstacle],
    scores: ClusterScores = NO_SCORES,
) -> Iterator[_Found]:
    """Yield a finding for each reason for which a scorer fails, with that reason.

    Where a score has expired is left out: the finding about the score says it.
    """
    for item in scorers:
        expired = {row.cluster for row in scores.get(item.score, ()) if row.expired}
        failing = members_by_key(
            (failed.reason, failed)
            for failed in item.failing
            if failed.reason != SCORE_EXPIRED or failed.cluster not in expired
        )
        if item.ready or (item.failing and not failing):
            continue
        severity: Severity = "warning" if item.clusters.get("scoring") else "error"
        for reason, failed in failing.items() or ((item.reason, ()),):
            clusters = tuple(one.cluster for one in failed)
            said, why = _scorer_message(item, failed), _fault_of(clusters, faults)
            found = _found(
                "scorer", item.name, reason, said, scorer_remedy(item), severity, cause=why
            )
            yield found, (clusters or item.message, item.health)


def _fault_of(clusters: Collection[str], faults: Mapping[str, Obstacle]) -> str:
    """Return why OCM selects none of these clusters; empty if it selects one."""
    reasons = {faults[name].reason for name in clusters if name in faults}
    return min(reasons) if reasons and all(name in faults for name in clusters) else ""


def _scorer_message(item: ScorerOverview, failed: Sequence[ScorerFailure]) -> str:
    said = f"scorer {item.name} is {item.health} and {item.reach}"
    if failed:
        least = "at least " if item.clusters.get("failing", 0) > len(item.failing) else ""
        names = listed((one.cluster for one in failed), MAX_NAMED)
        where = f"{least}{counted(len(failed), 'cluster')} ({names})"
        return f"{said}; it fails on {where}: {failed[0].reason}: {failed[0].message}"
    return f"{said}: {item.message}" if item.message else said


def scorer_remedy(item: ScorerOverview) -> str:
    """Return the next step to make a DynamicScorer work."""
    describe = f"`kubectl describe dynamicscorer {item.name} -n {item.namespace}`"
    if item.failing:
        return f"{describe} lists where it fails"
    if item.health == "Inactive":
        return "make the scoring API answer at its /healthz; `dsf scorer check URL` says what fails"
    return f"mend what the message says; {describe} has the conditions of its registration"


def _of_scores(facts: FleetFacts) -> Iterator[_Found]:
    """Yield where a score has expired or is missing, unless its scorer says why it is missing."""
    expected = _scored_clusters(facts)
    for name, rows in sorted(facts.scores.items()):
        ended = {item.cluster: item.valid_until for item in rows if item.expired}
        expired = list(ended)
        scorer = facts.scorer_of(name)
        told = {failed.cluster for failed in scorer.failing} if scorer else set[str]()
        empty = [
            item.cluster
            for item in rows
            if not (item.entries or item.expired or item.cluster in told)
        ]
        missing = sorted(expected - {item.cluster for item in rows} - told)
        remedy = (
            f"`kubectl describe dynamicscorer {scorer.name} -n {scorer.namespace}`"
            if scorer
            else "no DynamicScorer fills it: find out who writes it"
        )
        wrong: tuple[tuple[str, Severity, str, list[str]], ...] = (
            (SCORE_EXPIRED, "error", "has expired on", expired),
            ("NoEntries", "warning", "has no entries on", empty),
            ("ScoreMissing", "warning", "does not exist on", missing),
        )
        for reason, severity, says, clusters in wrong:
            if clusters:
                where = f"{counted(len(clusters), 'cluster')}: {listed(clusters, MAX_NAMED)}"
                said = f"score {UntrustedName(name)} {says} {where}"
                since = min(filter(None, map(ended.get, clusters)), default=None)
                cause = _fault_of(clusters, facts.faults)
                yield (
                    _found("score", name, reason, said, remedy, severity, since=since, cause=cause),
                    tuple(clusters),
                )


def _scored_clusters(facts: FleetFacts) -> set[str]:
    """Return the managed clusters that have any score, and so should have each."""
    known = {row.cluster for found in facts.scores.values() for row in found}
    return known & facts.hub.clusters.keys()


def _of_clusters(faults: Mapping[str, Obstacle]) -> Iterator[_Found]:
    next_step = "do what the message says, or plan without the cluster"
    for name, fault in sorted(faults.items()):
        said = fault.message
        found = _found("cluster", name, fault.reason, said, next_step, since=fault.since)
        yield found, said.replace(name, "")


def _of_drains(drained: Mapping[str, str]) -> Iterator[_Found]:
    for name, until in sorted(drained.items()):
        said = f"{UntrustedName(name)} is drained {until}: plans place nothing there"
        next_step = (
            f"wait, or end it: `kubectl annotate managedcluster {UntrustedName(name)}"
            f" {PREFIX}drain-`"
        )
        yield _found("cluster", name, DRAINED, said, next_step, "info"), until


def _of_annotations(
    stage: Stage, objects: Mapping[str, Object], spec: type[ClusterSpec | WorkloadSpec]
) -> Iterator[_Found]:
    """Yield the objects with an annotation that can't be read, so that none of them counts."""
    next_step = "mend the annotation that the message names, or remove it: `kubectl annotate`"
    for name, obj in sorted(objects.items()):
        read = read_annotations(obj, spec)
        if isinstance(read, InvalidInput):
            does = "leave out" if spec is WorkloadSpec else "read no annotation of"
            closed = ", and place nothing new there" if has_unread_drain(obj) else ""
            said = f"plans {does} {UntrustedName(name)}{closed}: {read.message}"
            yield _found(stage, name, read.reason, said, next_step), read.message


def _of_inventories(facts: FleetFacts) -> Iterator[_Found]:
    for name, item in facts.capacity.items():
        cause = _fault_of([name], facts.faults)
        for reason, said, next_step in _inventory_faults(item):
            since = item.observed if item.expired else None
            yield (
                _found(
                    "cluster", name, reason, said, next_step, "warning", since=since, cause=cause
                ),
                (item.unreadable, cause),
            )


def _inventory_faults(item: ClusterCapacity) -> Iterator[tuple[str, str, str]]:
    """Yield what keeps plans from using the nodes of a cluster: reason, message and next step."""
    shown = UntrustedName(item.cluster)
    if item.unreadable:
        said = f"the NodeInventory of {shown} can't be read: {item.unreadable}"
        next_step = "look at `kubectl get nodeinventory -A -o yaml`: who else writes it?"
        yield "InvalidInventory", said, next_step
    elif item.expired:
        said = f"the NodeInventory of {shown} has expired: what is free there is not known"
        next_step = "look at the log of the agent there: it renews its NodeInventory each minute"
        yield "InventoryExpired", said, next_step
    elif item.nodes and item.unavailable_nodes == item.nodes:
        said = f"no node of {shown} is ready and schedulable (of {item.nodes}): nothing new starts"
        next_step = "look at `kubectl get nodes` there; uncordon or repair them"
        yield "NodesUnavailable", said, next_step
    if item.current and not item.complete:
        said = f"the NodeInventory of {shown} does not count all: its condition Complete is False"
        next_step = (
            "`kubectl get nodeinventory -A -o yaml`: the condition says what, and what to do"
        )
        yield "InventoryIncomplete", said, next_step


def _of_namespace(facts: FleetFacts) -> Iterator[_Found]:
    """Yield that a namespace has nothing, so that nobody takes that for a namespace in order."""
    if facts.is_empty and facts.with_workloads is not None:
        said = nothing_there(facts.namespace, facts.with_workloads)
        next_step = "name a namespace with workloads"
        yield _found("namespace", facts.namespace, "NothingThere", said, next_step, "warning"), ""


def nothing_there(namespace: str, with_workloads: Sequence[str]) -> str:
    """Return that a namespace has nothing to place, and which namespaces have something."""
    known = f"; namespaces with workloads: {listed(with_workloads, MAX_NAMED)}"
    return (
        f"namespace {UntrustedName(namespace)} has no workload, policy or generated object"
        f"{known if with_workloads else ''}"
    )


def shortfall(facts: FleetFacts, name: str) -> _Found | None:
    """Return why a workload runs on fewer clusters than it asks for; None if it does not.

    A recorded plan says why it left a workload out. Without one nobody has looked for a place.
    """
    obj = facts.workloads[name]
    read, places = read_workload(obj), len(facts.landings.get(name, ()))
    wanted = 1 if isinstance(read, Issue) else read.replicas
    if places >= wanted:
        return None
    shown, space = UntrustedName(name), UntrustedName(facts.namespace)
    severity: Severity = "warning"
    told = facts.left_out.get(name)
    since = told.since if told else read_time(obj["metadata"].get("creationTimestamp"))
    reason = "FewerPlaces" if places else "NotPlaced"
    asked = "" if isinstance(read, Issue) else f" ({read.amount:g} {read.kind})"
    said = f"{shown}{asked} has {counted(places, 'place') if places else 'no place'}"
    said += f" of {wanted}" if places else ""
    next_step = (
        f"plan_placement, or `dsf plan -n {space} --objective SCORE`, places it or says why not"
    )
    if isinstance(read, Issue):
        reason, message, next_step = read.reason, read.message, "mend its labels, then plan"
    elif told and told.reason == ROLLOUT_IN_PROGRESS:
        reason, message, severity = told.reason, f"{said} yet: {told.message}", "info"
        next_step = f"`dsf rollout status -n {space}` says which step is being made"
    elif told:
        why = told.message.removeprefix(f"workload {name}: ")
        message = f"{said}; plan {told.plan} says why: {why}"
        if told.earlier and since:
            message = f"{said}, at least since {rfc3339(since)}; plan {told.plan} says why: {why}"
        next_step = (
            f"explain_placement, or `dsf why {shown} -n {space}`, finds the cheapest change that"
            " gives it a place"
        )
    elif places:
        message = said
    elif planned := _planned_placements(facts, obj):
        reason = "SelectsNothing"
        message = (
            f"{said}: {listed(planned)} of the plan in force"
            " selects no cluster by the labels that they have now"
        )
    else:
        message = f"{said}: no plan in force was asked to place it"
    found = _found("workload", name, reason, message, next_step, severity, since=since)
    return found, told.reason if told else next_step


def _planned_placements(facts: FleetFacts, workload: Object) -> list[str]:
    """Return the generated Placements that a workload refers to, but those that place nothing."""
    found = (facts.hub.placements.get(name) for name in placements_of(workload))
    return [item.name for item in found if item is not None and item.number != 0]


def _of_status(status: PlacementStatus, faults: Container[str] = ()) -> Iterator[_Found]:
    for item in status.workloads:
        if not landed(item):
            said = f"{item.workload} on {item.cluster}: {item.state}: {item.message}"
            reason, next_step = item.reason or item.state, _NEXT_FOR_STATE[item.state]
            wrong = item.state == "Refused" or item.reason == PODS_PENDING
            severity: Severity = "error" if wrong else "info"
            name, since = item.workload, item.since
            yield (
                _found("workload", name, reason, said, next_step, severity, since=since),
                next_step,
            )
    for drift in status.drift:
        if drift.kind == MANAGED_CLUSTER.kind and drift.name in faults:
            continue  # the finding about the cluster says it
        found = _found("generated object", drift.name, drift.reason, drift.sentence, drift.next)
        yield found, (drift.kind, drift.next)
    for failed in status.solver_failures:
        said = f"revision {failed.revision} of {failed.optimization}: {failed.message}"
        next_step = "plan again and apply: a solver that does not fail may find a better plan"
        found = _found("plan", failed.optimization, failed.cause, said, next_step, "warning")
        yield found, failed.optimization
    yield from _of_unread_plans(status)


def _of_unread_plans(status: PlacementStatus) -> Iterator[_Found]:
    """Yield why drift is not known, unless nothing was placed, or nobody can change that."""
    next_step = "do what the message says, or plan again and apply, which makes a new record"
    for item in status.not_compared if status.workloads else ():
        if item.reason != "NoContent":
            said = f"drift is not known: {item.message}"
            found = _found("plan", status.namespace, item.reason, said, next_step, "warning")
            yield found, item.message
