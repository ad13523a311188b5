"""What becomes of a recorded plan: the statuses that a PlacementPlan goes through."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from dsf.api.conditions import Condition, merged
from dsf.api.crd.placement_plan import PlanPhase, RecordedChanges, RecordedProgress
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, counted, joined, quoted
from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import PLACEMENT_PLAN
from optimizer.domain.solution import SOLVER_FAILED, Solution, solver_issues
from optimizer.follow.record.recorded_plan import (
    RecordedPlan,
    RecordKey,
    restored_part,
    signed_progress,
)
from optimizer.wire.result import FailedChange

APPLIED, SUPERSEDED = "Applied", "Superseded"
"""Types of conditions: all objects of the plan were written; something later replaced them."""

NOTHING_WRITTEN = "NothingWritten"
"""Reason of the condition Applied of a plan that failed and has no object as it planned it."""

_SHOWN = 5
"""Objects that a message names before it says how many more there are."""


def signed(begun: Patch, record: RecordedPlan, key: RecordKey, steps: int) -> Patch:
    """Return the first status of a record with its signature; with steps, a rollout that begins."""
    status = begun.body["status"]
    signature = key.signature(record.uid, "spec", record.spec.record_digest)
    status = {**status, "signature": signature}
    if steps:
        progress = signed_progress(RecordedProgress(steps=steps), record.uid, key)
        status["rollout"] = progress.model_dump(mode="json", by_alias=True, exclude_none=True)
    return replace(begun, body={"status": status})


def applying(record: RecordedPlan, solution: Solution, now: datetime) -> Patch:
    """Return the status of a plan before its first write; it keeps that the solver failed."""
    message = "the objects of the plan are being written"
    begun = Condition(APPLIED, "Unknown", "Applying", message)
    if solution.failure is None or solution.status == "Optimal":
        return _status(record, "Applying", begun, now)
    (issue,) = solver_issues(solution)
    failed = Condition(SOLVER_FAILED, "True", solution.failure.cause, issue.message)
    return _status(record, "Applying", failed, now, begun)


def solved_again(record: RecordedPlan, now: datetime) -> Patch:
    """Return the status of an applied plan that another solve, which did not fail, decided too."""
    message = "a later solve, which did not fail, decided the same"
    condition = Condition(SOLVER_FAILED, "False", "SolvedAgain", message)
    return _status(record, record.phase, condition, now)


def applied(record: RecordedPlan, now: datetime) -> Patch:
    """Return the status of a plan whose objects were all written."""
    message = "all objects of the plan were written"
    return _status(record, "Applied", Condition(APPLIED, "True", "Written", message), now)


def refused(record: RecordedPlan, failed: Sequence[FailedChange], now: datetime) -> Patch:
    """Return the status of a plan of which the hub refused some writes."""
    said = _some(f"{item.kind} {item.name}: {quoted(item.message)}" for item in failed)
    planned = record.spec.changes or RecordedChanges()
    writes = planned.create + planned.patch + planned.delete
    part, reason = (
        (f"all {counted(writes, 'write')}", NOTHING_WRITTEN)
        if len(failed) == writes
        else (f"{len(failed)} of {counted(writes, 'write')}", "HubRefused")
    )
    message = f"the hub refused {part}: {said}; the same request again writes what is missing"
    return _status(record, "Failed", Condition(APPLIED, "False", reason, message), now)


def settled(
    record: RecordedPlan, missing: Sequence[Change] | None, now: datetime, *, nothing: bool = False
) -> Patch:
    """Return the status of a plan whose writer died, or that a rollout ended without saying so.

    `missing`: what it left unwritten; None if the record can't tell. `nothing`: it wrote nothing.
    """
    ended = record.status.rollout and record.status.rollout.phase
    if ended == "Cancelled":
        return cancelled(record, now)
    if ended == "TurnedBack":
        return turned_back(record, now)
    if missing is not None and not missing:
        return applied(record, now)
    if missing is None:
        left = "its record has no usable content that tells what is missing"
    else:
        said = _some(f"{item.kind.kind} {UntrustedName(item.name)}" for item in missing)
        left = f"{counted(len(missing), 'object')} differ: {said}"
    message = f"the writer ended before the plan was whole; {left}; plan again, or roll back"
    reason = NOTHING_WRITTEN if nothing else "Interrupted"
    return _status(record, "Failed", Condition(APPLIED, "False", reason, message), now)


def superseded(record: RecordedPlan, by: RecordedPlan, now: datetime) -> Patch:
    """Return the status of an applied plan that a later one replaced."""
    back, newer = by.spec.rollback, f"revision {by.spec.revision}"
    if back and not back.workload and back.from_revision == record.spec.revision:
        message = f"{newer} restored revision {back.to_revision}"
        return _replaced(record, "RolledBack", "RolledBack", message, now)
    message = f"{newer} was applied" if not back else f"{newer} restored {restored_part(back)}"
    return _replaced(record, "Superseded", "NewerPlan", message, now)


def turned_back(record: RecordedPlan, now: datetime) -> Patch:
    """Return the status of a plan whose rollout was turned back to its start."""
    message = "its rollout was turned back to what ran before"
    return _replaced(record, "RolledBack", "RolloutTurnedBack", message, now)


def cancelled(record: RecordedPlan, now: datetime) -> Patch:
    """Return the status of a plan whose rollout was cancelled on the way."""
    message = "its rollout was cancelled before the last step; plan again from here"
    return _status(record, "Failed", Condition(APPLIED, "False", "RolloutCancelled", message), now)


def reset(record: RecordedPlan, now: datetime) -> Patch:
    """Return the status of an applied plan whose objects a reset deleted."""
    message = "a reset deleted the generated objects"
    return _replaced(record, "Superseded", "Reset", message, now)


def _replaced(
    record: RecordedPlan, phase: PlanPhase, reason: str, message: str, now: datetime
) -> Patch:
    return _status(record, phase, Condition(SUPERSEDED, "True", reason, message), now)


def _status(
    record: RecordedPlan, phase: PlanPhase, condition: Condition, now: datetime, *more: Condition
) -> Patch:
    observed = [
        item.model_dump(by_alias=True, exclude_none=True) for item in record.status.conditions or ()
    ]
    conditions = merged(observed, [condition, *more], now=rfc3339(now))
    body = {"status": {"phase": phase, "conditions": conditions}}
    return Patch(PLACEMENT_PLAN, record.name, record.namespace, body, "status")


def _some(texts: Iterable[str]) -> str:
    return joined(texts, _SHOWN)
