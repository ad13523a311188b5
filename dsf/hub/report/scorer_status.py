"""The status of a DynamicScorer."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api import names
from dsf.api.conditions import Condition, conditions_of, find
from dsf.api.crd.dynamic_scorer import FAILING_CLUSTERS
from dsf.api.scoring.score_conditions import TRUSTED
from dsf.api.untrusted_text import InvalidInput, UntrustedName, counted, escaped, quoted
from dsf.hub.assess.config_resolution import Resolved
from dsf.hub.assess.scorer_assessment import MAKE_REACHABLE, ScorerAssessment
from dsf.hub.report.config_status import SHOWN_ITEMS, first_items, status_conditions, works_of
from dsf.hub.report.scorer_conditions import (
    CONTEXT_AVAILABLE,
    EXPOSED,
    adjusted_condition,
    context_condition,
    exposure_condition,
    meaning_condition,
    trust_condition,
)
from dsf.hub.report.scorer_counts import Rollout, ScorerCounts

_SHOWN_CHARACTERS = 120
"""Characters that a message quotes of a value."""

_SHOWN_FAILURE_CHARACTERS = 300
"""Characters of a cluster's failure in the condition Scoring; failingClusters has the rest."""

_NOTHING_TO_SAY = frozenset(
    {"NotAsked", "NotDeclared", "NotResolved", "NothingAdjusted", "NothingExposed"}
)
"""Reasons of conditions that a scorer only has once they have said something else."""

_ADVISORY = frozenset({"ConfigConflict", "MeaningClear", "ScoresAdjusted", EXPOSED, TRUSTED})
"""Types of conditions that do not make a scorer unready."""


@dataclass(frozen=True, slots=True)
class ScorerProgress:
    """How far one scorer has come: on the hub (`rollout`), and on the managed clusters (`counts`).

    `no_clusters_because` says why no managed cluster is to get it. `lacking` says for each label
    and claim that it asks for how many managed clusters lack it.
    """

    rollout: Rollout = field(default_factory=Rollout)
    counts: ScorerCounts = field(default_factory=ScorerCounts)
    has_config: bool = True
    no_clusters_because: str = ""
    lacking: Mapping[str, int] = field(default_factory=dict)


def scorer_status(
    assessment: ScorerAssessment, progress: ScorerProgress | None, *, now: str
) -> dict[str, Any]:
    """Return the desired status of a DynamicScorer; a field with value None is to be removed.

    Without progress (the DynamicScoringConfig can't be read) the fields about clusters stay.
    `now` is an RFC 3339 time.
    """
    distributed = _distributed(assessment, progress)
    counts = progress.counts if progress else ScorerCounts()
    lacking = progress.lacking if progress else {}
    reported = [
        assessment.health.condition,
        assessment.config_synced,
        _config_conflict(assessment),
        *_if_informative(assessment, context_condition(assessment, counts.desired, lacking)),
        distributed,
        *_if_informative(assessment, meaning_condition(assessment)),
        *_if_informative(assessment, exposure_condition(assessment.summary)),
    ]
    if progress:
        reported.append(_scoring(assessment, distributed, counts))
        reported += _if_informative(assessment, trust_condition(assessment.summary, counts))
        reported += _if_informative(assessment, adjusted_condition(counts))
    return {
        "healthStatus": assessment.health.status,
        "scoreName": _score_name(assessment),
        **_meaning(assessment),
        **last_synced_config(assessment),
        **(_cluster_fields(assessment, progress) if progress else {}),
        **status_conditions(assessment.scorer.obj, [_ready(reported, counts), *reported], now=now),
    }


def last_synced_config(assessment: ScorerAssessment) -> dict[str, Any]:
    """Return the status fields that record the config in use and the URL that served it."""
    config, target = assessment.config, assessment.scorer.target
    if config is None:
        return {"lastSyncedConfig": None, "lastSyncedConfigURL": None}
    return {
        "lastSyncedConfig": config.model_dump(by_alias=True, exclude_none=True, exclude_unset=True),
        "lastSyncedConfigURL": target.config_url if target else None,
    }


def _cluster_fields(assessment: ScorerAssessment, progress: ScorerProgress) -> dict[str, Any]:
    counts, summary = progress.counts, assessment.summary
    declared = summary is not None and summary.scoring_default_score is not None
    return {
        "clusters": {
            "desired": counts.desired,
            "distributed": progress.rollout.in_place,
            "scoring": counts.scoring,
            "failing": len(counts.failing),
            "defaulted": counts.defaulted if declared else None,
        },
        "failingClusters": _failing_clusters(counts) or None,
    }


def _distributed(assessment: ScorerAssessment, progress: ScorerProgress | None) -> Condition:
    if progress is None:
        return _not_distributed(
            "InvalidScoringConfig",
            "what was distributed before stays: see the condition Ready of DynamicScoringConfig"
            f" {names.SCORING_CONFIG}",
        )
    return _withheld(assessment) or _rolled_out(progress)


def _withheld(assessment: ScorerAssessment) -> Condition | None:
    """Return the condition of a scorer that is not to be distributed; None if it is."""
    if isinstance(assessment.resolution, InvalidInput):
        return _not_distributed("NotResolved", "see the condition ConfigSynced")
    if isinstance(assessment.completed, InvalidInput):
        return _not_distributed("ContextMissing", f"see the condition {CONTEXT_AVAILABLE}")
    if assessment.name_owner:
        score = assessment.resolution.summary.score_name
        return _not_distributed(
            "ScoreNameTaken",
            f"the older DynamicScorer {assessment.name_owner} writes the score object"
            f" {names.score_object_name(score)}: choose a scoring.params.name other than {score}",
        )
    if not assessment.health.usable:
        return _not_distributed("Unhealthy", "see the condition Healthy")
    return None


def _rolled_out(progress: ScorerProgress) -> Condition:
    """Return the condition of a scorer that is to be distributed."""
    rollout = progress.rollout
    if not progress.has_config:
        return _not_distributed(
            "NoScoringConfig",
            f"create a DynamicScoringConfig named {names.SCORING_CONFIG} in this namespace",
        )
    if rollout.desired == 0:
        message = progress.no_clusters_because or "every managed cluster masks this score"
        return _not_distributed("NoClusters", message)
    if rollout.in_place < rollout.desired:
        return _not_distributed(
            "Distributing",
            f"on the way to {counted(rollout.desired, 'managed cluster')}; if this lasts, see the"
            f" conditions of DynamicScoringConfig {names.SCORING_CONFIG}",
        )
    message = f"in the {works_of(rollout.desired)}"
    return Condition("Distributed", "True", "Distributed", message)


def _not_distributed(reason: str, message: str) -> Condition:
    return Condition("Distributed", "False", reason, message)


def _scoring(
    assessment: ScorerAssessment, distributed: Condition, counts: ScorerCounts
) -> Condition:
    """Return the condition Scoring: what the agents report in their AddOnPlacementScores."""
    summary = assessment.summary
    if summary is None or counts.desired == 0:
        message = f"see the condition {distributed.type}"
        return Condition("Scoring", "Unknown", "NotDistributed", message)
    if summary.score_destination == "None":
        message = "scoreDestination is None: scores appear only in the agents' metrics"
        return Condition("Scoring", "Unknown", "NotPublished", message)
    if counts.failing:
        reason = "ClustersFailing" if counts.scoring else "NoClusterScores"
        message = _failing_message(counts) + _reach(assessment, counts)
        return Condition("Scoring", "False", reason, message)
    if counts.waiting:
        message = f"waiting for the agents of {counts.waiting} of {counts.desired} managed clusters"
        return Condition("Scoring", "Unknown", "Waiting", message)
    message = f"fresh scores from {counted(counts.scoring, 'managed cluster')}"
    if counts.defaulted:
        message += f", {counts.defaulted} of them the default score: they have nothing to score"
    return Condition("Scoring", "True", "Scoring", message)


def _failing_message(counts: ScorerCounts) -> str:
    """Return how many managed clusters fail for which reason, and an example of the commonest."""
    reasons = Counter(failure.reason for failure in counts.failing.values())
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    commonest = ordered[0][0]
    name = min(name for name, each in counts.failing.items() if each.reason == commonest)
    by_reason = ", ".join(
        f"{count} {UntrustedName(reason)}" for reason, count in ordered[:SHOWN_ITEMS]
    )
    example = quoted(counts.failing[name].message, _SHOWN_FAILURE_CHARACTERS)
    return (
        f"{len(counts.failing)} of {counts.desired} managed clusters fail ({by_reason});"
        f" {name}: {UntrustedName(commonest)}: {example}"
    )


def _reach(assessment: ScorerAssessment, counts: ScorerCounts) -> str:
    """Return who reaches the scoring API and who does not, and what to do; empty if all agree."""
    by_hub = assessment.health.status == "Active" and not assessment.health.judged_by_agents
    reaching = [*(["the hub"] if by_hub else []), *sorted(counts.reached)]
    if not (reaching and counts.unreached):
        return ""
    unreaching = first_items(sorted(counts.unreached))
    return f"; reachable from {first_items(reaching)}, not from {unreaching}: {MAKE_REACHABLE}"


def _failing_clusters(counts: ScorerCounts) -> list[dict[str, str]]:
    return [
        {
            "name": name,
            "reason": failure.reason,
            "message": escaped(failure.message),
            **({"since": failure.since} if failure.since else {}),
        }
        for name, failure in sorted(counts.failing.items())[:FAILING_CLUSTERS]
    ]


def _if_informative(assessment: ScorerAssessment, condition: Condition) -> list[Condition]:
    """Return a condition unless it has nothing to say and has said nothing before."""
    recorded = find(conditions_of(assessment.scorer.obj), condition.type)
    return [condition] if recorded or condition.reason not in _NOTHING_TO_SAY else []


def _meaning(assessment: ScorerAssessment) -> dict[str, Any]:
    """Return the status field `meaning`; it stays as it is while the scorer can't be resolved.

    Scores that were published before are valid for some time, with that meaning.
    """
    if not isinstance(assessment.resolution, Resolved):
        return {}
    meaning = assessment.resolution.meaning
    return {"meaning": meaning.model_dump(by_alias=True, exclude_none=True) or None}


def _score_name(assessment: ScorerAssessment) -> str | None:
    resolution = assessment.resolution
    return resolution.summary.score_name if isinstance(resolution, Resolved) else None


def _ready(reported: Iterable[Condition], counts: ScorerCounts) -> Condition:
    """Return the condition Ready: False for the first of the conditions that is False.

    Advisory conditions do not count, nor do failing clusters while others score.
    """
    for condition in reported:
        if condition.status != "False" or condition.type in _ADVISORY:
            continue
        if condition.reason == "ClustersFailing":
            message = f"{counts.scoring} of {counts.desired} managed clusters score: see Scoring"
            return Condition("Ready", "True", "PartlyScoring", message)
        message = f"{condition.type}: {condition.message}"
        return Condition("Ready", "False", condition.reason, message)
    return Condition("Ready", "True", "Distributed", "every chosen managed cluster has it")


def _config_conflict(assessment: ScorerAssessment) -> Condition:
    resolution = assessment.resolution
    conflicts = resolution.conflicts if isinstance(resolution, Resolved) else ()
    if not conflicts:
        return Condition("ConfigConflict", "False", "NoConflict", "spec and the API's config agree")
    differences = [
        f"{conflict.field}: {_shown(conflict.in_spec)} in spec,"
        f" {_shown(conflict.in_config)} from the API"
        for conflict in conflicts
    ]
    message = (
        f"{'; '.join(differences)}; the API's config wins because configSyncMode is Full: remove"
        " the fields from spec, or set configSyncMode None"
    )
    return Condition("ConfigConflict", "True", "APIConfigWins", message)


def _shown(value: object) -> str:
    """Return a value of a field; a text in quotes unless it is one word."""
    text = str(value)
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:_SHOWN_CHARACTERS]}…"
    return str(UntrustedName(text)) if isinstance(value, str) else text
