"""Which changes of a status are recorded as Kubernetes Events."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dsf.api.conditions import conditions_of, find
from dsf.kube.changes import Change, Patch, key
from dsf.kube.kinds import DYNAMIC_SCORER, Kind
from dsf.kube.port import Object

_GOOD_STATUS = {"ConfigConflict": "False", "ScoresAdjusted": "False", "TokenExposed": "False"}
"""The status that is good for a condition type; True for all others."""
_SUMMARY_TYPE = "Ready"
_QUIET_REASONS = frozenset(
    {
        "ContextMissing",
        "Distributing",
        "InvalidScoringConfig",
        "NotResolved",
        "Unhealthy",
        "NotProbed",
        "Waiting",
    }
)
"""Reasons that are no Events: they pass by themselves, or another Event has the cause."""
_MESSAGE_CHARACTERS = 1000
"""The API server refuses Events with messages of more than 1024 characters."""


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """An Event to record about a DynamicScorer or the DynamicScoringConfig."""

    kind: Kind
    obj: Object
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def status_events(
    observed: Iterable[tuple[Kind, Object]], changes: Iterable[Change]
) -> list[StatusEvent]:
    """Return the Events for status changes, given the objects from which they were planned.

    Objects that are not given, as those of other namespaces, have no Events.
    """
    by_key = {(kind, *key(obj)): obj for kind, obj in observed}
    return [
        event
        for change in changes
        if isinstance(change, Patch) and change.subresource == "status"
        if (obj := by_key.get((change.kind, change.namespace or "", change.name)))
        for event in _events(change.kind, obj, change.body)
    ]


def _events(kind: Kind, obj: Object, body: Mapping[str, Any]) -> Iterator[StatusEvent]:
    for after in conditions_of(body):
        before = find(conditions_of(obj), str(after["type"]))
        if _is_transition(kind, before, after):
            message = f"{after['type']}: {after.get('message') or after['reason']}"
            yield StatusEvent(
                kind,
                obj,
                "Normal" if _is_good(after) else "Warning",
                str(after["reason"]),
                message[:_MESSAGE_CHARACTERS],
            )


def _is_transition(kind: Kind, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    """Tell whether something failed, failed for another reason, or recovered."""
    if _is_good(after):
        if after["type"] == _SUMMARY_TYPE:
            return before is None or not _is_good(before)
        if before is None or _is_good(before) or before["status"] == "Unknown":
            return False
        return before["reason"] not in _QUIET_REASONS
    if (
        after["status"] == "Unknown"
        or after["reason"] in _QUIET_REASONS
        or _repeats_another(kind, after)
    ):
        return False
    return before is None or _is_good(before) or before["reason"] != after["reason"]


def _repeats_another(kind: Kind, bad: Mapping[str, Any]) -> bool:
    """Tell whether another condition has the same cause, which only a config's Ready may not."""
    return bad["type"] == _SUMMARY_TYPE and (kind == DYNAMIC_SCORER or bad["reason"] == "TooLarge")


def _is_good(condition: Mapping[str, Any]) -> bool:
    return bool(condition["status"] == _GOOD_STATUS.get(str(condition["type"]), "True"))
