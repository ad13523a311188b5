"""Scorers that fail, and scores that have expired or are missing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dsf.api.names import AGENT_NAMESPACE
from dsf.api.untrusted_text import UntrustedName, counted, listed
from dsf.placement import Obstacle
from optimizer.domain.arrays import members_by_key
from optimizer.follow.overview.findings.cluster_findings import fault_of
from optimizer.follow.overview.findings.finding import (
    MAX_NAMED,
    FleetFinding,
    Found,
    Severity,
    by_cause,
    finding,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.score_overview import (
    NO_SCORES,
    ClusterScores,
    ScorerFailure,
    ScorerOverview,
)

_UNAUTHORIZED = "Unauthorized"
"""The reason with which an agent reports that a scoring API answered 401 or 403."""


SCORE_EXPIRED = "ScoreExpired"
"""The reason of a score that nobody renews, here and in the status of a DynamicScorer."""


def scorer_findings(scorers: Iterable[ScorerOverview]) -> tuple[FleetFinding, ...]:
    """Return the findings about scorers that do not work wherever they should."""
    return tuple(by_cause(of_scorers(scorers, {})))


def of_scorers(
    scorers: Iterable[ScorerOverview],
    faults: Mapping[str, Obstacle],
    scores: ClusterScores = NO_SCORES,
) -> Iterator[Found]:
    """Yield a finding for each reason for which a scorer fails, with that reason.

    Where a score has expired is left out: the finding about the score says it.
    """
    for item in scorers:
        expired = {row.cluster for row in scores.get(item.score, ()) if row.expired}
        failing = members_by_key(
            (failed.reason, failed)
            for failed in item.failing
            if failed.reason != SCORE_EXPIRED or failed.cluster not in expired
        )
        if item.ready or (item.failing and not failing):
            continue
        severity: Severity = "warning" if item.clusters.get("scoring") else "error"
        for reason, failed in failing.items() or ((item.reason, ()),):
            clusters = tuple(one.cluster for one in failed)
            said, why = _scorer_message(item, failed), fault_of(clusters, faults)
            since = min(filter(None, (one.since for one in failed)), default=item.since)
            remedy = scorer_remedy(item, reason)
            found = finding(
                "scorer",
                item.name,
                reason,
                said,
                remedy,
                severity,
                since=since,
                cause=why,
                clusters=clusters,
            )
            yield found, (clusters or item.message, item.health)


def _scorer_message(item: ScorerOverview, failed: Sequence[ScorerFailure]) -> str:
    said = f"scorer {item.name} is {item.health} and {item.reach}"
    if failed:
        least = "at least " if item.clusters.get("failing", 0) > len(item.failing) else ""
        names = listed((one.cluster for one in failed), MAX_NAMED)
        where = f"{least}{counted(len(failed), 'cluster')} ({names})"
        # It quotes the source, whose quotes would show as escapes between these.
        why = failed[0].message.replace('\\"', "'").replace('"', "'")
        return f"{said}; it fails on {where}: {failed[0].reason}: {why}"
    return f"{said}: {item.message}" if item.message else said


def scorer_remedy(item: ScorerOverview, reason: str = "") -> str:
    """Return the next step to make a DynamicScorer work; `reason`: why it fails on clusters."""
    describe = f"`kubectl describe dynamicscorer {item.name} -n {item.namespace}`"
    if (reason or (item.failing and item.failing[0].reason)) == _UNAUTHORIZED:
        return (
            f"{describe} says which Secret its auth names: renew the token in it in namespace"
            f" {AGENT_NAMESPACE} of that cluster; without auth, add it"
        )
    if item.failing:
        return f"do what the message says; {describe} lists all clusters where it fails"
    if item.health == "Inactive":
        return "make the scoring API answer at its /healthz; `dsf scorer check URL` says what fails"
    return f"mend what the message says; {describe} has the conditions of its registration"


def of_scores(facts: FleetFacts) -> Iterator[Found]:
    """Yield where a score has expired or is missing, unless its scorer says why it is missing."""
    expected = _scored_clusters(facts)
    for name, rows in sorted(facts.scores.items()):
        ended = {item.cluster: item.valid_until for item in rows if item.expired}
        expired = list(ended)
        scorer = facts.scorer_of(name)
        told = {failed.cluster for failed in scorer.failing} if scorer else set[str]()
        empty = [
            item.cluster
            for item in rows
            if not (item.entries or item.expired or item.cluster in told)
        ]
        asked = facts.asked_scores is None or name in facts.asked_scores
        missing = sorted(expected - {item.cluster for item in rows} - told) if asked else []
        remedy = (
            f"`kubectl describe dynamicscorer {scorer.name} -n {scorer.namespace}`"
            if scorer
            else "no DynamicScorer fills it: find out who writes it"
        )
        wrong: tuple[tuple[str, Severity, str, list[str]], ...] = (
            (SCORE_EXPIRED, "error", "has expired on", expired),
            ("NoEntries", "warning", "has no entries on", empty),
            ("ScoreMissing", "warning", "does not exist on", missing),
        )
        for reason, severity, says, clusters in wrong:
            if clusters:
                where = f"{counted(len(clusters), 'cluster')}: {listed(clusters, MAX_NAMED)}"
                said = f"score {UntrustedName(name)} {says} {where}"
                since = min(filter(None, map(ended.get, clusters)), default=None)
                cause = fault_of(clusters, facts.faults)
                found = finding(
                    "score",
                    name,
                    reason,
                    said,
                    remedy,
                    severity,
                    since=since,
                    cause=cause,
                    clusters=clusters,
                )
                yield found, tuple(clusters)


def _scored_clusters(facts: FleetFacts) -> set[str]:
    """Return the managed clusters that have any score, and so should have each."""
    known = {row.cluster for found in facts.scores.values() for row in found}
    return known & facts.hub.clusters.keys()
