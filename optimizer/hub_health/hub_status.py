"""The whole hub on one screen: what is installed, healthy, stale and waiting, and what to do."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from dsf.api.untrusted_text import UntrustedName
from optimizer.hub_health.checks import HubCheck
from optimizer.overview.findings import FleetFinding, findings
from optimizer.overview.fleet_facts import FleetFacts
from optimizer.overview.score_overview import ScoreOverview, score_overviews
from optimizer.wire.base import Name, ResultPart, Sentence

_HUB_STAGES = frozenset({"scorer", "score", "cluster"})
"""Stages of findings that are about the hub, and not about one namespace."""


class ScoreFreshness(ResultPart):
    """A score: how many managed clusters have it, on how many it expired, and when it expires."""

    score: Name
    scorer: Name
    clusters: int
    expired: int
    valid_until: Annotated[datetime | None, Field(description="Of the first; null: never.")]


class NamespaceStatus(ResultPart):
    """A namespace with workloads: how many are placed, have landed, wait and drifted."""

    namespace: Name
    workloads: int
    placed: int
    landed: int
    waiting: int
    drifted: int


class HubFinding(ResultPart):
    """Something to do: what it is about, what is wrong, and the next step."""

    about: Sentence
    message: Sentence
    next: Sentence


class HubStatus(ResultPart):
    """A hub on one screen. `healthy`: nothing is to be done."""

    server: Sentence
    ready_clusters: int
    total_clusters: int
    parts: tuple[HubCheck, ...]
    scores: tuple[ScoreFreshness, ...]
    namespaces: tuple[NamespaceStatus, ...]
    findings: tuple[HubFinding, ...]
    healthy: bool


def hub_status(server: str, checks: Sequence[HubCheck], fleets: Sequence[FleetFacts]) -> HubStatus:
    """Return the status of a hub; the first of the fleets is that of no namespace."""
    hub, *namespaces = fleets
    found = (*_of_checks(checks), *_of_hub(hub), *_of_namespaces(namespaces))
    return HubStatus(
        server=server,
        ready_clusters=len(hub.hub.clusters) - len(hub.faults),
        total_clusters=len(hub.hub.clusters),
        parts=tuple(checks),
        scores=tuple(map(_freshness, score_overviews(hub.scores, hub.scorers, shown=1))),
        namespaces=tuple(map(_namespace_status, namespaces)),
        findings=found,
        healthy=not found,
    )


def _freshness(score: ScoreOverview) -> ScoreFreshness:
    return ScoreFreshness(
        score=score.name,
        scorer=score.scorer,
        clusters=score.clusters,
        expired=score.expired,
        valid_until=score.valid_until,
    )


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


def _of_checks(checks: Iterable[HubCheck]) -> Iterator[HubFinding]:
    for item in checks:
        if item.state in ("failed", "warning"):
            yield HubFinding(about=item.check, message=item.message, next=item.fix)


def _of_hub(hub: FleetFacts) -> Iterator[HubFinding]:
    yield from (_finding(item) for item in findings(hub) if item.stage in _HUB_STAGES)


def _of_namespaces(fleets: Iterable[FleetFacts]) -> Iterator[HubFinding]:
    for facts in fleets:
        where = UntrustedName(facts.namespace)
        for item in findings(facts):
            if item.stage not in _HUB_STAGES:
                yield _finding(item, f" of namespace {where}")


def _finding(item: FleetFinding, where: str = "") -> HubFinding:
    about = f"{item.stage} {UntrustedName(item.name)}{where}"
    return HubFinding(about=about, message=item.message, next=item.next)
