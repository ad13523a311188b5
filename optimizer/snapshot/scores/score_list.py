"""AddOnPlacementScores as a list for people, with the descriptions of their scorers."""

from collections.abc import Iterable, Mapping
from typing import Any

from dsf.api.names import score_object_name
from dsf.api.untrusted_text import UntrustedText
from dsf.kube.port import Object
from optimizer.wire.result import ScoreObject


def score_list(read: Iterable[ScoreObject], scorers: Iterable[Object]) -> tuple[ScoreObject, ...]:
    """Return the scores ordered by cluster and name."""
    described = {_score_name(scorer): scorer for scorer in scorers}
    ordered = sorted(read, key=lambda score: (score.cluster, score.name))
    return tuple(_described(score, described.get(score.name)) for score in ordered)


def _described(score: ScoreObject, scorer: Object | None) -> ScoreObject:
    if scorer is None:
        return score
    spec = scorer.get("spec") or {}
    update = {
        "description": UntrustedText(spec.get("description") or ""),
        "score_dimension_format": UntrustedText(spec.get("scoreDimensionFormat") or ""),
    }
    return score.model_copy(update=update)


def _score_name(scorer: Object) -> str:
    """Return the name of the scores that a DynamicScorer fills.

    The last synced configuration wins over the spec.
    """
    spec = scorer.get("spec") or {}
    synced = (scorer.get("status") or {}).get("lastSyncedConfig") or {}
    return score_object_name(_param_name(synced) or _param_name(spec))


def _param_name(document: Mapping[str, Any]) -> str:
    scoring = document.get("scoring") or {}
    return str((scoring.get("params") or {}).get("name") or "")
