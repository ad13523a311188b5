"""The record of a rollout: the steps in the spec of a PlacementPlan, the progress in its status."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from dsf.api.conditions import Condition, Status, conditions_of, find, merged
from dsf.api.crd.placement_plan import RecordedProgress, RecordedWait, RolloutPhase, StepTime
from dsf.api.names import DEFAULT_OPTIMIZATION, IN_PROGRESS, ROLLOUT_LABEL
from dsf.api.optimization import Optimization, generating_optimization
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import InvalidInput, counted, joined
from dsf.kube.changes import Patch
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, PLACEMENT_PLAN, POLICY
from dsf.kube.port import Object
from optimizer.follow.record.content import unpacked
from optimizer.follow.record.recorded_plan import (
    EDITED,
    NOT_SIGNED,
    RecordKey,
    progress_digest,
    read_records,
    record_digest,
    signed_progress,
)
from optimizer.follow.rollout.next_step import RolloutProgress
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.rollout import RolloutStatus, RolloutWait, StepActions, StepSpan

PROGRESSING = "Progressing"

MAX_WAITS = 20
"""Things that a status lists; the message says how many more there are."""

_GENERATED_KINDS = frozenset({PLACEMENT.kind, PLACEMENT_BINDING.kind, POLICY.kind})


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """A PlacementPlan with a rollout; `plan` says why its steps can't be used, if they can't.

    `key`: that of the optimizer, which was found to have signed steps and progress; None: unknown.
    """

    obj: Object
    plan: RolloutPlan | InvalidInput
    progress: RolloutProgress
    key: RecordKey | None = None

    @property
    def name(self) -> str:
        """The name of the PlacementPlan."""
        return name_of(self.obj)

    @property
    def namespace(self) -> str:
        """The namespace of the optimization."""
        return str(self.obj["metadata"]["namespace"])

    @property
    def optimization(self) -> str:
        """The name of the optimization."""
        return optimization_of(self.obj)

    @property
    def digest(self) -> str:
        """The digest of the plan."""
        return str(self.obj["spec"].get("digest"))

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters that any of its steps changes."""
        steps = self.plan.actions if isinstance(self.plan, RolloutPlan) else ()
        policies = (item for step in steps for item in (*step.enforce, *step.release))
        replicas = (item for step in steps for item in (*step.start, *step.stop))
        return frozenset((*(i.cluster for i in policies), *(i.cluster for i in replicas)))


def is_rollout(obj: Object) -> bool:
    """Tell whether a PlacementPlan is rolled out step by step."""
    return bool((obj.get("spec") or {}).get("rollout"))


def goes_on(obj: Object) -> bool:
    """Tell whether the rollout of a PlacementPlan has not ended."""
    return not _progress(obj.get("status") or {}).ended


def revision_of(obj: Object) -> int:
    """Return the number of a PlacementPlan in its optimization."""
    return int(obj["spec"].get("revision") or 0)


def optimization_of(obj: Object) -> str:
    """Return the optimization of a PlacementPlan."""
    return str(obj["spec"].get("optimization") or DEFAULT_OPTIMIZATION)


def rollout_record(obj: Object, key: RecordKey | None = None) -> RolloutRecord | None:
    """Return the rollout of a PlacementPlan; None if its plan was written all at once.

    With a key, it is one only if the optimizer signed it and its progress.
    """
    if not is_rollout(obj):
        return None
    progress = _progress(obj.get("status") or {})
    if record_digest(obj["spec"]) != obj["spec"].get("recordDigest"):
        return RolloutRecord(obj, EDITED, progress)
    if key is not None and not _signed(obj, key):
        return RolloutRecord(obj, NOT_SIGNED, progress)
    return RolloutRecord(obj, _plan(obj, str(obj["spec"]["rollout"])), progress, key)


def progress_reason(obj: Object) -> str:
    """Return the reason of the condition Progressing that a PlacementPlan's rollout has now."""
    return _status(_progress(obj.get("status") or {}))[1]


def status_of(record: RolloutRecord) -> RolloutStatus:
    """Return a rollout as the wire shows it."""
    plan, progress = record.plan, record.progress
    condition = find(conditions_of(record.obj), PROGRESSING) or {}
    return RolloutStatus(
        namespace=record.namespace,
        optimization=record.optimization,
        record=record.name,
        digest=record.digest,
        phase=progress.phase,
        paused=progress.paused,
        turning_back=progress.turning_back,
        step=current_step(progress),
        steps=plan.actions if isinstance(plan, RolloutPlan) else (),
        waiting_for=progress.waiting_for,
        reason=condition.get("reason") or "NotStarted",
        message=condition.get("message") or "no step has been written",
        last_progress=progress.last_progress,
        step_times=progress.step_times,
    )


def progress_patch(record: RolloutRecord, progress: RolloutProgress, now: datetime) -> Patch:
    """Return the write of a progress; refused if someone has written the record meanwhile."""
    condition = progressing_condition(record.plan, progress)
    recorded = _recorded(progress, record.plan)
    if record.key is not None:
        recorded = signed_progress(recorded, str(record.obj["metadata"]["uid"]), record.key)
    status = {
        "rollout": recorded.model_dump(by_alias=True, mode="json"),
        "conditions": merged(conditions_of(record.obj), [condition], now=rfc3339(now)),
    }
    version = record.obj["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "status": status}
    return Patch(PLACEMENT_PLAN, record.name, record.namespace, body, "status")


def label_patch(record: RolloutRecord) -> Patch | None:
    """Return the write that makes the label say whether the rollout goes on; None if it does."""
    goes_on = not record.progress.ended and record.plan not in (NOT_SIGNED, EDITED)
    wanted = IN_PROGRESS if goes_on else None
    if (record.obj["metadata"].get("labels") or {}).get(ROLLOUT_LABEL) == wanted:
        return None
    body = {"metadata": {"labels": {ROLLOUT_LABEL: wanted}}}
    return Patch(PLACEMENT_PLAN, record.name, record.namespace, body)


def current_step(progress: RolloutProgress) -> int:
    """Return the number of the step that is being made, or that was made last."""
    return max(progress.source, progress.target)


def step_words(step: StepActions) -> str:
    """Return what a step does, in words."""
    parts = (
        ("release", [f"{item.policy} on {item.cluster}" for item in step.release]),
        ("enforce", [f"{item.policy} on {item.cluster}" for item in step.enforce]),
        ("start", [f"{item.workload} on {item.cluster}" for item in step.start]),
        ("stop", [f"{item.workload} on {item.cluster}" for item in step.stop]),
        ("keep", [f"{item.workload} on {item.cluster}" for item in step.keep]),
    )
    said = [f"{verb} {joined(items, 5)}" for verb, items in parts if items]
    return "; ".join(said) or "write what does not change where anything runs"


def progressing_condition(plan: RolloutPlan | InvalidInput, progress: RolloutProgress) -> Condition:
    """Return the condition Progressing, with the reasons that a Deployment has where they fit."""
    if isinstance(plan, InvalidInput):
        unsigned = plan in (NOT_SIGNED, EDITED)
        advice = "nothing of it is written: plan again" if unsigned else "cancel it and plan again"
        message = f"{plan.message}; {advice}"
        return Condition(PROGRESSING, "False", plan.reason, message)
    status, reason = _status(progress)
    return Condition(PROGRESSING, status, reason, _message(plan, progress))


def _signed(obj: Object, key: RecordKey) -> bool:
    """Return whether the optimizer wrote the spec and the progress of a record."""
    (record,) = read_records([obj], key) or (None,)
    progress = record.status.rollout if record else None
    return bool(
        record
        and record.signed
        and progress
        and key.signed(record.uid, "progress", progress_digest(progress), progress.signature)
    )


def _plan(obj: Object, steps: str) -> RolloutPlan | InvalidInput:
    """Return the steps of a record, if all their objects are of its optimization."""
    spec, plan = obj["spec"], unpacked(steps, RolloutPlan)
    if isinstance(plan, InvalidInput):
        return plan
    owner = Optimization(str(obj["metadata"]["namespace"]), str(spec.get("optimization")))
    written = (plan.objects, *(step.write for step in plan.steps))
    own = all(_is_of(owner, item) for objects in written for item in objects)
    if not own or plan.owner != owner:
        return InvalidInput("RecordInvalid", "its steps write objects of somebody else")
    return plan


def _is_of(owner: Optimization, obj: Object) -> bool:
    metadata = obj["metadata"]
    return (
        obj["kind"] in _GENERATED_KINDS
        and metadata.get("namespace") == owner.namespace
        and generating_optimization(metadata.get("labels") or {}) == owner.name
    )


PROGRESS_REASONS = (
    "RolloutPaused",
    "ProgressDeadlineExceeded",
    "StepWaiting",
    "TurningBack",
    "StepWritten",
)
"""The reasons of the condition Progressing while a rollout goes on."""

_ENDED: Mapping[RolloutPhase, tuple[Status, str]] = {
    "Complete": ("True", "RolloutComplete"),
    "TurnedBack": ("False", "RolloutTurnedBack"),
    "Cancelled": ("False", "RolloutCancelled"),
}


def _status(progress: RolloutProgress) -> tuple[Status, str]:
    if progress.ended:
        return _ENDED[progress.phase]
    if progress.paused:
        return "Unknown", "RolloutPaused"
    if progress.overdue:
        return "False", "ProgressDeadlineExceeded"
    if progress.waiting_for:
        return "True", "StepWaiting"
    return "True", "TurningBack" if progress.turning_back else "StepWritten"


def _message(plan: RolloutPlan, progress: RolloutProgress) -> str:
    steps, at = plan.steps, current_step(progress)
    where = f"step {at} of {len(steps)}"
    if progress.ended:
        return {
            "Complete": f"all {counted(len(steps), 'step')} were made",
            "TurnedBack": "everything is as it was before the rollout",
            "Cancelled": f"cancelled at {where}; plan again from here",
        }[progress.phase]
    back = ", turning back" if progress.turning_back else ""
    if progress.paused:
        return f"{where}{back}: resume it, turn it back, or cancel it"
    words = "about to begin"
    if 0 < at <= len(steps):
        actions = steps[at - 1].actions
        words = step_words(_undone(actions) if progress.turning_back else actions)
    messages = joined((wait.message for wait in progress.waiting_for), 3, separator="; ")
    late = " for longer than its deadline" if progress.overdue else ""
    waits = f"; waits{late} for: {messages}" if messages else ""
    return f"{where}{back}: {words}{waits}"


def _undone(step: StepActions) -> StepActions:
    """Return what a step does on the way back."""
    swapped = {"enforce": step.release, "release": step.enforce}
    return step.model_copy(update={**swapped, "start": step.stop, "stop": step.start})


def _recorded(progress: RolloutProgress, plan: RolloutPlan | InvalidInput) -> RecordedProgress:
    return RecordedProgress(
        phase=progress.phase,
        source=progress.source,
        target=progress.target,
        steps=len(plan.steps) if isinstance(plan, RolloutPlan) else 0,
        turning_back=progress.turning_back,
        paused=progress.paused,
        ready_since=_time(progress.ready_since),
        last_progress=_time(progress.last_progress),
        overdue=progress.overdue,
        waiting_for=[
            RecordedWait(reason=item.reason, message=item.message, since=_time(item.since))
            for item in progress.waiting_for[:MAX_WAITS]
        ],
        step_times=[
            StepTime(step=it.step, back=it.back, began=rfc3339(it.began), ended=_time(it.ended))
            for it in progress.step_times
        ]
        or None,
    )


def _progress(status: Mapping[str, Any]) -> RolloutProgress:
    """Return the recorded progress; one that was edited into nonsense counts as the start."""
    try:
        read = RecordedProgress.model_validate(status.get("rollout") or {})
    except ValidationError:
        return RolloutProgress()
    return RolloutProgress(
        source=read.source,
        target=read.target,
        turning_back=read.turning_back,
        paused=read.paused,
        phase=read.phase,
        ready_since=_moment(read.ready_since),
        last_progress=_moment(read.last_progress),
        overdue=read.overdue,
        waiting_for=tuple(
            RolloutWait(reason=item.reason, message=item.message, since=_moment(item.since))
            for item in read.waiting_for
        ),
        step_times=tuple(
            StepSpan(step=it.step, back=it.back, began=began, ended=_moment(it.ended))
            for it in read.step_times or ()
            if (began := _moment(it.began))
        ),
    )


def _time(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment else None


def _moment(text: str | None) -> datetime | None:
    return read_time(text) if text else None
