"""Drift from a record: generated objects that are not as the plan in force wrote them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dsf.api.invalid_input import InvalidInput
from dsf.api.untrusted_text import listed
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import PLACEMENT_PLAN
from optimizer.plan.generated_objects import changes
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import PlacementDrift, PlacementStatus


def plans_in_force(
    records: Iterable[RecordedPlan], optimization: str | None = None
) -> list[RecordedPlan]:
    """Return the applied plans of an optimization, or of all; none while a rollout replaces it."""
    every = list(records)
    leaving = {record.spec.optimization for record in every if record.is_rolling_out}
    return [
        record
        for record in every
        if record.phase == "Applied"
        and record.spec.optimization not in leaving
        and optimization in (None, record.spec.optimization)
    ]


def with_record_drift(
    status: PlacementStatus, in_force: Iterable[RecordedPlan], observation: Observation
) -> PlacementStatus:
    """Return a status whose drift also names what differs from the records of the plans in force.

    An object that the status names already is not named twice.
    """
    known = {(item.kind, item.name) for item in status.drift}
    found = (item for record in in_force for item in record_drift(record, observation))
    more = [item for item in found if (item.kind, item.name) not in known]
    return status.model_copy(update={"drift": (*status.drift, *more)})


def record_drift(record: RecordedPlan, observation: Observation) -> Iterator[PlacementDrift]:
    """Yield each generated object of the record's optimization that is not as it was recorded.

    A record without content tells nothing. One that was edited by hand is named itself.
    """
    if not record.intact:
        message = "it was edited by hand, so nothing is compared with it: apply a plan again"
        yield _drift("RecordEdited", PLACEMENT_PLAN.kind, record.name, message)
        return
    content = record.content()
    if isinstance(content, InvalidInput):
        return
    for change in changes(content.objects, observation, record.spec.optimization):
        reason, message = _difference(change, f"revision {record.spec.revision}")
        yield _drift(reason, change.kind.kind, change.name, message)


def _difference(change: Change, plan: str) -> tuple[str, str]:
    match change:
        case Create():
            return "MissingFromHub", f"{plan} has it, and somebody deleted it"
        case Patch():
            return "DiffersFromPlan", f"{listed(_paths(change.body))} differ from {plan}"
    return "NotInPlan", f"{plan} does not have it, and it was generated"


def _paths(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a merge patch, two levels deep, such as `spec.tolerations`."""
    for field, value in body.items():
        if isinstance(value, Mapping):
            yield from (f"{field}.{inner}" for inner in value)
        else:
            yield field


def _drift(reason: str, kind: str, name: str, message: str) -> PlacementDrift:
    return PlacementDrift(reason=reason, kind=kind, name=name, message=message)
