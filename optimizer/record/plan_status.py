"""What becomes of a recorded plan: the statuses that a PlacementPlan goes through."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from dsf.api.conditions import Condition, merged
from dsf.api.crd.placement_plan import PlanPhase
from dsf.api.plural import counted
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, quoted
from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import PLACEMENT_PLAN
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.wire.result import FailedChange

APPLIED, SUPERSEDED = "Applied", "Superseded"
"""Types of conditions: all objects of the plan were written; something later replaced them."""

_SHOWN = 5
"""Objects that a message names before it says how many more there are."""


def applying(record: RecordedPlan, now: datetime) -> Patch:
    """Return the status of a plan before its first write."""
    message = "the objects of the plan are being written"
    return _status(record, "Applying", Condition(APPLIED, "Unknown", "Applying", message), now)


def applied(record: RecordedPlan, now: datetime) -> Patch:
    """Return the status of a plan whose objects were all written."""
    message = "all objects of the plan were written"
    return _status(record, "Applied", Condition(APPLIED, "True", "Written", message), now)


def refused(record: RecordedPlan, failed: Sequence[FailedChange], now: datetime) -> Patch:
    """Return the status of a plan of which the hub refused some writes."""
    said = _some(f"{item.kind} {item.name}: {quoted(item.message)}" for item in failed)
    message = (
        f"the hub refused {counted(len(failed), 'write')}: {said};"
        " the same request again writes what is missing"
    )
    return _status(record, "Failed", Condition(APPLIED, "False", "HubRefused", message), now)


def settled(record: RecordedPlan, missing: Sequence[Change] | None, now: datetime) -> Patch:
    """Return the status of a plan whose writer died.

    `missing`: what it left unwritten; None if the record can't tell.
    """
    if missing is not None and not missing:
        return applied(record, now)
    if missing is None:
        left = "its record has no usable content that tells what is missing"
    else:
        said = _some(f"{item.kind.kind} {UntrustedName(item.name)}" for item in missing)
        left = f"{counted(len(missing), 'object')} differ: {said}"
    message = f"the writer ended before the plan was whole; {left}; plan again, or roll back"
    return _status(record, "Failed", Condition(APPLIED, "False", "Interrupted", message), now)


def superseded(record: RecordedPlan, by: RecordedPlan, now: datetime) -> Patch:
    """Return the status of an applied plan that a later one replaced."""
    if by.spec.rollback and by.spec.rollback.from_revision == record.spec.revision:
        message = f"revision {by.spec.revision} restored revision {by.spec.rollback.to_revision}"
        return _replaced(record, "RolledBack", "RolledBack", message, now)
    message = f"revision {by.spec.revision} was applied"
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


def _status(record: RecordedPlan, phase: PlanPhase, condition: Condition, now: datetime) -> Patch:
    observed = [
        item.model_dump(by_alias=True, exclude_none=True) for item in record.status.conditions or ()
    ]
    conditions = merged(observed, [condition], now=rfc3339(now))
    body = {"status": {"phase": phase, "conditions": conditions}}
    return Patch(PLACEMENT_PLAN, record.name, record.namespace, body, "status")


def _some(texts: Iterable[str]) -> str:
    listed = list(texts)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
