"""The changes that a PlacementOptimization has made, and what people undid of them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.follow.optimization.report import plan_request
from optimizer.follow.optimization.subject import requester
from optimizer.follow.record.plan_history import PlanHistory
from optimizer.follow.record.plan_status import APPLIED
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.keep.decision import Take
from optimizer.keep.move_budgets import PastChange
from optimizer.plan.plan import Plan
from optimizer.snapshot.workload_pods import PODS_PENDING
from optimizer.wire.keeping import MoveReason
from optimizer.wire.placement_optimization import MAX_CHANGES, MAX_PENDING_PLACES
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem, validated_request

_FIELDS: Mapping[MoveReason, str] = {
    "BetterScore": "betterScore",
    "ClusterLost": "clusterLost",
    "NotEligible": "notEligible",
}
_KEPT = timedelta(days=1)
"""The longest period of a budget."""


def past_changes(obj: Object, history: PlanHistory, now: datetime) -> tuple[PastChange, ...]:
    """Return the changes of the last day, its own and other people's plans, and what was undone.

    Other people's moves count as those for a better score, while their plans are on record. What
    was undone before somebody asked for a plan holds nothing any more.
    """
    stated = (obj.get("status") or {}).get("recentChanges") or ()
    if stated and not _begun(stated[0], history):
        stated = stated[1:]
    found = [
        PastChange(time, {reason: item.get(field, 0) for reason, field in _FIELDS.items()})
        for item in stated
        if (time := read_time(item.get("time"))) is not None
    ]
    undone, asked = _undone(history[0]) if history else None, read_time(plan_request(obj))
    if undone and not (asked and undone < asked <= now):
        found.append(PastChange(undone, rolled_back=True))
    user = requester(obj["metadata"]["namespace"], obj["metadata"]["name"])
    others = (item for item in history if not item.problem and item.spec.requested_by != user)
    for item in others:
        at, changed = _applied_at(item), item.spec.changes
        if at and changed and changed.moves:
            found.append(PastChange(at, {"BetterScore": changed.moves}))
    return tuple(found)


def _begun(change: Mapping[str, Any], history: PlanHistory) -> bool:
    """Tell whether a change was begun: a process may have died before it signed its record."""
    signed = (item.spec.objects_digest for item in history if item.problem is None)
    return not history or str(change.get("digest")) in signed


def _undone(newest: RecordedPlan) -> datetime | None:
    """Return when a rollback was applied, or a rollout turned back or cancelled; else None."""
    latest = newest.latest
    if newest.spec.rollback and newest.phase == "Applied":
        return _applied_at(newest)
    if latest and latest.reason in ("RolloutTurnedBack", "RolloutCancelled"):
        return read_time(latest.last_transition_time)
    return None


def _applied_at(record: RecordedPlan) -> datetime | None:
    """Return when a plan was applied; as long as it was not, when it was recorded."""
    told = (item for item in record.status.conditions or () if item.type == APPLIED)
    return read_time(next((item.last_transition_time for item in told), record.created))


COOLDOWN = timedelta(minutes=30)
"""For how long a plan avoids a place that an earlier one left because Pods stayed pending.

Without it the plan would return as soon as the Pods are gone, where an inventory can't show why the
scheduler found no node.
"""


def pending_places(obj: Object, now: datetime) -> tuple[dict[str, list[str]], datetime | None]:
    """Return the clusters that plans avoid by workload, and when the first of them ends."""
    stated = (obj.get("status") or {}).get("pendingPlaces") or ()
    ends = [(item, until) for item in stated if (until := read_time(item.get("until")))]
    there = [(item, until) for item, until in ends if now < until <= now + COOLDOWN]
    places = members_by_key((item["workload"], item["cluster"]) for item, _ in there)
    return places, min((until for _, until in there), default=None)


def left_pending(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield workload and cluster of each place that a plan leaves because Pods are pending."""
    after = {item.workload: {place.cluster for place in item.after} for item in plan.moves}
    for item in plan.issues:
        if item.reason == PODS_PENDING and item.cluster not in after.get(item.workload, ()):
            yield item.workload, item.cluster


def with_change(
    obj: Object, taken: Take, digest: str, now: datetime, left: Iterable[tuple[str, str]] = ()
) -> Object:
    """Return the object with one change more in its status, before the change is made.

    `left`: places that it leaves because Pods are pending there.
    """
    moves = taken.moves
    counts = {field: moves[reason] for reason, field in _FIELDS.items() if moves.get(reason)}
    new: dict[str, Any] = {"time": rfc3339(now), "digest": digest, **counts}
    status = obj.get("status") or {}
    kept = [new, *(item for item in status.get("recentChanges") or () if _recent(item, now))]
    while len(kept) > MAX_CHANGES:
        *kept, newer, oldest = kept
        kept.append(_together(newer, oldest))
    until = rfc3339(now + COOLDOWN)
    places = [{"workload": name, "cluster": on, "until": until} for name, on in left]
    known = status.get("pendingPlaces") or ()
    places += [item for item in known if (end := read_time(item["until"])) and end > now]
    changed = {"recentChanges": kept, "pendingPlaces": places[:MAX_PENDING_PLACES] or None}
    return {**obj, "status": {**status, **changed}}


def _recent(item: Mapping[str, Any], now: datetime) -> bool:
    time = read_time(item.get("time"))
    return time is not None and abs(now - time) < _KEPT


def _together(newer: Mapping[str, Any], older: Mapping[str, Any]) -> dict[str, Any]:
    """Return two changes as one at the later time, so that none counts too short."""
    counts = {field: newer.get(field, 0) + older.get(field, 0) for field in _FIELDS.values()}
    return {"time": newer["time"], "digest": newer["digest"], **counts}


def unfinished(history: PlanHistory, user: str) -> RecordedPlan | None:
    """Return the newest plan if `user` began to write it and did not end; None if it is whole."""
    newest = history[0] if history else None
    if newest is None or newest.problem or newest.is_rolling_out:
        return None
    undone = newest.latest is not None and newest.latest.reason == "RolloutCancelled"
    begun = newest.phase in ("Applying", "Failed") and not undone
    return newest if begun and newest.spec.requested_by == user else None


def as_recorded(request: OptimizeRequest, record: RecordedPlan) -> OptimizeRequest | None:
    """Return a request that leaves no choice but what a record decided; None if that is unknown."""
    content = record.content()
    if isinstance(content, InvalidInput):
        return None
    policies = members_by_key((item.cluster, item.policy) for item in content.policies)
    places = members_by_key((item.workload, item.cluster) for item in content.assignments)
    body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for cluster in body["clusters"]:
        named = policies.get(cluster["name"], ())
        listed = cluster.get("availablePolicies", ())
        cluster["availablePolicies"] = [item for item in listed if item["name"] in named]
    for workload in body["targetWorkloads"]:
        if workload["name"] in places:
            workload["clusters"] = places[workload["name"]]
    found = validated_request(body)
    return None if isinstance(found, RequestProblem) else found
