"""Recorded plans as a table for a terminal."""

from collections.abc import Iterable

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName
from dsf.cli.output import TextTable
from optimizer.wire.plan_record import PlanSummary

_COLUMNS = (
    "optimization",
    "revision",
    "phase",
    "objective",
    "gap",
    "changes",
    "requested by",
    "applied",
    "digest",
    "message",
)

DIGEST_SHOWN = 12
"""Characters of a digest in a table: enough to tell plans apart."""


def plans_table(namespace: str, plans: Iterable[PlanSummary]) -> str:
    """Return the plans of a namespace as a table, and why solvers failed; or a sentence."""
    listed = list(plans)
    rows = [
        (
            f"{item.optimization}",
            f"{item.revision}",
            item.phase if item.intact else f"{item.phase} (not as it was written)",
            f"{item.objective:g}",
            "-" if item.gap is None else f"{item.gap:.2%}",
            f"+{item.created_objects} ~{item.patched_objects} -{item.deleted_objects}",
            f"{item.requested_by}" or "-",
            rfc3339(item.created) if item.created else "-",
            item.digest[:DIGEST_SHOWN],
            item.message,
        )
        for item in listed
    ]
    if not rows:
        return f"No plan is recorded in namespace {UntrustedName(namespace)}.\n"
    failures = [
        f"{item.optimization} {item.revision}: {item.solver_failure}\n"
        for item in listed
        if item.solver_failure
    ]
    return f"{TextTable(_COLUMNS, rows)}\n{''.join(failures)}"
