"""Kubernetes conditions: set, find and test them.

Source: the Kubernetes API conventions, `meta/v1` Condition.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dsf.api.untrusted_text import escaped

Status = Literal["True", "False", "Unknown"]

MESSAGE_LIMIT = 32768
"""Characters of a condition message, as in `meta/v1` Condition."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition to set; `merged` determines its lastTransitionTime."""

    type: str
    status: Status
    reason: str
    message: str = ""


def merged(
    observed: Sequence[Mapping[str, Any]],
    desired: Iterable[Condition],
    *,
    now: str,
    generation: int | None = None,
) -> list[dict[str, Any]]:
    """Return the observed conditions with the desired ones set, in stable order.

    `now` is an RFC 3339 time. `lastTransitionTime` changes only with the status. Conditions of
    other types stay as they are. A message shows text of others quoted, and invisible characters as
    escapes, because kubectl prints messages as they are.
    """
    result = {str(item.get("type")): dict(item) for item in observed}
    for condition in desired:
        before = result.get(condition.type, {})
        same = before.get("status") == condition.status
        result[condition.type] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": escaped(f"{condition.message}")[:MESSAGE_LIMIT],
            "lastTransitionTime": before.get("lastTransitionTime", now) if same else now,
            **({} if generation is None else {"observedGeneration": generation}),
        }
    return list(result.values())


def conditions_of(obj: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the `status.conditions` of an object; empty if it has none."""
    return (obj.get("status") or {}).get("conditions") or []


def find(conditions: Iterable[Mapping[str, Any]], type_: str) -> Mapping[str, Any] | None:
    """Return the condition of one type, or None."""
    return next((item for item in conditions if item.get("type") == type_), None)


def is_true(obj: Mapping[str, Any], type_: str) -> bool:
    """Return whether the condition of a type is True in an object's `status.conditions`."""
    condition = find(conditions_of(obj), type_)
    return condition is not None and condition.get("status") == "True"
