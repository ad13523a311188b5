"""What one look at a PlacementOptimization found and did, and the status that tells it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from dsf.api.conditions import Condition, conditions_of, merged
from dsf.api.names import PLAN_REQUESTED_ANNOTATION
from dsf.api.times import rfc3339
from dsf.kube.port import Object
from dsf.placement import read_taints
from optimizer.domain.fleet import Fleet
from optimizer.follow.optimization.kept_conditions import (
    APPLIED,
    PLANNED,
    READY,
    SATISFIED,
    UP_TO_DATE,
    as_planned,
    landed,
    objects_digest,
    rolling,
    unknown,
    unplaced_told,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import NotKept
from optimizer.follow.record.plan_history import PlanHistory, in_force, rolling_out, what_became
from optimizer.keep.decision import Hold, Take
from optimizer.keep.triggers import Watched
from optimizer.plan.generated_objects import describe
from optimizer.plan.plan import Plan
from optimizer.wire.placement_optimization import (
    MAX_HISTORY,
    LastPlan,
    OptimizationEvent,
    PlacementOptimizationStatus,
    PlannedChanges,
)
from optimizer.wire.rollout import ROLLOUT_IN_PROGRESS

RETRY_SECONDS = 15.0
"""Pause after a plan that could not be made or written."""


CALM = frozenset(
    {"Applied", "AwaitingApproval", "PlanOnly", ROLLOUT_IN_PROGRESS, "Stabilizing", "Suspended"}
)
"""Reasons of events that nobody has to worry about."""


class KeptReport(NamedTuple):
    """What one look found. `plan`: what was planned; None: the last plan still stands.

    `changed`: it was applied. `again`: seconds until scores are read again if nothing changes;
    None: when something changes. `next_look`: when it is due to plan although nothing changes.
    `running`: replicas that ran before. `verdict`: what may be taken of it.
    `answered`: the value by which somebody asked for a plan, once it was made and nothing holds it.
    """

    conditions: tuple[Condition, ...]
    plan: LastPlan | None = None
    changed: bool = False
    again: float | None = None
    next_look: datetime | None = None
    verdict: Take | Hold | None = None
    running: int = 0
    moves_left: int | None = None
    answered: str | None = None

    @property
    def hold(self) -> Hold | None:
        """Why what is on offer is not taken; None if nothing is, or all was."""
        verdict = self.verdict
        return verdict if isinstance(verdict, Hold) or verdict is None else verdict.rest

    @property
    def decisive(self) -> Condition:
        """Return the condition that says most: what is wrong first, then whether it is applied."""
        by_type = {item.type: item for item in self.conditions}
        first = (by_type.get(name) for name in (READY, PLANNED))
        wrong = next((item for item in first if item and item.status == "False"), None)
        return wrong or by_type[APPLIED]

    @property
    def reason(self) -> str:
        """Return in one word what came of the look."""
        return "Applied" if self.changed else self.decisive.reason

    @property
    def is_kept(self) -> bool:
        """Return whether it is kept, or waits for a person or a time that it names."""
        return self.reason in (*CALM, UP_TO_DATE, "StaleApproval") or self.hold is not None

    def saying(self, *more: Condition) -> "KeptReport":
        """Return the look with these conditions instead of earlier ones of their types."""
        types = {item.type for item in more}
        kept_ones = (item for item in self.conditions if item.type not in types)
        return self._replace(conditions=(*kept_ones, *more))

    def reading(self, pause: float) -> "KeptReport":
        """Return the look after which scores are read in so many seconds, if not before."""
        return self._replace(again=pause if self.again is None else min(self.again, pause))

    def due(self, now: datetime, *times: datetime | None) -> "KeptReport":
        """Return the look after which a plan is due at one of these times, if not before."""
        coming = (time for time in (self.next_look, *times) if time and time > now)
        first = min(coming, default=None)
        found = self._replace(next_look=first)
        return found.reading((first - now).total_seconds()) if first else found

    def retried(self, now: datetime) -> "KeptReport":
        """Return the look after which the next one follows soon, because this one failed."""
        return self.due(now, now + timedelta(seconds=RETRY_SECONDS))


def plan_request(obj: Object) -> str:
    """Return the value by which somebody asked for a plan now; empty if nobody did."""
    return str((obj["metadata"].get("annotations") or {}).get(PLAN_REQUESTED_ANNOTATION) or "")


def not_kept(why: NotKept) -> KeptReport:
    """Return the look at what can't be kept."""
    others = unknown(why.reason, "it is not kept: see Ready", PLANNED, APPLIED, SATISFIED)
    return KeptReport((Condition(READY, "False", *why), *others))


def by_records(last: KeptReport, obj: Object, history: PlanHistory) -> KeptReport:
    """Return a look that made no plan, with what has become of its plans since then.

    `last`: the look before; `obj`: with the status that it left.
    """
    found = last._replace(plan=None, changed=False)
    told = {item.type: item for item in last.conditions}
    if told[READY].status != "True":
        return found
    if coming := rolling_out(history):
        return found.saying(*rolling(coming))
    if told[APPLIED].status == "True":
        return found if told[SATISFIED].reason == "Unplaced" else found.saying(landed(history))
    if told[APPLIED].reason != ROLLOUT_IN_PROGRESS or not history:
        return found
    newest, current = history[0], in_force(history)
    if newest is not current:
        reason = newest.latest.reason if newest.latest else newest.phase
        applied = Condition(APPLIED, "False", reason, what_became(newest, history))
        return found.saying(applied, replace(applied, type=SATISFIED))
    plan = (obj.get("status") or {}).get("plan") or {}
    lacking = landed(history)
    if left := plan.get("unplaced"):
        message = unplaced_told(left, plan["workloads"])
        lacking = Condition(SATISFIED, "False", "Unplaced", message)
    return found.saying(as_planned(current), lacking)


def last_plan(
    plan: Plan, now: datetime, before: Mapping[str, Any], history: PlanHistory
) -> LastPlan:
    """Return a plan as the status tells it; `before`: that of the last look.

    Its time is when this decision was made first.
    """
    digest, actions = objects_digest(plan), [describe(item).action for item in plan.changes]
    same, current = before.get("digest") == digest, in_force(history)
    applied = current is not None and current.spec.objects_digest == digest
    return LastPlan(
        digest=digest,
        time=str(before["time"]) if same else rfc3339(now),
        objective=round(plan.solution.objective_value, 6),
        bound=plan.solution.bound and round(plan.solution.bound, 6),
        gap=plan.solution.gap,
        workloads=len(plan.request.target_workloads),
        unplaced=len(plan.unplaced),
        moves=sum(1 for item in plan.moves if item.before != item.after),
        changes=PlannedChanges(
            create=actions.count("create"),
            patch=actions.count("patch"),
            delete=actions.count("delete"),
        ),
        record=current.name if current and applied else None,
    )


def status_after(obj: Object, look: KeptReport, now: datetime) -> dict[str, Any]:
    """Return the status after a look; equal to the one before if nothing has changed."""
    before: Mapping[str, Any] = obj.get("status") or {}
    generation = obj["metadata"].get("generation")
    found = merged(conditions_of(obj), look.conditions, now=rfc3339(now), generation=generation)
    plan = look.plan.model_dump(by_alias=True, exclude_none=True) if look.plan else None
    said = happened(obj, look, now)
    new = [said.model_dump(by_alias=True, exclude_none=True)] if said else []
    status = PlacementOptimizationStatus.model_validate(
        {
            **before,
            "observedGeneration": generation,
            "conditions": found,
            "plan": plan or before.get("plan"),
            **_offered(before, look),
            "nextLook": look.next_look and rfc3339(look.next_look),
            "lastChange": rfc3339(now) if look.changed else before.get("lastChange"),
            "history": [*new, *(before.get("history") or ())][:MAX_HISTORY] or None,
        }
    )
    return status.model_dump(by_alias=True, exclude_none=True)


def _offered(before: Mapping[str, Any], look: KeptReport) -> dict[str, Any]:
    """Return what a status says of what is on offer and may move; without a plan as before.

    Of what is not kept nothing is on offer. Without budgets any number of moves would be left.
    """
    if look.plan is None:
        is_ready = all(item.status == "True" for item in look.conditions if item.type == READY)
        return {} if is_ready else {"gain": None}
    verdict, answered, hold = look.verdict, look.answered, look.hold
    gain = 0.0 if look.changed or verdict is None else verdict.gain
    return {
        "gain": round(hold.gain if hold else gain, 6) + 0.0,
        "movesLeft": look.moves_left,
        "planRequested": before.get("planRequested") if answered is None else answered or None,
    }


def happened(obj: Object, look: KeptReport, now: datetime) -> OptimizationEvent | None:
    """Return what is new since the last look, for the history and an Event; None: nothing is."""
    reason = look.reason
    digest = look.plan.digest if look.plan else None
    last: Mapping[str, Any] = next(iter((obj.get("status") or {}).get("history") or ()), {})
    same = (reason, digest or last.get("digest")) == (last.get("reason"), last.get("digest"))
    if same or reason == UP_TO_DATE:
        return None
    return OptimizationEvent(
        time=rfc3339(now), reason=reason, message=look.decisive.message, digest=digest
    )


_MOMENTARY: Mapping[str, Any] = {
    **dict.fromkeys(("current", "unselectable", "avoided", "pods", "devices", "unseen"), ()),
    "labels": {},
    "pending": (),
}
"""Fields of a workload that nobody states, without their values."""


def watched_of(obj: Object, facts: FleetFacts, fleet: Fleet) -> Watched:
    """Return what makes a plan due when it changes."""
    drained = {item.name for item in fleet.clusters if item.drained}
    return Watched(
        clusters={
            name: frozenset(map(str, read_taints(item)))
            for name, item in facts.hub.clusters.items()
        },
        lost=frozenset(name for name, why in facts.faults.items() if why.reason == "ClusterLost"),
        workloads=frozenset(item.name for item in fleet.workloads),
        policies=frozenset(facts.policies),
        generation=int(obj["metadata"].get("generation") or 0),
        plan_requested_at=plan_request(obj),
        must_move=frozenset(
            item.name
            for item in fleet.workloads
            if not set(item.running) - set(item.unselectable) - drained or item.pending
        ),
        constraints={
            **{("workload", item.name): replace(item, **_MOMENTARY) for item in fleet.workloads},
            **{
                ("cluster", item.name): (bool(item.drained), item.max_workloads)
                for item in fleet.clusters
            },
        },
    )
