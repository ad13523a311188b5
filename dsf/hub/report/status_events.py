"""Which changes of a status are worth a Kubernetes Event."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dsf.api.conditions import find
from dsf.kube.changes import Change, Patch
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, Kind
from dsf.kube.port import Object

_GOOD = {"ConfigConflict": "False"}
_SUMS_UP = "Ready"
_QUIET = frozenset(
    {"Distributing", "InvalidScoringConfig", "NotResolved", "Unhealthy", "NotProbed", "Waiting"}
)
_MESSAGE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """An Event to be recorded about an object of ours."""

    kind: Kind
    obj: Object
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def status_events(
    observed: Iterable[tuple[Kind, Object]], changes: Iterable[Change]
) -> list[StatusEvent]:
    """Return the events that status changes deserve, given the objects that they were made from."""
    by_name = {(kind, str(obj["metadata"]["name"])): obj for kind, obj in observed}
    return [
        notice
        for change in changes
        if isinstance(change, Patch)
        and change.subresource == "status"
        and change.kind in (DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG)
        for notice in _of(change.kind, by_name[change.kind, change.name], change.body)
    ]


def _of(kind: Kind, obj: Object, body: Mapping[str, Any]) -> Iterator[StatusEvent]:
    before = (obj.get("status") or {}).get("conditions") or []
    for after in (body.get("status") or {}).get("conditions") or []:
        told = find(before, str(after["type"]))
        if _is_news(kind, told, after):
            good = _is_good(after)
            message = f"{after['type']}: {after.get('message') or after['reason']}"
            yield StatusEvent(
                kind,
                obj,
                "Normal" if good else "Warning",
                str(after["reason"]),
                message[:_MESSAGE_LIMIT],
            )


def _is_news(kind: Kind, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    """Tell whether something went wrong, went wrong otherwise, or is well again."""
    if _is_good(after):
        if after["type"] == _SUMS_UP:
            return before is None or not _is_good(before)
        return before is not None and not _is_good(before) and before["status"] != "Unknown"
    if after["status"] == "Unknown" or after["reason"] in _QUIET or _is_repeated(kind, after):
        return False
    return before is None or _is_good(before) or before["reason"] != after["reason"]


def _is_repeated(kind: Kind, bad: Mapping[str, Any]) -> bool:
    """Tell whether another condition says the same: a config's Ready has causes of its own."""
    return bad["type"] == _SUMS_UP and (kind == DYNAMIC_SCORER or bad["reason"] == "TooLarge")


def _is_good(condition: Mapping[str, Any]) -> bool:
    return bool(condition["status"] == _GOOD.get(str(condition["type"]), "True"))
