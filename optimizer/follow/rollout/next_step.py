"""The next step of a rollout: what to write now, or what it waits for.

A rollout walks along its states, forward to the goal or back to the start. `source` and `target`
are neighbouring states, and the hub's objects lie between them; if they are equal, that state is
complete. A step begins by moving `target` on, which the record says before anything is written. So
whoever reads the record knows which writes are missing, however often they were interrupted.

The same states are walked backwards: a set of moves that is safe in any order and whichever part
of it is made is safe in both directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dsf.api.crd.placement_plan import MAX_STEP_TIMES, RolloutPhase
from dsf.api.untrusted_text import listed
from dsf.kube.changes import Change
from optimizer.follow.rollout.rollout_state import ObjectKey, RolloutState
from optimizer.follow.rollout.step_requirements import RolloutFacts, needed_after, needed_before
from optimizer.plan.generated_objects import changes, taken_names
from optimizer.snapshot.observation import Observation
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.rollout import RolloutWait, StepSpan


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """How far a rollout is: all that changes while it runs.

    `ready_since`: since when everything that the step needs is there. `last_progress`: when a step
    began or was completed, or the rollout was resumed. `overdue`: the deadline has passed.
    """

    source: int = 0
    target: int = 0
    turning_back: bool = False
    paused: bool = False
    phase: RolloutPhase = "Progressing"
    ready_since: datetime | None = None
    last_progress: datetime | None = None
    overdue: bool = False
    waiting_for: tuple[RolloutWait, ...] = ()
    step_times: tuple[StepSpan, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing will be written any more."""
        return self.phase != "Progressing"

    @property
    def complete(self) -> bool:
        """Whether the hub is at a state and no step is being made."""
        return self.source == self.target


@dataclass(frozen=True, slots=True)
class RolloutMove:
    """The progress to record, and then the changes to write; `note` says in one word what it is."""

    progress: RolloutProgress
    changes: tuple[Change, ...] = ()
    note: str = ""


def next_move(
    plan: RolloutPlan,
    states: Sequence[RolloutState],
    progress: RolloutProgress,
    facts: RolloutFacts,
    now: datetime,
) -> RolloutMove:
    """Return what to do now. Called again and again: with the same facts it changes nothing."""
    if progress.ended or progress.paused:
        return RolloutMove(progress)
    found = located(plan, states, progress, facts.observation)
    if found != progress:
        return RolloutMove(moved(found, now), note="PositionCorrected")
    desired = states[progress.target].objects.values()
    taken = taken_names(desired, facts.observation, plan.optimization)
    if taken:
        message = (
            f"{listed(taken)} would be overwritten, and this optimization did not generate it:"
            " delete it, or cancel the rollout"
        )
        return waiting(plan, progress, (RolloutWait(reason="NameTaken", message=message),), now)
    writes = changes(desired, facts.observation, plan.optimization)
    if progress.complete:
        restored = RolloutMove(progress, writes, "Restored")
        return restored if writes else _begin(plan, states, progress, facts, now)
    around = states[progress.source], states[progress.target]
    if not writes:
        return _complete(plan, progress, around, facts, now)
    needed = needed_before(*around, facts)
    cleared = replace(progress, waiting_for=(), ready_since=None)
    written = RolloutMove(cleared, writes, "StepWritten")
    return waiting(plan, progress, needed, now) if needed else written


def turned_back(progress: RolloutProgress, now: datetime) -> RolloutProgress:
    """Return the progress of a rollout that walks back to the start; a pause ends."""
    back = replace(progress, turning_back=True, paused=False)
    there = replace(back, source=progress.target, target=progress.source)
    return moved(there if progress.complete else _step_begun(_step_ended(there, now), now), now)


def located(
    plan: RolloutPlan,
    states: Sequence[RolloutState],
    progress: RolloutProgress,
    observation: Observation,
) -> RolloutProgress:
    """Return the progress with states between which the hub's objects lie.

    It is the progress itself unless the record was edited by hand. Objects that were edited by hand
    lie nowhere; then the record is right, and the objects will be restored.
    """

    def between(source: int, target: int) -> bool:
        different = (
            _different(states[at], observation, plan.optimization) for at in {source, target}
        )
        return not set.intersection(*different)

    last = len(states) - 1
    pair = (progress.source, progress.target)
    known = 0 <= min(pair) <= max(pair) <= last and max(pair) - min(pair) <= 1
    if known and between(*pair):
        return progress
    towards = -1 if progress.turning_back else 1
    for at in range(last + 1):
        for source, target in ((at, at), (at, at + towards)):
            if 0 <= target <= last and between(source, target):
                return replace(progress, source=source, target=target)
    if known:
        return progress
    at = min(max(progress.source, 0), last)
    return replace(progress, source=at, target=at)


def _different(state: RolloutState, observation: Observation, optimization: str) -> set[ObjectKey]:
    """Return the objects that are not as a state has them."""
    found = changes(state.objects.values(), observation, optimization)
    return {(change.kind.kind, change.name) for change in found}


def _begin(
    plan: RolloutPlan,
    states: Sequence[RolloutState],
    progress: RolloutProgress,
    facts: RolloutFacts,
    now: datetime,
) -> RolloutMove:
    """Return the beginning of the next step, or what it needs first."""
    at = progress.target
    if progress.turning_back and at == 0:
        return RolloutMove(_ended(progress, "TurnedBack"), note="RolloutTurnedBack")
    if not progress.turning_back and at == len(states) - 1:
        return RolloutMove(_ended(progress, "Complete"), note="RolloutComplete")
    following = at - 1 if progress.turning_back else at + 1
    if needed := needed_before(states[at], states[following], facts):
        return waiting(plan, progress, needed, now)
    begun = moved(_step_begun(replace(progress, source=at, target=following), now), now)
    return RolloutMove(begun, note="StepStarted")


def _complete(
    plan: RolloutPlan,
    progress: RolloutProgress,
    around: tuple[RolloutState, RolloutState],
    facts: RolloutFacts,
    now: datetime,
) -> RolloutMove:
    """Return the completion of a step that is written, or what it waits for."""
    source, target = around
    if needed := needed_after(source, target, facts):
        return waiting(plan, progress, needed, now)
    since = progress.ready_since or now
    least = timedelta(seconds=plan.pace.min_ready_seconds)
    if target.policies - source.policies and now - since < least:
        wait = RolloutWait(
            reason="MinReadySeconds",
            message=f"policies and claims have to stay compliant for {least.total_seconds():g} s",
            since=since,
        )
        return waiting(plan, replace(progress, ready_since=since), (wait,), now)
    done = _step_ended(replace(progress, source=progress.target), now)
    return RolloutMove(moved(done, now), note="StepComplete")


def waiting(
    plan: RolloutPlan, progress: RolloutProgress, needed: tuple[RolloutWait, ...], now: datetime
) -> RolloutMove:
    """Return the progress of a step that waits, overdue if it does so for too long."""
    ready = progress.ready_since if needed[0].reason == "MinReadySeconds" else None
    begun = progress.last_progress or now
    late = now - begun > timedelta(seconds=plan.pace.progress_deadline_seconds)
    waiting = replace(
        progress, waiting_for=needed, ready_since=ready, last_progress=begun, overdue=late
    )
    note = "ProgressDeadlineExceeded" if late and not progress.overdue else ""
    return RolloutMove(waiting, note=note)


def moved(progress: RolloutProgress, now: datetime) -> RolloutProgress:
    """Return a progress whose deadline starts again."""
    return replace(progress, last_progress=now, ready_since=None, overdue=False, waiting_for=())


def _step_begun(progress: RolloutProgress, now: datetime) -> RolloutProgress:
    """Return the progress with the time at which the step between source and target began."""
    back = progress.target < progress.source
    span = StepSpan(step=max(progress.source, progress.target), back=back, began=now)
    times = (*progress.step_times, span)
    return replace(progress, step_times=times[-MAX_STEP_TIMES:])


def _step_ended(progress: RolloutProgress, now: datetime) -> RolloutProgress:
    """Return the progress with the time at which the last step that began is over."""
    *before, last = progress.step_times or (None,)
    if last is None or last.ended is not None:
        return progress
    return replace(progress, step_times=(*before, last.model_copy(update={"ended": now})))


def _ended(progress: RolloutProgress, phase: RolloutPhase) -> RolloutProgress:
    return replace(progress, phase=phase, waiting_for=(), ready_since=None, overdue=False)
