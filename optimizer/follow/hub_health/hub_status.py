"""The whole hub on one screen: what is installed, healthy, stale and waiting, and what to do."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from pydantic import Field

from dsf.api.times import read_time, rfc3339, shown_expiry
from dsf.api.untrusted_text import UntrustedName, counted, escaped, joined
from dsf.cli.output import TextTable
from optimizer.follow.hub_health.hub_installation import HubInstallation
from optimizer.follow.hub_health.judgement import HubCheck
from optimizer.follow.overview.capacity import (
    FleetCapacity,
    ResourceCapacity,
    fleet_capacity,
    largest_first,
    shown_amount,
)
from optimizer.follow.overview.findings.cluster_findings import DRAINED
from optimizer.follow.overview.findings.finding import MAX_NAMED
from optimizer.follow.overview.findings.fleet_findings import findings
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.score_overview import score_overviews
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.placement_optimization import KeptOptimization

_HUB_STAGES = frozenset({"scorer", "score", "cluster"})
"""Stages of findings that are about the hub, and not about one namespace."""


class ScoreFreshness(ResultPart):
    """A score: how many managed clusters have it, on how many it expired, and when it expires."""

    score: Name
    scorer: Name
    clusters: int
    expired: int
    valid_until: datetime | None = Field(description="Of the first; null: never.")


class NamespaceStatus(ResultPart):
    """A namespace with workloads: how many are placed, have landed, wait and drifted."""

    namespace: Name
    workloads: int
    placed: int
    landed: int
    waiting: int
    drifted: int


class HubFinding(ResultPart):
    """Something to do: what it is about, what is wrong, since when, and the next step."""

    about: Sentence
    message: Sentence
    next: Sentence
    since: datetime | None = None


class HubStatus(ResultPart):
    """A hub on one screen. `healthy`: nothing is to be done."""

    server: Sentence
    ready_clusters: int
    total_clusters: int
    drained: dict[Name, Sentence] = Field(description="Until when, by cluster.")
    parts: tuple[HubCheck, ...]
    scores: tuple[ScoreFreshness, ...]
    capacity: FleetCapacity
    namespaces: tuple[NamespaceStatus, ...]
    kept: tuple[KeptOptimization, ...]
    findings: tuple[HubFinding, ...]
    healthy: bool


def hub_status(
    installed: HubInstallation, checks: Sequence[HubCheck], fleets: Sequence[FleetFacts]
) -> HubStatus:
    """Return the status of a hub; the first of the fleets is that of no namespace."""
    hub, *namespaces = fleets
    found = tuple(_findings(checks, hub, namespaces))
    scores = score_overviews(hub.scores, hub.scorers, shown=1)
    return HubStatus(
        server=installed.server,
        ready_clusters=len(hub.hub.clusters) - len(hub.faults),
        total_clusters=len(hub.hub.clusters),
        drained=dict(sorted(hub.drained.items())),
        parts=tuple(checks),
        scores=tuple(ScoreFreshness(**{**dict(item), "score": item.name}) for item in scores),
        capacity=_capacity(hub),
        namespaces=tuple(map(_namespace_status, namespaces)),
        kept=installed.kept,
        findings=found,
        healthy=not found,
    )


def _capacity(hub: FleetFacts) -> FleetCapacity:
    every = largest_first(hub.capacity.values())
    return fleet_capacity(every, every, without=hub.without_inventory)


def _namespace_status(facts: FleetFacts) -> NamespaceStatus:
    rows = facts.status.workloads
    landed = sum(item.state == "Landed" for item in rows)
    placed = {item.workload for item in rows}
    return NamespaceStatus(
        namespace=facts.namespace,
        workloads=len(facts.workloads),
        placed=len(placed & facts.workloads.keys()),
        landed=landed,
        waiting=len(rows) - landed,
        drifted=len(facts.status.drift),
    )


def _findings(
    checks: Iterable[HubCheck], hub: FleetFacts, namespaces: Iterable[FleetFacts]
) -> Iterator[HubFinding]:
    """Yield what is wrong with the installation, with the hub, and with each namespace."""
    for check in checks:
        if check.state in ("failed", "warning"):
            yield HubFinding(about=check.check, message=check.message, next=check.fix)
    for facts in (hub, *namespaces):
        where = "" if facts is hub else f" of namespace {UntrustedName(facts.namespace)}"
        for item in findings(facts):
            if (item.stage in _HUB_STAGES) == (facts is hub) and item.reason != DRAINED:
                about = f"{item.stage} {UntrustedName(item.name)}{where}"
                yield HubFinding(**{**dict(item), "about": about})


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
    if status.drained:
        drains = (f"{UntrustedName(name)} {until}" for name, until in status.drained.items())
        head += f"; drained: {joined(drains, MAX_NAMED)}"
    if status.capacity.not_counted:
        head += f"; not in the sums of capacity: {status.capacity.not_counted}"
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
                    shown_expiry(item.valid_until, now),
                )
                for item in status.scores
            ],
        ),
        _capacity_table(status, now),
        TextTable(
            tuple(NamespaceStatus.model_fields),
            [tuple(map(str, dict(item).values())) for item in status.namespaces],
        ),
        TextTable(
            ("kept", "mode", "state", "gain on offer", "moves left", "next look", "last change"),
            [tuple(_kept_cells(item, now)) for item in status.kept],
        ),
    )
    parts = [head, *(str(table) for table in tables if table.rows), "\n".join(_to_do(status))]
    return "\n\n".join(parts) + "\n"


CAPACITIES_SHOWN = 20
"""Rows of one table of capacity: what a screen holds."""


def _capacity_table(status: HubStatus, now: datetime) -> TextTable:
    """Return what is reserved and free in the fleet, then on clusters, the largest free first."""
    every = list[tuple[str, ResourceCapacity, str]]()
    every += [("all", item, "-") for item in status.capacity.resources]
    for cluster in status.capacity.clusters:
        age = shown_expiry(cluster.observed, now) if cluster.observed else "unknown"
        seen = age if cluster.current else f"{age} (expired)"
        every += [(cluster.cluster, item, seen) for item in cluster.resources]
    left = len(every) - CAPACITIES_SHOWN
    rows = [tuple(_capacity_cells(*row)) for row in every[:CAPACITIES_SHOWN]]
    more = [(f"and {left} more rows: dsf status -o json", *[""] * 10)] if left > 0 else []
    columns = "capacity", "resource", "model", "all", "ours", "others", "free", "on one node"
    return TextTable((*columns, "unavailable", "idle hours a day", "seen"), [*rows, *more])


def _capacity_cells(cluster: str, item: ResourceCapacity, seen: str) -> Iterator[str]:
    yield from (cluster, item.resource, item.model or "-")
    for amount in (
        item.capacity,
        item.ours,
        item.others,
        item.free,
        item.largest_free,
        item.unavailable,
    ):
        yield shown_amount(item.resource, amount)
    yield "-" if item.idle is None else f"{item.idle:g}"
    yield seen


def _kept_cells(item: KeptOptimization, now: datetime) -> Iterator[str]:
    wrong = item.wrong.partition(":")[0]
    state = f"{item.reason}, {wrong}" if wrong not in ("", item.reason) else item.reason
    yield from (f"{item.namespace}/{item.name}", item.mode, state)
    gain, left, look = item.status.gain, item.status.moves_left, read_time(item.status.next_look)
    yield "-" if gain is None else f"{gain:g}"
    yield "any" if left is None else str(left)
    yield shown_expiry(look, now) if look else "at a change"
    yield shown_expiry(read_time(item.status.last_change), now)


def _to_do(status: HubStatus) -> Iterator[str]:
    if status.healthy:
        yield "Nothing is to be done."
        return
    yield "What to do:"
    for number, item in enumerate(status.findings[:FINDINGS_SHOWN], 1):
        since = f" (since {rfc3339(item.since)})" if item.since else ""
        yield escaped(f"{number:>3}. {item.about}: {item.message}{since}")
        yield escaped(f"     {item.next}")
    left = len(status.findings) - FINDINGS_SHOWN
    if left > 0:
        yield f"     and {left} more: dsf status -o json"
