"""What people may ask of a rollout, and what is refused because of one."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.follow.rollout.next_step import RolloutProgress, moved, turned_back
from optimizer.follow.rollout.rollout_record import RolloutRecord, progressing_condition
from optimizer.wire.request_problem import CONFLICT, ProblemKind, RequestProblem
from optimizer.wire.rollout import RolloutCommand, RolloutStatus


def after_command(
    progress: RolloutProgress, command: RolloutCommand, now: datetime
) -> RolloutProgress | RequestProblem:
    """Return the progress after a command, or why it can't be done."""
    if progress.ended:
        return ProblemKind.ROLLOUT_ENDED.because(
            f"its phase is {progress.phase}; plan again, or roll back to an earlier plan"
        )
    match command:
        case "pause":
            return replace(progress, paused=True, waiting_for=(), ready_since=None, overdue=False)
        case "resume":
            return moved(replace(progress, paused=False), now) if progress.paused else progress
        case "cancel":
            return replace(progress, phase="Cancelled", paused=False, waiting_for=(), overdue=False)
        case "undo" if progress.turning_back:
            return ProblemKind.ALREADY_TURNING_BACK.because(
                "wait until it is at its start, and plan again"
            )
        case "undo":
            return turned_back(progress, now)


def rollout_in_progress(record: RolloutRecord) -> RequestProblem:
    """Return the problem of a write while a rollout of the same optimization goes on."""
    said = progressing_condition(record.plan, record.progress).message
    return ProblemKind.ROLLOUT_IN_PROGRESS.because(
        f"PlacementPlan {record.name} is rolled out ({said}); wait until it has ended, turn"
        " it back, or cancel it where it is: dsf rollout status, undo, cancel"
    )


def rollout_on_clusters(record: RolloutRecord, clusters: Iterable[str]) -> RequestProblem:
    """Return the problem of a plan that uses clusters which another rollout is still changing."""
    return ProblemKind.ROLLOUT_ON_CLUSTERS.because(
        f"PlacementPlan {record.name} of optimization {UntrustedName(record.optimization)}"
        f" is rolled out on {listed(clusters)}; plan again when it has ended"
    )


NEEDS_OWN_RIGHTS = ProblemKind.STEPWISE_NEEDS_OWN_RIGHTS.because(
    "it writes as its callers (impersonation), and nobody calls when a later step is"
    " due; ask for rollout AllAtOnce"
)
"""The problem of a Stepwise rollout where writes are made with the caller's rights."""


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
    return ProblemKind.NO_ROLLOUT.because(
        f"no plan of optimization {optimization} in namespace {namespace} is on record that"
        " was rolled out step by step"
    )


def none_in_progress(namespace: str, known: Iterable[RolloutStatus]) -> RequestProblem:
    """Return the problem of a change of a rollout where none goes on; `known`: those that ended."""
    said = f"no rollout is in progress in namespace {namespace}"
    never = datetime.min.replace(tzinfo=UTC)
    last = max(known, key=lambda item: item.last_progress or never, default=None)
    if last:
        owner = f"{UntrustedName(last.record)} of optimization {UntrustedName(last.optimization)}"
        said += f"; the last one, {owner}, ended: {last.phase}"
    if last and last.last_progress:
        said += f", with its last progress at {rfc3339(last.last_progress)}"
    return ProblemKind.NO_ROLLOUT.because(said)
