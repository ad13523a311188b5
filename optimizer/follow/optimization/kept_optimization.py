"""One PlacementOptimization as its status tells it, and whether a plan of it may be approved."""

from datetime import datetime, timedelta

from dsf.api.times import read_time
from dsf.api.untrusted_text import UntrustedName, counted, joined
from dsf.kube.port import Object
from optimizer.follow.optimization.kept_conditions import (
    APPLIED,
    PLANNED,
    READY,
    SATISFIED,
    SHOWN_DIGEST,
    approved_digest,
    unplaced_told,
)
from optimizer.follow.optimization.report import CALM
from optimizer.wire.placement_optimization import (
    KeptOptimization,
    PlacementOptimizationSpec,
    PlacementOptimizationStatus,
    PlannedChanges,
    read_spec,
)
from optimizer.wire.request_problem import ProblemKind, RequestProblem
from optimizer.wire.rollout import ROLLOUT_IN_PROGRESS

_AWAITING = "AwaitingApproval"
_APPLIED_NEXT = "the optimizer applies it when it sees that, unless it is out of date by then"
_HELD = frozenset({"Stabilizing", "BudgetSpent", "Frozen", "Held", "RolledBack"})
"""Reasons of a plan that is not applied yet, because its spec says so."""
_LACKING = frozenset({"Unplaced", "Refused"})
"""Reasons of Satisfied that need somebody, whatever becomes of the next plan."""


OVERDUE = "Overdue"
"""Reason of what no optimizer seems to keep: it is told last, whatever its status says."""

OVERDUE_AFTER = timedelta(minutes=2)
"""How long after the time of the next look its status may tell of the last one: it plans first."""


def kept_optimization(obj: Object, now: datetime) -> KeptOptimization:
    """Return what the status of a PlacementOptimization tells, and whether it is overdue."""
    metadata, spec = obj["metadata"], read_spec(obj)
    mode = (obj.get("spec") or {}).get("mode") or "Plan"
    status = PlacementOptimizationStatus.model_validate(obj.get("status") or {})
    by_type = {item.type: item for item in status.conditions or ()}
    told = [by_type[name] for name in (READY, PLANNED, APPLIED, SATISFIED) if name in by_type]
    applied = by_type.get(APPLIED)
    decisive = next((item for item in told if item.status != "True"), applied)
    reason = decisive.reason if decisive else "NotReported"
    waits = mode == "Approve" and applied and applied.reason in (_AWAITING, "StaleApproval")
    waiting = status.plan.digest if waits and status.plan else ""
    approved = bool(waiting) and approved_digest(obj) == waiting
    calm = {*CALM, *_HELD} if approved else {*CALM, *_HELD} - {_AWAITING}
    message = decisive.message if decisive else "no optimizer has looked at it yet"
    lacking, wrong = by_type.get(SATISFIED), ""
    if decisive is None or (decisive.status != "True" and reason not in calm):
        wrong = f"{reason}: {message}"
    elif lacking and lacking.status == "False" and lacking.reason in _LACKING:
        wrong = f"{lacking.reason}: {lacking.message}"
    elif reason == ROLLOUT_IN_PROGRESS and status.plan and status.plan.unplaced:
        wrong = f"Unplaced: {unplaced_told(status.plan.unplaced, status.plan.workloads)}"
    if approved and decisive is applied:
        shown = UntrustedName(waiting[:SHOWN_DIGEST])
        reason, message = "Approved", f"plan {shown} was approved: {_APPLIED_NEXT}"
    due = read_time(status.next_look)
    if due is not None and due + OVERDUE_AFTER < now:
        message = (
            f"its next look was due at {status.next_look}, so no optimizer seems to keep it. Told"
            f" last: {reason}: {message}"
        )
        reason, wrong = OVERDUE, f"{OVERDUE}: {message}"
    return KeptOptimization(
        namespace=metadata["namespace"],
        name=metadata["name"],
        mode=mode,
        fine=not wrong,
        wrong=wrong,
        reason=reason,
        message=message,
        waiting=waiting,
        approved=approved,
        effect=_effect(status),
        move_rule="" if isinstance(spec, RequestProblem) else _move_rule(spec),
        status=status,
    )


def _effect(status: PlacementOptimizationStatus) -> str:
    plan = status.plan
    if plan is None:
        return ""
    writes = plan.changes or PlannedChanges()
    return (
        f"moves, starts or stops {plan.moves} of {counted(plan.workloads, 'workload')}, gains"
        f" {status.gain or 0:g}, creates {writes.create}, changes {writes.patch} and deletes"
        f" {counted(writes.delete, 'object')}"
    )


def _move_rule(spec: PlacementOptimizationSpec) -> str:
    rules = spec.hysteresis
    limits = {
        f"{rules.least_gain:g} points": rules.least_gain,
        f"{rules.least_gain_percent:g}% of its value": rules.least_gain_percent,
        f"{rules.variation_multiple:g} times the variation of its scores": rules.variation_multiple,
    }
    largest = joined(["its move cost", *(said for said in limits if limits[said])], 4)
    return (
        f"each move for a better score has to gain more than the largest of: {largest}; scores are"
        f" averaged over {rules.stabilization_window_seconds} s"
    )


def no_optimization(namespace: str, name: str) -> RequestProblem:
    """Return the problem of a PlacementOptimization that is not there."""
    return ProblemKind.NO_OPTIMIZATION.because(
        f"namespace {namespace} has no PlacementOptimization {name}: GET"
        f" /placementoptimizations?namespace={namespace} lists those that it has"
    )


def no_waiting_plan(kept: KeptOptimization) -> RequestProblem:
    """Return the problem that the plan which waits can't be shown."""
    detail = f"{kept.reason}: {kept.message}"
    if kept.waiting:
        shown = UntrustedName(kept.waiting[:SHOWN_DIGEST])
        detail = (
            f"plan {shown} was made before the optimizer started, or by another process, and"
            " planning now gives another one: ask again after its next look"
        )
    return ProblemKind.NO_WAITING_PLAN.because(f"PlacementOptimization {kept.name}: {detail}")


def refused_approval(kept: KeptOptimization, digest: str) -> RequestProblem | None:
    """Return why a digest can't be approved; None if it is that of the plan that waits."""
    if digest == kept.waiting:
        return None
    if kept.waiting:
        shown, waiting = (UntrustedName(item[:SHOWN_DIGEST]) for item in (digest, kept.waiting))
        return ProblemKind.STALE_APPROVAL.because(
            f"plan {shown} does not wait, but plan {waiting} does: look at it, and approve that"
        )
    why = f"PlacementOptimization {kept.name} has mode {kept.mode}, so nothing waits for one"
    if kept.mode == "Approve":
        why = f"PlacementOptimization {kept.name} is {kept.reason}: {kept.message}"
    return ProblemKind.NOT_AWAITING_APPROVAL.because(why)
