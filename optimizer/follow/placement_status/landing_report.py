"""How far a plan has landed: conditions of its record, events of workloads, and tables."""

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dsf.api.conditions import Condition
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, counted, escaped, listed
from dsf.cli.output import TextTable
from optimizer.snapshot.workload_pods import PODS_PENDING
from optimizer.wire.placement_status import LandingState, PlacementStatus

LANDED, DRIFTED = "Landed", "Drifted"
"""Types of conditions: every replica runs where it was decided; something differs from the plan."""

_UNTIL_LANDED: tuple[LandingState, ...] = (
    "Refused",
    "WaitingForPolicy",
    "WaitingForClaim",
    "WaitingForPods",
    "Planned",
)
"""The states of replicas that have not landed; the one that needs people most is the reason."""


class WorkloadEvent(NamedTuple):
    """A Kubernetes Event about a ManifestWorkReplicaSet."""

    workload: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def landing_conditions(status: PlacementStatus) -> tuple[Condition, Condition]:
    """Return whether all replicas have landed, and whether something differs from the plan."""
    return _landed(status), _drifted(status)


def landing_events(
    before: PlacementStatus | None, after: PlacementStatus
) -> Iterator[WorkloadEvent]:
    """Yield an event of each replica that was added, whose state changed, or that left.

    Without a status before, each replica was added.
    """
    earlier = before.workloads if before else ()
    known = {(item.workload, item.cluster): item for item in earlier}
    for item in after.workloads:
        old = known.pop((item.workload, item.cluster), None)
        if old is None or (old.state, old.reason) != (item.state, item.reason):
            message = f"on cluster {item.cluster}: {item.reason}: {item.message}"
            wrong = item.state == "Refused" or item.reason == PODS_PENDING
            kind: Literal["Normal", "Warning"] = "Warning" if wrong else "Normal"
            yield WorkloadEvent(item.workload, kind, item.state, message)
    for workload, cluster in known:
        message = f"no generated Placement names cluster {cluster} for it any more"
        yield WorkloadEvent(workload, "Normal", "Removed", message)


def _landed(status: PlacementStatus) -> Condition:
    counts = Counter(item.state for item in status.workloads)
    total, waiting = counts.total(), [state for state in _UNTIL_LANDED if counts[state]]
    if not total:
        message = "no generated Placement of a workload is left: apply the plan again"
        return Condition(LANDED, "False", "NothingPlaced", message)
    if not waiting:
        reported = sum(1 for item in status.workloads if item.pods)
        pods = f"; of {reported} of them the Pods are reported, and ready" if reported else ""
        return Condition(LANDED, "True", "AllLanded", f"{counted(total, 'replica')} landed{pods}")
    others = ", ".join(f"{counts[state]} {state}" for state in waiting)
    first = next(item for item in status.workloads if item.state == waiting[0])
    message = (
        f"{counts['Landed']} of {counted(total, 'replica')} landed; {others}; first:"
        f" {first.workload} on {first.cluster}: {first.reason}: {first.message}"
    )
    return Condition(LANDED, "False", waiting[0], message)


def _drifted(status: PlacementStatus) -> Condition:
    if status.not_compared and not status.drift:
        missing = status.not_compared[0]
        return Condition(DRIFTED, "Unknown", missing.reason, missing.message)
    if not status.drift:
        return Condition(DRIFTED, "False", "AsPlanned", "the hub is as the plan left it")
    first = status.drift[0]
    more = len(status.drift) - 1
    message = f"{first.sentence}{f'; {more} more' if more else ''}"
    return Condition(DRIFTED, "True", first.reason, message)


def placed_sentence(namespace: str, optimization: str | None, landed: int, placed: int) -> str:
    """Return how many of the placements of a namespace, or of one optimization, have landed."""
    where = f"in namespace {UntrustedName(namespace)}"
    whose = f"optimization {UntrustedName(optimization)}" if optimization else ""
    if not placed:
        return f"Nothing is placed {f'for {whose} ' if whose else ''}{where}."
    return f"{landed} of {placed} placements {f'of {whose} ' if whose else ''}{where} have landed."


def status_tables(status: PlacementStatus, optimization: str | None = None) -> str:
    """Return a headline, and tables of workloads, policies, drift and failures.

    `optimization`: the one whose status it is; None: that of all of the namespace.
    """
    landed = sum(item.state == "Landed" for item in status.workloads)
    head = placed_sentence(status.namespace, optimization, landed, len(status.workloads))
    landings = [
        (
            f"{item.workload}",
            f"{item.cluster}",
            item.state,
            f"{item.reason}",
            rfc3339(item.since) if item.since else "-",
            item.message,
        )
        for item in status.workloads
    ]
    policies = [
        (f"{item.cluster}", f"{item.policy}", f"{item.compliance}" or "-", f"{item.claim}" or "-")
        for item in status.policies
    ]
    drifts = [
        (item.reason, f"{item.kind} {item.name}", item.message, item.next) for item in status.drift
    ]
    failures = [
        (f"{item.optimization}", str(item.revision), f"{item.cause}", item.message)
        for item in status.solver_failures
    ]
    tables = (
        TextTable(("workload", "cluster", "state", "reason", "since", "message"), landings),
        TextTable(("cluster", "policy", "compliance", "claim"), policies, "Policies"),
        TextTable(("reason", "object", "message", "next"), drifts, "Drift"),
        TextTable(("plan", "revision", "reason", "message"), failures, "The solver failed"),
    )
    parts = [head, *(str(table) for table in tables if table.rows)]
    parts += [escaped(f"Drift is not known: {item.message}") for item in status.not_compared]
    if status.unbound_policies:
        parts.append(f"Policies that no binding names: {listed(status.unbound_policies)}")
    return "\n\n".join(parts) + "\n"
