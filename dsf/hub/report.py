"""What the controller says: the statuses of DynamicScorers and of the DynamicScoringConfig."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsf.api import conditions, names
from dsf.api.conditions import Condition
from dsf.api.invalid import Invalid
from dsf.hub.distribution import Reach
from dsf.hub.resolve import Resolved
from dsf.hub.snapshot import Object
from dsf.hub.standing import Standing

_SHOWN_CHARACTERS = 120
_SHOWN_ITEMS = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the distribution to the fleet has come.

    `scorers` and `clusters` count what is desired, `lagging` names the clusters whose work is not
    yet as desired, `refusals` says by cluster why the API server refused a write.
    """

    scorers: int
    clusters: int
    lagging: frozenset[str] = frozenset()
    refusals: Mapping[str, str] = field(default_factory=dict)


def scorer_status(standing: Standing, distributed: Condition, *, now: str) -> dict[str, Any]:
    """Return the desired status of a DynamicScorer; a null field is to be removed."""
    told = (standing.synced, _conflict(standing), standing.health.condition, distributed)
    config = standing.config
    return {
        "healthStatus": standing.health.status,
        "lastSyncedConfig": config.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)
        if config
        else None,
        **_common(standing.scorer.obj, [_ready(told), *told], now=now),
    }


def config_status(
    config: Object, progress: Progress, unmatched: Sequence[str], *, now: str
) -> dict[str, Any]:
    """Return the desired status of the DynamicScoringConfig."""
    told = [_delivered(progress), _masks(unmatched)]
    return {
        "scorers": progress.scorers,
        "clusters": progress.clusters - len(progress.lagging),
        **_common(config, told, now=now),
    }


def invalid_config_status(config: Object, invalid: Invalid, *, now: str) -> dict[str, Any]:
    """Return the status of a DynamicScoringConfig that can't be read: all works stay."""
    message = f"{invalid.message}; what was distributed before stays"
    return _common(config, [Condition("Ready", "False", invalid.reason, message)], now=now)


def distributed(standing: Standing, config: Object | None, reach: Reach) -> Condition:
    """Return the condition Distributed of a scorer."""
    return (
        _withheld(standing)
        or _on_its_way(config, reach)
        or Condition(
            "Distributed",
            "True",
            "Distributed",
            f"in the ManifestWorks of {reach.desired} managed clusters",
        )
    )


def _withheld(standing: Standing) -> Condition | None:
    if isinstance(standing.outcome, Invalid):
        return _not_distributed("NotResolved", "see the condition ConfigSynced")
    if standing.rival:
        score = standing.outcome.summary.score_name
        return _not_distributed(
            "ScoreNameTaken",
            f"DynamicScorer {standing.rival} is older and writes the score object"
            f" {names.score_object_name(score)}: choose a scoring.params.name other than {score}",
        )
    if not standing.health.usable:
        return _not_distributed("Unhealthy", "see the condition Healthy")
    return None


def _on_its_way(config: Object | None, reach: Reach) -> Condition | None:
    if config is None:
        return _not_distributed(
            "NoScoringConfig",
            f"create a DynamicScoringConfig named {names.SCORING_CONFIG} in this namespace",
        )
    if reach.desired == 0:
        return _not_distributed(
            "NoClusters", "no managed cluster is accepted, or every one masks this score"
        )
    if reach.in_place < reach.desired:
        return _not_distributed(
            "Distributing",
            f"on its way to {reach.desired} managed clusters; if it stays so, see the"
            f" conditions of DynamicScoringConfig {names.SCORING_CONFIG}",
        )
    return None


def _not_distributed(reason: str, message: str) -> Condition:
    return Condition("Distributed", "False", reason, message)


def _ready(told: Iterable[Condition]) -> Condition:
    """Sum up: not ready for the first reason that is told, `ConfigConflict` aside."""
    for condition in told:
        if condition.status == "False" and condition.type != "ConfigConflict":
            message = f"{condition.type}: {condition.message}"
            return Condition("Ready", "False", condition.reason, message)
    return Condition("Ready", "True", "Distributed", "the agents have been told")


def _conflict(standing: Standing) -> Condition:
    outcome = standing.outcome
    conflicts = outcome.conflicts if isinstance(outcome, Resolved) else ()
    if not conflicts:
        return Condition("ConfigConflict", "False", "NoConflict")
    told = [
        f"{conflict.field}: {_short(conflict.in_spec)} in spec,"
        f" {_short(conflict.in_config)} from the API"
        for conflict in conflicts
    ]
    advice = "what the API says is used, since configSyncMode is Full: remove the fields from spec"
    message = f"{'; '.join(told)}; {advice}, or set configSyncMode None"
    return Condition("ConfigConflict", "True", "APIConfigWins", message)


def _delivered(progress: Progress) -> Condition:
    refused = {
        name: progress.refusals[name]
        for name in sorted(progress.lagging & progress.refusals.keys())
    }
    if not progress.clusters:
        return Condition(
            "Ready", "False", "NoClusters", "no managed cluster is accepted by the hub"
        )
    if refused:
        message = _listed([f"{cluster}: {why}" for cluster, why in refused.items()])
        return Condition("Ready", "False", "WriteRefused", message)
    if progress.lagging:
        message = f"{progress.scorers} scorers on their way to {progress.clusters} managed clusters"
        return Condition("Ready", "False", "Distributing", message)
    message = (
        f"{progress.scorers} scorers in the ManifestWorks of {progress.clusters} managed clusters"
    )
    return Condition("Ready", "True", "Distributed", message)


def _masks(unmatched: Sequence[str]) -> Condition:
    if unmatched:
        return Condition("MasksMatched", "False", "NothingMatched", _listed(unmatched))
    return Condition("MasksMatched", "True", "AllMatched")


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


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
