"""A placement status as tables for a terminal."""

from datetime import datetime

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, escaped, listed
from dsf.cli.output import TextTable
from optimizer.wire.placement_status import PlacementStatus


def placed_sentence(namespace: str, optimization: str | None, landed: int, placed: int) -> str:
    """Return how many of the placements of a namespace, or of one optimization, have landed."""
    where = f"in namespace {UntrustedName(namespace)}"
    whose = f"optimization {UntrustedName(optimization)}" if optimization else ""
    if not placed:
        return f"Nothing is placed {f'for {whose} ' if whose else ''}{where}."
    return f"{landed} of {placed} placements {f'of {whose} ' if whose else ''}{where} have landed."


def status_tables(status: PlacementStatus, optimization: str | None = None) -> str:
    """Return a headline, and tables of workloads, policies, drift and failures.

    `optimization`: the one whose status it is; None: that of all of the namespace.
    """
    landed = sum(item.state == "Landed" for item in status.workloads)
    head = placed_sentence(status.namespace, optimization, landed, len(status.workloads))
    landings = [
        (
            f"{item.workload}",
            f"{item.cluster}",
            item.state,
            f"{item.reason}",
            _time(item.since),
            item.message,
        )
        for item in status.workloads
    ]
    policies = [
        (f"{item.cluster}", f"{item.policy}", f"{item.compliance}" or "-", f"{item.claim}" or "-")
        for item in status.policies
    ]
    drifts = [
        (item.reason, f"{item.kind} {item.name}", item.message, item.next) for item in status.drift
    ]
    failures = [
        (f"{item.optimization}", str(item.revision), f"{item.cause}", item.message)
        for item in status.solver_failures
    ]
    tables = (
        TextTable(("workload", "cluster", "state", "reason", "since", "message"), landings),
        TextTable(("cluster", "policy", "compliance", "claim"), policies, "Policies"),
        TextTable(("reason", "object", "message", "next"), drifts, "Drift"),
        TextTable(("plan", "revision", "reason", "message"), failures, "The solver failed"),
    )
    parts = [head, *(str(table) for table in tables if table.rows)]
    parts += [escaped(f"Drift is not known: {item.message}") for item in status.not_compared]
    if status.unbound_policies:
        parts.append(f"Policies that no binding names: {listed(status.unbound_policies)}")
    return "\n\n".join(parts) + "\n"


def _time(moment: datetime | None) -> str:
    return rfc3339(moment) if moment else "-"
