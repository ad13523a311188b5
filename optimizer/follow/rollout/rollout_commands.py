"""What people may ask of a rollout, and what is refused because of one."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.follow.rollout.next_step import RolloutProgress, moved, turned_back
from optimizer.follow.rollout.rollout_record import RolloutRecord, progressing_condition
from optimizer.wire.request_problem import CONFLICT, NOT_FOUND, UNPROCESSABLE, RequestProblem
from optimizer.wire.rollout import ROLLOUT_IN_PROGRESS, RolloutCommand


def after_command(
    progress: RolloutProgress, command: RolloutCommand, now: datetime
) -> RolloutProgress | RequestProblem:
    """Return the progress after a command, or why it can't be done."""
    if progress.ended:
        return RequestProblem(
            status=CONFLICT,
            reason="RolloutEnded",
            title="The rollout has ended",
            detail=f"its phase is {progress.phase}; plan again, or roll back to an earlier plan",
        )
    match command:
        case "pause":
            return replace(progress, paused=True, waiting_for=(), ready_since=None, overdue=False)
        case "resume":
            return moved(replace(progress, paused=False), now) if progress.paused else progress
        case "cancel":
            return replace(progress, phase="Cancelled", paused=False, waiting_for=(), overdue=False)
        case "undo" if progress.turning_back:
            return RequestProblem(
                status=CONFLICT,
                reason="AlreadyTurningBack",
                title="The rollout is being turned back",
                detail="wait until it is at its start, and plan again",
            )
        case "undo":
            return turned_back(progress, now)


def rollout_in_progress(record: RolloutRecord) -> RequestProblem:
    """Return the problem of a write while a rollout of the same optimization goes on."""
    said = progressing_condition(record.plan, record.progress).message
    return RequestProblem(
        status=CONFLICT,
        reason=ROLLOUT_IN_PROGRESS,
        title="A rollout of this optimization is in progress",
        detail=f"PlacementPlan {record.name} is rolled out ({said}); wait until it has ended, turn"
        " it back, or cancel it where it is: dsf rollout status, undo, cancel",
    )


def rollout_on_clusters(record: RolloutRecord, clusters: Iterable[str]) -> RequestProblem:
    """Return the problem of a plan that uses clusters which another rollout is still changing."""
    return RequestProblem(
        status=CONFLICT,
        reason=ROLLOUT_IN_PROGRESS,
        title="A rollout of another optimization changes clusters of this plan",
        detail=f"PlacementPlan {record.name} of optimization {UntrustedName(record.optimization)}"
        f" is rolled out on {listed(clusters)}; plan again when it has ended",
    )


NEEDS_OWN_RIGHTS = RequestProblem(
    status=UNPROCESSABLE,
    reason="StepwiseNeedsOwnRights",
    title="This server can't roll out step by step",
    detail="it writes as its callers (impersonation), and nobody calls when a later step is"
    " due; ask for rollout AllAtOnce",
)
"""The problem of a Stepwise rollout where writes are made with the caller's rights."""


def needs_record(why: str) -> RequestProblem:
    """Return the problem of a Stepwise rollout whose steps can't be kept on the hub."""
    return RequestProblem(
        status=CONFLICT,
        reason="StepwiseNeedsRecord",
        title="The steps can't be recorded",
        detail=f"nothing was written: {why}; or ask for rollout AllAtOnce",
    )


def no_record_key(why: str) -> RequestProblem:
    """Return the problem of a change of a rollout by somebody who can't sign its progress."""
    return RequestProblem(
        status=CONFLICT,
        reason="RecordNotSigned",
        title="The progress can't be signed",
        detail=f"nothing was written: {why}; ask the optimizer's service, which has the key",
    )


def not_ours(record: RolloutRecord) -> RequestProblem:
    """Return the problem of a change of a rollout that nobody makes: its record is not signed."""
    condition = progressing_condition(record.plan, record.progress)
    return RequestProblem(
        status=CONFLICT,
        reason=condition.reason,
        title="The record is not the optimizer's",
        detail=f"PlacementPlan {UntrustedName(record.name)}: {condition.message}",
    )


def no_rollout(namespace: str, optimization: str) -> RequestProblem:
    """Return the problem of a question about a rollout that never was."""
    return RequestProblem(
        status=NOT_FOUND,
        reason="NoRollout",
        title="There is no such rollout",
        detail=f"no plan of optimization {optimization} in namespace {namespace} is on record that"
        " was rolled out step by step",
    )
