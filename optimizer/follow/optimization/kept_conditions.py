"""The conditions of a PlacementOptimization: whether it is kept, planned, applied and satisfied."""

from collections.abc import Iterator
from dataclasses import replace

from dsf.api.conditions import Condition
from dsf.api.names import APPROVED_DIGEST_ANNOTATION
from dsf.api.untrusted_text import UntrustedName, counted
from dsf.kube.port import Object
from optimizer.follow.placement_status.landing_report import LANDED
from optimizer.follow.record.plan_history import PlanHistory, in_force
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.keep.decision import BELOW_HYSTERESIS, Hold
from optimizer.plan.basis import digest_of_json
from optimizer.plan.plan import Plan
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.rollout import ROLLOUT_IN_PROGRESS

READY, PLANNED, APPLIED, SATISFIED = "Ready", "Planned", "Applied", "Satisfied"
"""Types of conditions: it is kept; a plan was made; the hub is as planned; all run as wanted."""

SHOWN_DIGEST = 12
"""Characters of a digest in a sentence."""

UP_TO_DATE = "UpToDate"
"""The reason of Applied where nothing is left to write."""


def objects_digest(plan: Plan) -> str:
    """Return the SHA-256 of the objects that a plan generates: what is approved."""
    return digest_of_json(plan.manifests)


def approved_digest(obj: Object) -> str:
    """Return the digest that somebody approved; empty if nobody did."""
    return str((obj["metadata"].get("annotations") or {}).get(APPROVED_DIGEST_ANNOTATION) or "")


def unknown(reason: str, message: str, *types: str) -> Iterator[Condition]:
    """Return conditions of these types that are not known."""
    return (Condition(item, "Unknown", reason, message) for item in types)


def kept(missing: str) -> Condition:
    """Return that an optimization is kept; `missing`: what its spec names and the hub lacks."""
    return Condition(READY, "True", "Kept", missing or "all that it names is there")


def not_planned(problem: RequestProblem) -> tuple[Condition, ...]:
    """Return that no plan could be made, and why; what a plan would tell is not known."""
    return (
        Condition(PLANNED, "False", problem.reason, f"{problem.title}: {problem.detail}"),
        *unknown(problem.reason, "no plan could be made: see Planned", APPLIED, SATISFIED),
    )


def _worth(plan: Plan) -> str:
    """Return in words what a plan that was not applied changes."""
    moved = sum(1 for item in plan.moves if item.before != item.after)
    short = objects_digest(plan)[:SHOWN_DIGEST]
    writes = counted(len(plan.changes), "write")
    return f"plan {short} changes {counted(moved, 'workload')}, in {writes}"


def planned(plan: Plan) -> Condition:
    """Return that a plan was made, or that its solver failed."""
    if plan.failures:
        return Condition(PLANNED, "False", "SolverFailed", plan.failures[0])
    count = len(plan.request.target_workloads)
    return Condition(PLANNED, "True", plan.solution.status, f"{counted(count, 'workload')} planned")


def as_planned(record: RecordedPlan | None, hold: Hold | None = None) -> Condition:
    """Return that the hub is as the last plan says, unless more is on offer that only waits."""
    if hold and hold.reason != BELOW_HYSTERESIS:
        return held(hold)
    named = f": PlacementPlan {UntrustedName(record.name)}" if record else ""
    more = f"; {hold.message}" if hold else ""
    return Condition(APPLIED, "True", UP_TO_DATE, f"the hub is as the last plan says{named}{more}")


def only_planned(plan: Plan) -> Condition:
    """Return that a plan is not applied, because nobody wants plans to be applied."""
    return Condition(
        APPLIED,
        "False",
        "PlanOnly",
        f"{_worth(plan)}: set spec.mode to Approve or Apply to make it",
    )


def awaiting(plan: Plan, obj: Object, history: PlanHistory) -> Condition:
    """Return that a plan waits until somebody approves it; a stale approval is named."""
    digest, approved = objects_digest(plan), approved_digest(obj)
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    how = (
        f"{_worth(plan)}: approve it by `kubectl annotate placementoptimization {name}"
        f" -n {namespace} --overwrite {APPROVED_DIGEST_ANNOTATION}={digest}`"
    )
    before = {record.spec.objects_digest for record in history}
    if approved and approved not in before:
        stale = f"digest {UntrustedName(approved[:SHOWN_DIGEST])} was approved, of a plan that is"
        return Condition(APPLIED, "False", "StaleApproval", f"{stale} out of date; {how}")
    return Condition(APPLIED, "False", "AwaitingApproval", how)


def held(hold: Hold) -> Condition:
    """Return that a plan is not applied yet, and why."""
    return Condition(APPLIED, "False", hold.reason, hold.message)


def refused(problem: RequestProblem) -> Condition:
    """Return that a plan was not written, and why."""
    return Condition(APPLIED, "False", problem.reason, f"{problem.title}: {problem.detail}")


def read_only(what: str) -> Condition:
    """Return that this server may not write; `what` is not done therefore."""
    message = f"{what}: the optimizer was started read-only; allow writes (the chart's allowWrites)"
    return Condition(APPLIED, "False", "ReadOnly", message)


def rolling(record: RecordedPlan) -> tuple[Condition, Condition]:
    """Return that the steps of a rollout are being made."""
    message = (
        f"revision {record.spec.revision} is rolled out: see"
        f" `dsf rollout status -n {record.namespace} {record.spec.optimization}`"
    )
    applied = Condition(APPLIED, "False", ROLLOUT_IN_PROGRESS, message)
    return applied, replace(applied, type=SATISFIED)


def unplaced_told(left: int, workloads: int) -> str:
    """Return how many workloads lack places."""
    return f"{counted(left, 'workload')} of {workloads} have fewer places than they ask for"


def satisfied(plan: Plan, history: PlanHistory) -> Condition:
    """Return whether all workloads have the places that they ask for, and run there."""
    left = plan.unplaced
    if left:
        first = left[0]
        said = unplaced_told(len(left), len(plan.request.target_workloads))
        message = f"{said}; first: {first.workload}: {first.message}"
        return Condition(SATISFIED, "False", "Unplaced", message)
    return landed(history)


def landed(history: PlanHistory) -> Condition:
    """Return whether all workloads of the plan in force run where it placed them."""
    current = in_force(history)
    conditions = (current.status.conditions if current else None) or ()
    told = next((item for item in conditions if item.type == LANDED), None)
    if current is None:
        return Condition(SATISFIED, "False", "NotApplied", "no plan of it is in force")
    if told is None:
        return Condition(SATISFIED, "Unknown", "NotReported", "OCM has not told how far it is")
    if told.status == "True":
        return Condition(SATISFIED, "True", "AllPlaced", told.message)
    return Condition(SATISFIED, told.status, told.reason, told.message)
