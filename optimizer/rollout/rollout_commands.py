"""What people may ask of a rollout: pause, resume, undo, cancel; or why it can't be done."""

from collections.abc import Callable, Mapping
from datetime import datetime

from optimizer.rollout.next_step import (
    RolloutProgress,
    cancelled,
    paused,
    resumed,
    turned_back,
)
from optimizer.wire.request_problem import CONFLICT, RequestProblem
from optimizer.wire.rollout import RolloutCommand


def pause(progress: RolloutProgress, _: datetime) -> RolloutProgress | RequestProblem:
    """Return the progress after a pause."""
    return _ended(progress) or paused(progress)


def resume(progress: RolloutProgress, now: datetime) -> RolloutProgress | RequestProblem:
    """Return the progress after a pause has ended."""
    refused = _ended(progress)
    if refused:
        return refused
    return resumed(progress, now) if progress.paused else progress


def undo(progress: RolloutProgress, now: datetime) -> RolloutProgress | RequestProblem:
    """Return the progress of a rollout that is turned back."""
    refused = _ended(progress)
    if refused:
        return refused
    if progress.turning_back:
        return RequestProblem(
            status=CONFLICT,
            reason="AlreadyTurningBack",
            title="The rollout is being turned back",
            detail="wait until it is at its start, and plan again",
        )
    return turned_back(progress, now)


def cancel(progress: RolloutProgress, _: datetime) -> RolloutProgress | RequestProblem:
    """Return the progress of a rollout that ends where it is."""
    return _ended(progress) or cancelled(progress)


COMMANDS: Mapping[
    RolloutCommand, Callable[[RolloutProgress, datetime], RolloutProgress | RequestProblem]
] = {"pause": pause, "resume": resume, "undo": undo, "cancel": cancel}
"""The progress after each command, or why it can't be done."""


def _ended(progress: RolloutProgress) -> RequestProblem | None:
    if not progress.ended:
        return None
    return RequestProblem(
        status=CONFLICT,
        reason="RolloutEnded",
        title="The rollout has ended",
        detail=f"its phase is {progress.phase}; plan again, or roll back to an earlier plan",
    )
