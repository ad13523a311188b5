"""Workloads that have no place or have not landed, drift, and plans that can't be compared."""

from collections.abc import Container, Iterator, Sequence

from dsf.api.names import APPROVED_DIGEST_ANNOTATION
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import UntrustedName, counted, listed
from dsf.kube.kinds import MANAGED_CLUSTER
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.follow.overview.findings.finding import (
    MAX_NAMED,
    FleetFinding,
    Found,
    Severity,
    finding,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.snapshot.object_readers import placements_of, read_workload
from optimizer.snapshot.workload_pods import PODS_PENDING
from optimizer.wire.placement_status import PlacementStatus, WorkloadLanding
from optimizer.wire.rollout import ROLLOUT_IN_PROGRESS

_NEXT_FOR_STATE = {
    "WaitingForPolicy": "look at the policy's status on the cluster: what does it report?",
    "WaitingForClaim": "wait for the policy watcher's stable window; if it lasts, look at the"
    " policy watcher of the cluster",
    "WaitingForPods": "look at its Pods on the cluster; where the scheduler finds no node, free or"
    " add one, or plan again: after a grace a plan avoids the cluster",
    "Planned": "wait; if it lasts, look at OCM's placement controller and at the ManifestWorks",
    "Refused": "mend what the message names, or plan again without it",
}


_SHOWN_DIGEST = 12
_APPROVED = "was approved, but is not applied yet"


def landed(item: WorkloadLanding) -> bool:
    """Return whether a workload has landed on a cluster."""
    return item.state == "Landed"


def status_findings(status: PlacementStatus) -> tuple[FleetFinding, ...]:
    """Return each workload that has not landed, each drift, and what is wrong with plans."""
    return tuple(finding for finding, _ in of_status(status))


def of_namespace(facts: FleetFacts) -> Iterator[Found]:
    """Yield that a namespace has nothing, so that nobody takes that for a namespace in order."""
    if facts.is_empty and facts.with_workloads is not None:
        said = nothing_there(facts.namespace, facts.with_workloads)
        next_step = "name a namespace with workloads"
        yield finding("namespace", facts.namespace, "NothingThere", said, next_step, "warning"), ""


def nothing_there(namespace: str, with_workloads: Sequence[str]) -> str:
    """Return that a namespace has nothing to place, and which namespaces have something."""
    known = f"; namespaces with workloads: {listed(with_workloads, MAX_NAMED)}"
    return (
        f"namespace {UntrustedName(namespace)} has no workload, policy or generated object"
        f"{known if with_workloads else ''}"
    )


def shortfall(facts: FleetFacts, name: str) -> Found | None:
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
    elif kept := facts.waiting.get(name):
        digest, owner = UntrustedName(kept.waiting), UntrustedName(kept.name)
        reason, severity = "AwaitingApproval", "info" if kept.approved else "warning"
        message = (
            f"{said} yet: plan {UntrustedName(kept.waiting[:_SHOWN_DIGEST])} of"
            f" PlacementOptimization {owner}"
            f" {_APPROVED if kept.approved else 'waits for approval'}, and would place it"
        )
        next_step = f"kept_placements with name {owner} shows it"
        if not kept.approved:
            next_step += (
                f"; approve_kept_plan, or `kubectl annotate placementoptimization {owner}"
                f" -n {space} --overwrite {APPROVED_DIGEST_ANNOTATION}={digest}`, approves it"
            )
    else:
        message = f"{said}: no plan in force was asked to place it"
    found = finding("workload", name, reason, message, next_step, severity, since=since)
    return found, told.reason if told else next_step


def _planned_placements(facts: FleetFacts, workload: Object) -> list[str]:
    """Return the generated Placements that a workload refers to, but those that place nothing."""
    found = (facts.hub.placements.get(name) for name in placements_of(workload))
    return [item.name for item in found if item is not None and item.number != 0]


def of_status(status: PlacementStatus, faults: Container[str] = ()) -> Iterator[Found]:
    """Yield workloads that have not landed, drift but that of `faults`, and what plans lack."""
    for item in status.workloads:
        if not landed(item):
            said = f"{item.workload} on {item.cluster}: {item.state}: {item.message}"
            reason, next_step = item.reason or item.state, _NEXT_FOR_STATE[item.state]
            wrong = item.state == "Refused" or item.reason == PODS_PENDING
            severity: Severity = "error" if wrong else "info"
            name, since = item.workload, item.since
            yield (
                finding("workload", name, reason, said, next_step, severity, since=since),
                next_step,
            )
    for drift in status.drift:
        if drift.kind == MANAGED_CLUSTER.kind and drift.name in faults:
            continue  # the finding about the cluster says it
        found = finding("generated object", drift.name, drift.reason, drift.sentence, drift.next)
        yield found, (drift.kind, drift.next)
    for failed in status.solver_failures:
        said = f"revision {failed.revision} of {failed.optimization}: {failed.message}"
        next_step = "plan again and apply: a solver that does not fail may find a better plan"
        found = finding("plan", failed.optimization, failed.cause, said, next_step, "warning")
        yield found, failed.optimization
    yield from _of_unread_plans(status)


def _of_unread_plans(status: PlacementStatus) -> Iterator[Found]:
    """Yield why drift is not known, unless nothing was placed, or nobody can change that."""
    next_step = "do what the message says, or plan again and apply, which makes a new record"
    for item in status.not_compared if status.workloads else ():
        if item.reason != "NoContent":
            said = f"drift is not known: {item.message}"
            found = finding("plan", status.namespace, item.reason, said, next_step, "warning")
            yield found, item.message
