"""A placement status as tables for a terminal, and as sentences."""

from collections.abc import Iterable
from datetime import datetime

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, escaped, listed
from dsf.cli.output import TextTable
from optimizer.wire.placement_status import PlacementStatus


def status_headline(status: PlacementStatus) -> str:
    """Return how many workloads have landed, in one sentence."""
    done = sum(item.state == "Landed" for item in status.workloads)
    return placed_sentence(status.namespace, done, len(status.workloads))


def placed_sentence(namespace: str, landed: int, placed: int) -> str:
    """Return how many of the placements of a namespace have landed."""
    where = f"in namespace {UntrustedName(namespace)}"
    if not placed:
        return f"Nothing is placed {where}."
    return f"{landed} of {placed} placements {where} have landed."


def status_sentences(status: PlacementStatus) -> Iterable[str]:
    """Yield a sentence for each workload on a cluster, each bound policy, drift and failure."""
    for item in status.workloads:
        time = f" since {rfc3339(item.since)}" if item.since else ""
        yield (
            f"{item.workload} on {item.cluster}: {item.state} ({item.reason}{time}): {item.message}"
        )
    for bound in status.policies:
        yield (
            f"policy {bound.policy} on {bound.cluster}: {bound.compliance or 'no report'},"
            f" claim {bound.claim or 'missing'}"
        )
    for drift in status.drift:
        yield (
            f"Drift {drift.reason}: {drift.kind} {drift.name}: {drift.message}; next: {drift.next}"
        )
    yield from (item.message for item in status.not_compared)
    for failed in status.solver_failures:
        yield f"Plan {failed.optimization} {failed.revision}: {failed.message}"


def status_tables(status: PlacementStatus) -> str:
    """Return the headline, and tables of workloads, policies, drift and failures."""
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
    parts = [status_headline(status), *(str(table) for table in tables if table.rows)]
    parts += [escaped(f"Drift is not known: {item.message}") for item in status.not_compared]
    if status.unbound_policies:
        parts.append(f"Policies that no binding names: {listed(status.unbound_policies)}")
    return "\n\n".join(parts) + "\n"


def _time(moment: datetime | None) -> str:
    return rfc3339(moment) if moment else "-"
