"""Checks and the status of a hub as text for a terminal."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from dsf.api.plural import counted
from dsf.api.times import shown_duration
from dsf.api.untrusted_text import escaped
from dsf.cli.output import TextTable
from optimizer.hub_health.checks import HubCheck
from optimizer.hub_health.hub_status import HubStatus, NamespaceStatus

FINDINGS_SHOWN = 20
"""Things to do in one text: more than a person does before looking again."""


def checks_text(checks: Iterable[HubCheck]) -> str:
    """Return a line for each check, and the fix of what is wrong below it."""
    return "\n".join(escaped(line) for item in checks for line in _check_lines(item)) + "\n"


def _check_lines(item: HubCheck) -> Iterator[str]:
    yield f"{item.state:<10}{item.check:<19}{item.message}"
    if item.fix and item.state != "ok":
        yield f"{'':<10}{'':<19}fix: {item.fix}"


def hub_status_text(status: HubStatus, now: datetime) -> str:
    """Return what is installed, the freshness of scores, each namespace, and what to do."""
    head = (
        f"{status.server}: {status.ready_clusters} of"
        f" {counted(status.total_clusters, 'managed cluster')} ready,"
        f" {counted(len(status.scores), 'score')}"
    )
    tables = (
        TextTable(
            ("part", "state", "message"),
            [(item.check, item.state, item.message) for item in status.parts],
        ),
        TextTable(
            ("score", "scorer", "clusters", "expired on", "first expires"),
            [
                (
                    item.score,
                    item.scorer or "-",
                    str(item.clusters),
                    str(item.expired),
                    _expiry(item.valid_until, now),
                )
                for item in status.scores
            ],
        ),
        TextTable(
            ("namespace", "workloads", "placed", "landed", "waiting", "drifted"),
            [(item.namespace, *map(str, _counts(item))) for item in status.namespaces],
        ),
    )
    parts = [head, *(str(table) for table in tables if table.rows), "\n".join(_to_do(status))]
    return "\n\n".join(parts) + "\n"


def _counts(item: NamespaceStatus) -> tuple[int, ...]:
    return item.workloads, item.placed, item.landed, item.waiting, item.drifted


def _to_do(status: HubStatus) -> Iterator[str]:
    if status.healthy:
        yield "Nothing is to be done."
        return
    yield "What to do:"
    for number, item in enumerate(status.findings[:FINDINGS_SHOWN], 1):
        yield escaped(f"{number:>3}. {item.about}: {item.message}")
        yield escaped(f"     {item.next}")
    left = len(status.findings) - FINDINGS_SHOWN
    if left > 0:
        yield f"     and {left} more: dsf status -o json"


def _expiry(until: datetime | None, now: datetime) -> str:
    if until is None:
        return "never"
    left = (until - now).total_seconds()
    return f"in {shown_duration(left)}" if left > 0 else f"{shown_duration(-left)} ago"
