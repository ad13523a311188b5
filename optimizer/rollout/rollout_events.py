"""The Kubernetes Events of a rollout: one for each step that begins or ends."""

from typing import Literal

from dsf.api.invalid_input import InvalidInput
from optimizer.rollout.next_step import RolloutMove
from optimizer.rollout.rollout_record import RolloutRecord, progressing_condition

RolloutEvent = tuple[Literal["Normal", "Warning"], str, str]
"""Type, reason and message."""

_WARNINGS = frozenset({"ProgressDeadlineExceeded", "PositionCorrected", "Restored"})

_SAID = {
    "PositionCorrected": "the recorded position was not where the objects are; corrected: ",
    "Restored": "generated objects were edited by hand and are restored: ",
}


def rollout_event(record: RolloutRecord, move: RolloutMove) -> RolloutEvent | None:
    """Return the event of a move; None for one that people need not see."""
    if not move.note or isinstance(record.plan, InvalidInput):
        return None
    message = progressing_condition(record.plan, move.progress).message
    kind: Literal["Normal", "Warning"] = "Warning" if move.note in _WARNINGS else "Normal"
    return kind, move.note, _SAID.get(move.note, "") + message
