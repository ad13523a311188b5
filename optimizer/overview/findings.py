"""What is broken on the way from a scorer to a workload that has landed, and what to do next."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field

from dsf.api.plural import counted
from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.overview.fleet_facts import FleetFacts
from optimizer.overview.scorer_overview import ScorerOverview
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.placement_status import PlacementDrift, WorkloadLanding

Stage = Literal["scorer", "score", "cluster", "workload", "generated object"]

Severity = Literal["error", "warning", "info"]

MAX_NAMED = 5
"""Managed clusters that one sentence names."""

_NEXT_FOR_STATE = {
    "WaitingForPolicy": "look at the policy's status on the cluster: what does it report?",
    "WaitingForClaim": "wait for the policy watcher's stable window; if it lasts, look at the"
    " policy watcher of the cluster",
    "Planned": "wait; if it lasts, look at OCM's placement controller and at the ManifestWorks",
    "Refused": "mend what the message names, or plan again without it",
}


class FleetFinding(ResultPart):
    """Something that is broken or missing, and the next step."""

    stage: Annotated[Stage, Field(description="Where on the way from scorer to workload.")]
    name: Name
    reason: Name
    message: Sentence
    next: Sentence
    severity: Annotated[
        Severity,
        Field(description="warning: a part is missing. info: OCM is at work. Else error."),
    ] = "error"


def findings(facts: FleetFacts) -> tuple[FleetFinding, ...]:
    """Return what is wrong, in the order of the way: scorers first, drift last."""
    return (
        *_of_scorers(facts),
        *_of_scores(facts),
        *_of_clusters(facts),
        *map(_of_landing, (item for item in facts.status.workloads if item.state != "Landed")),
        *map(_of_drift, facts.status.drift),
    )


def findings_about(found: Iterable[FleetFinding], names: Iterable[str]) -> tuple[FleetFinding, ...]:
    """Return the findings that are about one of these objects."""
    wanted = frozenset(names)
    return tuple(item for item in found if item.name in wanted)


def _of_scorers(facts: FleetFacts) -> Iterator[FleetFinding]:
    for item in facts.scorers:
        if not item.ready:
            yield FleetFinding(
                stage="scorer",
                name=item.name,
                reason=item.reason,
                message=_scorer_message(item),
                next=scorer_remedy(item),
                severity="warning" if item.clusters.get("scoring") else "error",
            )


def _scorer_message(item: ScorerOverview) -> str:
    counts = item.clusters
    said = f"scorer {item.name} is {item.health}"
    if counts:
        said += f" and scores on {counts.get('scoring', 0)} of {counts.get('desired', 0)} clusters"
    first = item.failing[0] if item.failing else None
    if first:
        return f"{said}; first failing: {first.cluster}: {first.reason}: {first.message}"
    return f"{said}: {item.message}" if item.message else said


def scorer_remedy(item: ScorerOverview) -> str:
    """Return the next step to make a DynamicScorer work."""
    if item.failing:
        return f"look up {item.failing[0].reason} in docs/how-to/troubleshooting-clusters.md"
    if item.health == "Inactive":
        return "make the scoring API answer at its /healthz; `dsf scorer check URL` says what fails"
    return f"look up {item.reason} in docs/how-to/troubleshooting-distribution.md"


def _of_scores(facts: FleetFacts) -> Iterator[FleetFinding]:
    expected = _scored_clusters(facts)
    for name, rows in sorted(facts.scores.items()):
        expired = [item.cluster for item in rows if item.expired]
        if expired:
            yield _score_finding(
                name, "ScoreExpired", f"has expired on {_clusters(expired)}", facts
            )
        empty = [item.cluster for item in rows if not item.entries and not item.expired]
        if empty:
            yield _score_finding(name, "NoEntries", f"has no entries on {_clusters(empty)}", facts)
        missing = sorted(expected - {item.cluster for item in rows})
        if missing:
            yield _score_finding(
                name, "ScoreMissing", f"does not exist on {_clusters(missing)}", facts
            )


def _scored_clusters(facts: FleetFacts) -> set[str]:
    """Return the managed clusters that have any score, and so should have each."""
    known = {row.cluster for found in facts.scores.values() for row in found}
    return known & facts.hub.clusters.keys()


def _score_finding(name: str, reason: str, message: str, facts: FleetFacts) -> FleetFinding:
    scorer = facts.scorer_of(name)
    remedy = (
        f"see what is said of scorer {scorer.name}: kubectl describe dynamicscorer {scorer.name}"
        if scorer
        else "no DynamicScorer fills it: find out who writes it"
    )
    return FleetFinding(
        stage="score",
        name=name,
        reason=reason,
        message=f"score {UntrustedName(name)} {message}",
        next=remedy,
        severity="error" if reason == "ScoreExpired" else "warning",
    )


def _of_clusters(facts: FleetFacts) -> Iterator[FleetFinding]:
    for name, fault in sorted(facts.faults.items()):
        yield FleetFinding(
            stage="cluster",
            name=name,
            reason=fault.reason,
            message=fault.message,
            next="do what the message says, or plan without the cluster",
        )


def _of_landing(item: WorkloadLanding) -> FleetFinding:
    return FleetFinding(
        stage="workload",
        name=item.workload,
        reason=item.reason or item.state,
        message=f"{item.workload} on {item.cluster}: {item.state}: {item.message}",
        next=_NEXT_FOR_STATE[item.state],
        severity="error" if item.state == "Refused" else "info",
    )


def _of_drift(item: PlacementDrift) -> FleetFinding:
    return FleetFinding(
        stage="generated object",
        name=item.name,
        reason=item.reason,
        message=f"{item.kind} {item.name}: {item.message}",
        next="plan again and apply: a plan restores what was edited",
    )


def _clusters(names: list[str]) -> str:
    left = len(names) - MAX_NAMED
    more = f" and {left} more" if left > 0 else ""
    return f"{counted(len(names), 'cluster')}: {listed(names[:MAX_NAMED])}{more}"
