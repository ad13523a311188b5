"""Conditions of a DynamicScorer that follow from what agents report and what scorers declare."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import isfinite
from urllib.parse import urlsplit

from dsf.api.conditions import Condition
from dsf.api.crd.score_meaning import ScoreRange, in_words, normalized_ends
from dsf.api.crd.score_rules import HIGHEST, LOWEST, Normalize, published_value
from dsf.api.scoring.score_conditions import (
    BETTER,
    INSUFFICIENT,
    NO_BETTER,
    TRUSTED,
    Adjustments,
    Rule,
)
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput, UntrustedName, counted
from dsf.hub.assess.config_resolution import Resolved
from dsf.hub.assess.scorer_assessment import AGENTS_FAIL, ScorerAssessment, ScorerHealth
from dsf.hub.distribute.audience import ClusterShare
from dsf.hub.report.config_status import SHOWN_ITEMS, first_items
from dsf.hub.report.scorer_counts import ScorerCounts

_REASONS: Mapping[str, str] = {
    "AllDropped": "no result became an entry: return finite numbers",
    "EntriesMerged": "results with the same entry name are dropped but the first: choose a"
    " scoreDimensionFormat of labels that tell results apart, and return these labels",
    "AllClamped": "no score is within OCM's range: set scoring.normalize",
    "LabelsMissing": "return the labels that scoreDimensionFormat names, or name others there",
    "ResultsDropped": "some results are not published: return finite numbers, or fewer results",
    "ScoresClamped": "some scores are outside OCM's range: set scoring.normalize",
    "OutsideDeclaredRange": "correct range, or the scores",
    "LabelsCut": "return shorter labels",
}
"""The reasons, the gravest first, each with what to do."""

_OF_RULES: Mapping[Rule, str] = {
    "Duplicate": "EntriesMerged",
    "MissingLabel": "LabelsMissing",
    "NotFinite": "ResultsDropped",
    "SeriesLimit": "ResultsDropped",
    "EntryCut": "ResultsDropped",
    "OutOfRange": "ScoresClamped",
    "OutsideDeclaredRange": "OutsideDeclaredRange",
    "LabelCut": "LabelsCut",
}
_GRAVITY = {reason: rank for rank, reason in enumerate(_REASONS)}


def adjusted_condition(counts: ScorerCounts) -> Condition:
    """Return the condition ScoresAdjusted; True if results were dropped, merged or clamped.

    Its message has the counts of the managed clusters that are worst off.
    """
    if not counts.adjusted:
        message = "agents publish every result as it is"
        return Condition("ScoresAdjusted", "False", "NothingAdjusted", message)
    reasons = {cluster: _reason(each) for cluster, each in counts.adjusted.items()}
    worst = min(reasons.values(), key=_GRAVITY.__getitem__)
    clusters = sorted(reasons, key=lambda cluster: (_GRAVITY[reasons[cluster]], cluster))
    number = Counter(reasons.values())[worst]
    shown = [f"{cluster}: {counts.adjusted[cluster]}" for cluster in clusters[:SHOWN_ITEMS]]
    message = (
        f"{number} of {counts.desired} managed clusters: {_REASONS[worst]}."
        f" {first_items(shown, of=len(clusters))}"
    )
    return Condition("ScoresAdjusted", "True", worst, message)


def _reason(adjustments: Adjustments) -> str:
    """Return the gravest reason that fits the counts of one managed cluster."""
    reasons = {_OF_RULES[rule] for rule in adjustments.counts}
    if adjustments.results is not None:
        if not adjustments.entries:
            reasons.add("AllDropped")
        elif adjustments.counts.get("OutOfRange", 0) >= adjustments.entries:
            reasons.add("AllClamped")
    return min(reasons, key=_GRAVITY.__getitem__)


EXPOSED = "TokenExposed"


def exposure_condition(summary: ScorerSummary | None) -> Condition:
    """Return the condition TokenExposed; True if agents send a token over plain HTTP.

    The contract allows it. The hosts of source overrides do not count.
    """
    sent = ((urlsplit(url), secret) for url, secret in _sent(summary)) if summary else ()
    exposed = [
        f"Secret {UntrustedName(secret)} to {UntrustedName(parts.netloc.rpartition('@')[2])}"
        for parts, secret in sent
        if secret and parts.scheme == "http"
    ]
    if not exposed:
        message = "no token is sent over plain HTTP"
        return Condition(EXPOSED, "False", "NothingExposed", message)
    message = (
        "agents send tokens over plain HTTP, so whoever is on the way can read them"
        f" ({first_items(exposed)}): serve https there"
    )
    return Condition(EXPOSED, "True", "PlainHTTP", message)


def _sent(summary: ScorerSummary) -> Iterator[tuple[str, str]]:
    """Yield the URLs to which agents send a token or an OAuth client, each with its Secret."""
    sides = [
        (one.source_endpoint, one.source_endpoint_auth_name, one.source_endpoint_oauth2)
        for one in summary.single_sources
    ]
    scoring = summary.scoring_endpoint_auth_name, summary.scoring_endpoint_oauth2
    for url, secret, client in [*sides, (summary.scoring_endpoint, *scoring)]:
        yield url, secret
        if client:
            yield client.token_url, client.client_secret_ref.name
            yield url, client.client_secret_ref.name


CONTEXT_AVAILABLE = "ContextAvailable"


def lacking_keys(summary: ScorerSummary, shares: Iterable[ClusterShare]) -> dict[str, int]:
    """Return the labels and claims that managed clusters lack, and how many lack each.

    A key is `label region` or `claim id.k8s.io`. Clusters that mask the score do not count.
    """
    if summary.context is None or not (summary.context.labels or summary.context.claims):
        return {}
    asked = [f"label {key}" for key in summary.context.labels]
    asked += [f"claim {name}" for name in summary.context.claims]
    clusters, present = 0, Counter[str]()
    for share in shares:
        if summary.score_name in share.masked:
            continue
        clusters += 1
        present.update(f"label {key}" for key, _ in share.labels)
        present.update(f"claim {name}" for name, _ in share.claims)
    return {key: clusters - present[key] for key in asked if present[key] < clusters}


def context_condition(
    assessment: ScorerAssessment, clusters: int, lacking: Mapping[str, int]
) -> Condition:
    """Return the condition; `clusters` is the number of managed clusters that should score."""
    if isinstance(assessment.resolution, InvalidInput):
        message = "see the condition ConfigSynced"
        return Condition(CONTEXT_AVAILABLE, "Unknown", "NotResolved", message)
    if not assessment.resolution.summary.context and not assessment.unknown_context:
        return _available("NotAsked", "the scorer asks for no context")
    if isinstance(assessment.completed, InvalidInput):
        return _unavailable(assessment.completed.reason, assessment.completed.message)
    if assessment.unknown_context:
        fields = first_items(assessment.unknown_context)
        return _unavailable(
            "UnknownContext", f"{fields}: not sent, because this hub does not know it"
        )
    nowhere = [key for key, number in lacking.items() if clusters and number >= clusters]
    if nowhere:
        message = f"no managed cluster has {first_items(nowhere)}: correct it in context"
        return _unavailable("KeysNotFound", message)
    return _available("Available", _parts(assessment, clusters, lacking))


def _parts(assessment: ScorerAssessment, clusters: int, lacking: Mapping[str, int]) -> str:
    summary = assessment.completed
    parts = ["agents send what the scorer asks for"]
    if isinstance(summary, ScorerSummary) and summary.context and summary.context.from_manifests:
        workloads = counted(len(summary.context_workloads), "workload")
        parts.append(f"{workloads} and {counted(len(summary.context_devices), 'device')}")
    parts += [
        f"{number} of {clusters} managed clusters lack {key}" for key, number in lacking.items()
    ]
    return first_items(parts)


def _available(reason: str, message: str) -> Condition:
    return Condition(CONTEXT_AVAILABLE, "True", reason, message)


def _unavailable(reason: str, message: str) -> Condition:
    return Condition(CONTEXT_AVAILABLE, "False", reason, message)


FEWEST_VALUES = 5
"""Whole numbers that a declared range should have once published; fewer hardly rank clusters."""


def meaning_condition(assessment: ScorerAssessment) -> Condition:
    """Return the condition MeaningClear; False if what is declared contradicts itself or others."""
    resolution = assessment.resolution
    if not isinstance(resolution, Resolved):
        return Condition("MeaningClear", "Unknown", "NotResolved", "see the condition ConfigSynced")
    problems = list(_problems(assessment, resolution))
    if problems:
        messages = "; ".join(message for _, message in problems)
        return Condition("MeaningClear", "False", problems[0][0], messages)
    words = in_words(resolution.meaning)
    if not words:
        message = "neither displayName, unit, direction nor range is declared"
        return Condition("MeaningClear", "True", "NotDeclared", message)
    return Condition("MeaningClear", "True", "Declared", f"published scores: {words}")


def _problems(assessment: ScorerAssessment, resolved: Resolved) -> Iterator[tuple[str, str]]:
    """Yield reasons and messages, the gravest first."""
    declared, normalize = resolved.declared, resolved.summary.scoring_normalize
    own, owners = resolved.meaning.direction, assessment.owner_direction
    if own and owners and own != owners:
        message = (
            f"published scores are {own} here, and {owners} in the older DynamicScorer"
            f" {assessment.name_owner}, which has the same score name"
            f" {resolved.summary.score_name}: rename the score, or correct direction or"
            " scoring.normalize.invert of one of them"
        )
        yield "DirectionConflict", message
    if declared.direction == "HigherIsBetter" and normalize and normalize.invert:
        message = (
            "direction HigherIsBetter is about the scores that the API returns, and"
            " scoring.normalize.invert turns them round, so a lower published score is better:"
            " declare LowerIsBetter if the API returns less for better, else remove invert"
        )
        yield "DirectionInverted", message
    if declared.range and resolved.summary.score_destination != "None":
        yield from _unfit_range(declared.range, normalize)


def _unfit_range(declared: ScoreRange, normalize: Normalize | None) -> Iterator[tuple[str, str]]:
    """Yield why the declared range does not fit into the whole numbers that OCM accepts."""
    low, high = normalized_ends(declared, normalize)
    least, most = published_value(low), published_value(high)
    advice = "set scoring.normalize with the ends of the range as min and max"
    if any(isfinite(end) and not LOWEST <= end <= HIGHEST for end in (low, high)):
        message = (
            f"scores of the range {declared} become {low:g}..{high:g}, and OCM accepts"
            f" {LOWEST}..{HIGHEST}: the others are clamped; {advice}"
        )
        yield "RangeTooWide", message
    elif most - least + 1 < FEWEST_VALUES:
        message = (
            f"scores of the range {declared} become the whole numbers {least} to {most}; {advice}"
        )
        yield "RangeTooNarrow", message


def trust_condition(summary: ScorerSummary | None, counts: ScorerCounts) -> Condition:
    """Return the condition Trusted; False if forecasts are no better than the last value."""
    if summary is None:
        return Condition(TRUSTED, "Unknown", "NotResolved", "see the condition ConfigSynced")
    if summary.forecast is None:
        return Condition(TRUSTED, "Unknown", "NotDeclared", "no forecast is declared")
    scoring = counted(counts.scoring, "managed cluster")
    if counts.untrusted:
        message = (
            f"forecasts are no better than the last value on {len(counts.untrusted)} of {scoring}"
            f" ({first_items(sorted(counts.untrusted))}); the condition Trusted of their"
            " AddOnPlacementScores has the figures, and requests with minimumTrust count them less"
        )
        return Condition(TRUSTED, "False", NO_BETTER, message)
    if counts.trusted:
        message = f"forecasts are better than the last value on {counts.trusted} of {scoring}"
        return Condition(TRUSTED, "True", BETTER, message)
    message = f"forecasts have not been judged enough yet on any of {scoring}"
    return Condition(TRUSTED, "Unknown", INSUFFICIENT, message)


def with_health_from_agents(assessment: ScorerAssessment, counts: ScorerCounts) -> ScorerAssessment:
    """Return the assessment with the agents' verdict, if only agents can judge the API.

    The scorer stays distributed even if every agent fails: nobody else would notice that the API
    works again.
    """
    if not assessment.health.judged_by_agents:
        return assessment
    return replace(assessment, health=_from_agents(assessment.health, counts))


def _from_agents(health: ScorerHealth, counts: ScorerCounts) -> ScorerHealth:
    if counts.answered:
        message = (
            f"the hub can't reach it; agents of {counted(counts.answered, 'managed cluster')} can"
        )
        return ScorerHealth("Active", True, Condition("Healthy", "True", "AgentsReachIt", message))
    if counts.unanswered:
        message = (
            f"neither the hub nor the agents of {counted(counts.unanswered, 'managed cluster')} get"
            " scores from it: see failingClusters"
        )
        return ScorerHealth("Inactive", True, Condition("Healthy", "False", AGENTS_FAIL, message))
    return health
