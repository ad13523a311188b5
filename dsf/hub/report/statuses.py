"""What the controller says: the statuses of DynamicScorers and of the DynamicScoringConfig."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsf.api import conditions, names
from dsf.api.conditions import Condition
from dsf.api.invalid import Invalid
from dsf.api.scorer import FAILING_CLUSTERS
from dsf.hub.assess.config_resolution import Resolved
from dsf.hub.assess.scorer_assessment import ScorerAssessment
from dsf.hub.report.rollout import Rollout
from dsf.hub.report.scorer_counts import ScorerCounts
from dsf.hub.snapshot.summaries_work import LIMIT_BYTES
from dsf.kube.port import Object

_SHOWN_CHARACTERS = 120
_SHOWN_ITEMS = 5
_SHOWN_COMPLAINT = 300


@dataclass(frozen=True, slots=True)
class FleetProgress:
    """How far the distribution to the fleet has come.

    `scorers` and `clusters` count what is desired, `nobody` says why no cluster is. `lagging` names
    the clusters whose work is not yet as desired, `refusals` says by cluster why the API server
    refused a write, `sizes` how many bytes the largest works would have.
    """

    scorers: int
    clusters: int
    nobody: str = ""
    lagging: frozenset[str] = frozenset()
    refusals: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScorerProgress:
    """How far one scorer has come: on the hub, and on the managed clusters."""

    reach: Rollout = field(default_factory=Rollout)
    tally: ScorerCounts = field(default_factory=ScorerCounts)
    has_config: bool = True
    nobody: str = ""


def scorer_status(
    standing: ScorerAssessment, spread: ScorerProgress | None, *, now: str
) -> dict[str, Any]:
    """Return the desired status of a DynamicScorer; a null field is to be removed.

    Without a spread (the DynamicScoringConfig can't be read) what it says of clusters stays.
    """
    given = distributed(standing, spread)
    told = [standing.health.condition, standing.synced, _conflict(standing), given]
    tally = spread.tally if spread else ScorerCounts()
    counts: dict[str, Any] = {}
    if spread:
        told.append(_scoring(standing, given, tally))
        counts = {
            "clusters": {
                "desired": tally.desired,
                "distributed": spread.reach.in_place,
                "scoring": tally.scoring,
                "failing": len(tally.failing),
            },
            "failingClusters": _failing(tally) or None,
        }
    config = standing.config
    return {
        "healthStatus": standing.health.status,
        "scoreName": _score_name(standing),
        "lastSyncedConfig": config.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)
        if config
        else None,
        "lastSyncedConfigURL": _config_url(standing) if config else None,
        **counts,
        **_common(standing.scorer.obj, [_ready(told, tally), *told], now=now),
    }


def _config_url(standing: ScorerAssessment) -> str | None:
    target = standing.scorer.target
    return target.config_url if target else None


def config_status(
    config: Object, progress: FleetProgress, unmatched: Sequence[str], *, now: str
) -> dict[str, Any]:
    """Return the desired status of the DynamicScoringConfig."""
    told = [_delivered(progress), _masks(unmatched), _sizes(progress.sizes)]
    return {
        "scorers": progress.scorers,
        "clusters": progress.clusters - len(progress.lagging),
        "desiredClusters": progress.clusters,
        **_common(config, told, now=now),
    }


def invalid_config_status(config: Object, invalid: Invalid, *, now: str) -> dict[str, Any]:
    """Return the status of a DynamicScoringConfig that can't be read: all works stay."""
    message = f"{invalid.message}; what was distributed before stays"
    return _common(config, [Condition("Ready", "False", invalid.reason, message)], now=now)


def distributed(standing: ScorerAssessment, spread: ScorerProgress | None) -> Condition:
    """Return the condition Distributed of a scorer."""
    if spread is None:
        return _not_distributed(
            "InvalidScoringConfig",
            "what was distributed before stays: see the condition Ready of DynamicScoringConfig"
            f" {names.SCORING_CONFIG}",
        )
    return (
        _withheld(standing)
        or _on_its_way(spread)
        or Condition(
            "Distributed",
            "True",
            "Distributed",
            f"in the {_works_of(spread.reach.desired)}",
        )
    )


def _withheld(standing: ScorerAssessment) -> Condition | None:
    if isinstance(standing.resolution, Invalid):
        return _not_distributed("NotResolved", "see the condition ConfigSynced")
    if standing.rival:
        score = standing.resolution.summary.score_name
        return _not_distributed(
            "ScoreNameTaken",
            f"DynamicScorer {standing.rival} is older and writes the score object"
            f" {names.score_object_name(score)}: choose a scoring.params.name other than {score}",
        )
    if not standing.health.usable:
        return _not_distributed("Unhealthy", "see the condition Healthy")
    return None


def _on_its_way(spread: ScorerProgress) -> Condition | None:
    reach = spread.reach
    if not spread.has_config:
        return _not_distributed(
            "NoScoringConfig",
            f"create a DynamicScoringConfig named {names.SCORING_CONFIG} in this namespace",
        )
    if reach.desired == 0:
        return _not_distributed("NoClusters", spread.nobody or "every cluster masks this score")
    if reach.in_place < reach.desired:
        return _not_distributed(
            "Distributing",
            f"on its way to {_count(reach.desired, 'managed cluster')}; if it stays so, see the"
            f" conditions of DynamicScoringConfig {names.SCORING_CONFIG}",
        )
    return None


def _not_distributed(reason: str, message: str) -> Condition:
    return Condition("Distributed", "False", reason, message)


def _scoring(standing: ScorerAssessment, given: Condition, tally: ScorerCounts) -> Condition:
    """Return the condition Scoring: what the agents say in their AddOnPlacementScores."""
    summary = standing.summary
    if summary is None or tally.desired == 0:
        return Condition("Scoring", "Unknown", "NotDistributed", f"see the condition {given.type}")
    if summary.score_destination == "None":
        message = "scoreDestination is None: the agents' metrics alone tell the scores"
        return Condition("Scoring", "Unknown", "NotPublished", message)
    if tally.failing:
        reason = "ClustersFailing" if tally.scoring else "NoClusterScores"
        return Condition("Scoring", "False", reason, _failing_message(tally))
    if tally.waiting:
        message = f"waiting for the agents of {tally.waiting} of {tally.desired} managed clusters"
        return Condition("Scoring", "Unknown", "Waiting", message)
    message = f"fresh scores of {_count(tally.scoring, 'managed cluster')}"
    return Condition("Scoring", "True", "Scoring", message)


def _failing_message(tally: ScorerCounts) -> str:
    """Return the commonest complaint, and how many managed clusters have which."""
    reasons = Counter(trouble.reason for trouble in tally.failing.values())
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    commonest = ordered[0][0]
    name = min(name for name, each in tally.failing.items() if each.reason == commonest)
    counts = ", ".join(f"{count} {reason}" for reason, count in ordered[:_SHOWN_ITEMS])
    return (
        f"{len(tally.failing)} of {tally.desired} managed clusters fail ({counts});"
        f" {name}: {commonest}: {_short(tally.failing[name].message, _SHOWN_COMPLAINT)}"
    )


def _failing(tally: ScorerCounts) -> list[dict[str, str]]:
    return [
        {
            "name": name,
            "reason": trouble.reason,
            "message": trouble.message,
            **({"since": trouble.since} if trouble.since else {}),
        }
        for name, trouble in sorted(tally.failing.items())[:FAILING_CLUSTERS]
    ]


def _score_name(standing: ScorerAssessment) -> str | None:
    outcome = standing.resolution
    return outcome.summary.score_name if isinstance(outcome, Resolved) else None


def _ready(told: Iterable[Condition], tally: ScorerCounts) -> Condition:
    """Sum up: not ready for the first reason that is told.

    A conflict is no reason, and clusters that fail are none as long as others score.
    """
    for condition in told:
        if condition.status != "False" or condition.type == "ConfigConflict":
            continue
        if condition.reason == "ClustersFailing":
            message = f"{tally.scoring} of {tally.desired} managed clusters score: see Scoring"
            return Condition("Ready", "True", "PartlyScoring", message)
        message = f"{condition.type}: {condition.message}"
        return Condition("Ready", "False", condition.reason, message)
    return Condition("Ready", "True", "Distributed", "the agents have been told")


def _conflict(standing: ScorerAssessment) -> Condition:
    outcome = standing.resolution
    conflicts = outcome.conflicts if isinstance(outcome, Resolved) else ()
    if not conflicts:
        return Condition("ConfigConflict", "False", "NoConflict", "spec and the API's config agree")
    told = [
        f"{conflict.field}: {_short(conflict.in_spec)} in spec,"
        f" {_short(conflict.in_config)} from the API"
        for conflict in conflicts
    ]
    advice = "what the API says is used, since configSyncMode is Full: remove the fields from spec"
    message = f"{'; '.join(told)}; {advice}, or set configSyncMode None"
    return Condition("ConfigConflict", "True", "APIConfigWins", message)


def _delivered(progress: FleetProgress) -> Condition:
    refused = {
        name: progress.refusals[name]
        for name in sorted(progress.lagging & progress.refusals.keys())
    }
    if not progress.clusters:
        return Condition("Ready", "False", "NoClusters", progress.nobody)
    if refused:
        message = _listed([f"{cluster}: {why}" for cluster, why in refused.items()])
        return Condition("Ready", "False", "WriteRefused", message)
    if any(size > LIMIT_BYTES for size in progress.sizes.values()):
        return Condition("Ready", "False", "TooLarge", "see the condition WithinLimit")
    scorers = _count(progress.scorers, "scorer")
    if progress.lagging:
        message = f"{scorers} on the way to {_count(progress.clusters, 'managed cluster')}"
        return Condition("Ready", "False", "Distributing", message)
    message = f"{scorers} in the {_works_of(progress.clusters)}"
    return Condition("Ready", "True", "Distributed", message)


def _works_of(clusters: int) -> str:
    return f"ManifestWork{'' if clusters == 1 else 's'} of {_count(clusters, 'managed cluster')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _masks(unmatched: Sequence[str]) -> Condition:
    if unmatched:
        return Condition("MasksMatched", "False", "NothingMatched", _listed(unmatched))
    return Condition("MasksMatched", "True", "AllMatched", "every mask and override matches")


def _sizes(sizes: Mapping[str, int]) -> Condition:
    """Return the condition WithinLimit: OCM refuses a ManifestWork that is too large."""
    if not sizes:
        return Condition("WithinLimit", "True", "WithinLimit", "OCM takes works of this size")
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    largest = _listed([f"{cluster}: {size // 1024} KiB" for cluster, size in ordered])
    over = ordered[0][1] > LIMIT_BYTES
    fate = "not written" if over else "close to it"
    message = (
        f"OCM takes ManifestWorks of up to {LIMIT_BYTES // 1024} KiB; {fate}: {largest}."
        " Mask scores, shorten queries, or remove scorers"
    )
    return Condition("WithinLimit", "False", "TooLarge" if over else "NearLimit", message)


def _common(obj: Object, told: Iterable[Condition], *, now: str) -> dict[str, Any]:
    generation = obj["metadata"].get("generation")
    observed = (obj.get("status") or {}).get("conditions") or []
    return {
        "observedGeneration": generation,
        "conditions": conditions.merged(observed, told, now=now, generation=generation),
    }


def _listed(items: Sequence[str]) -> str:
    more = len(items) - _SHOWN_ITEMS
    return "; ".join(items[:_SHOWN_ITEMS]) + (f"; and {more} more" if more > 0 else "")


def _short(value: object, limit: int = _SHOWN_CHARACTERS) -> str:
    text = str(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
