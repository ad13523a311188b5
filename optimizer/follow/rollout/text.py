"""A rollout in words: a headline and tables for a terminal, and Kubernetes Events."""

from collections.abc import Iterator
from typing import Literal

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName, listed
from dsf.cli.output import TextTable
from optimizer.follow.rollout.next_step import RolloutMove
from optimizer.follow.rollout.rollout_record import RolloutRecord, progressing_condition, step_words
from optimizer.wire.rollout import RolloutStatus


def rollout_headline(status: RolloutStatus) -> str:
    """Return where a rollout is, in one sentence."""
    whose = f"optimization {UntrustedName(status.optimization)}"
    return f"Rollout of {status.record} ({whose}): {status.reason}: {status.message}"


def rollout_tables(status: RolloutStatus) -> str:
    """Return the headline, the steps, and what the present step waits for."""
    waits = [
        (f"{item.reason}", rfc3339(item.since) if item.since else "-", item.message)
        for item in status.waiting_for
    ]
    tables = (
        TextTable(("step", "state", "does", "uncovered"), list(_steps(status))),
        TextTable(("reason", "since", "message"), waits, "Waits for"),
    )
    parts = [rollout_headline(status), *(str(table) for table in tables if table.rows)]
    return "\n\n".join(parts) + "\n"


def _steps(status: RolloutStatus) -> Iterator[tuple[str, str, str, str]]:
    for number, step in enumerate(status.steps, start=1):
        others = (name for i in step.uncovers_others for name in i.workloads or ("others",))
        names = listed((*step.uncovered, *others))
        yield str(number), _state(status, number), step_words(step), names or "-"


def _state(status: RolloutStatus, number: int) -> str:
    if number < status.step or (number == status.step and status.phase == "Complete"):
        return "done"
    if number > status.step or status.phase == "TurnedBack":
        return "turned back" if status.turning_back else "to do"
    if status.ended:
        return "cancelled"
    return "turning back" if status.turning_back else "in progress"


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
