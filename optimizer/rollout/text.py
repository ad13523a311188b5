"""A rollout as a table for a terminal."""

from collections.abc import Iterator

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.cli.output import TextTable
from optimizer.rollout.rollout_record import step_words
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
