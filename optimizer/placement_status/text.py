"""A placement status as tables for a terminal, and as sentences."""

from collections.abc import Iterable
from datetime import datetime

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.cli.text_table import TextTable
from optimizer.wire.placement_status import PlacementStatus


def status_headline(status: PlacementStatus) -> str:
    """Return how many workloads have landed, in one sentence."""
    rows, namespace = status.workloads, UntrustedName(status.namespace)
    if not rows:
        return f"Nothing is placed in namespace {namespace}."
    done = sum(item.state == "Landed" for item in rows)
    return f"{done} of {len(rows)} placements in namespace {namespace} have landed."


def status_sentences(status: PlacementStatus) -> Iterable[str]:
    """Yield a sentence for each workload on a cluster, each bound policy and each drift."""
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
        yield f"Drift {drift.reason}: {drift.kind} {drift.name}: {drift.message}"


def status_tables(status: PlacementStatus) -> str:
    """Return the headline, and tables of workloads, policies and drift."""
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
    drifts = [(item.reason, f"{item.kind} {item.name}", item.message) for item in status.drift]
    tables = (
        TextTable(("workload", "cluster", "state", "reason", "since", "message"), landings),
        TextTable(("cluster", "policy", "compliance", "claim"), policies, "Policies"),
        TextTable(("reason", "object", "message"), drifts, "Drift"),
    )
    parts = [status_headline(status), *(str(table) for table in tables if table.rows)]
    if status.unbound_policies:
        parts.append(f"Policies that no binding names: {listed(status.unbound_policies)}")
    return "\n\n".join(parts) + "\n"


def _time(moment: datetime | None) -> str:
    return rfc3339(moment) if moment else "-"
