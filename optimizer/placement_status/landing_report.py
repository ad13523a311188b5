"""How far a plan has landed, as conditions of its record and events of its workloads."""

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dsf.api.conditions import Condition
from dsf.api.plural import counted
from optimizer.wire.placement_status import LandingState, PlacementStatus

LANDED, DRIFTED = "Landed", "Drifted"
"""Types of conditions: every replica runs where it was decided; something differs from the plan."""

_UNTIL_LANDED: tuple[LandingState, ...] = (
    "Refused",
    "WaitingForPolicy",
    "WaitingForClaim",
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
            kind: Literal["Normal", "Warning"] = "Warning" if item.state == "Refused" else "Normal"
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
        return Condition(LANDED, "True", "AllLanded", f"{counted(total, 'replica')} landed")
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
    message = f"{first.kind} {first.name}: {first.message}"
    return Condition(DRIFTED, "True", first.reason, f"{message}{f'; {more} more' if more else ''}")
