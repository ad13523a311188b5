"""AddOnPlacementScores as a list for people, with the descriptions of their scorers."""

from collections.abc import Iterable

from dsf.api.crd.score_meaning import PublishedMeaning
from dsf.api.scoring.registered_meaning import format_for_apps, meanings, published_score
from dsf.api.untrusted_text import UntrustedText
from dsf.kube.port import Object
from optimizer.wire.result import ScoreObject


def score_list(read: Iterable[ScoreObject], scorers: Iterable[Object]) -> tuple[ScoreObject, ...]:
    """Return the scores ordered by cluster and name."""
    listed = tuple(scorers)
    described, known = {published_score(scorer): scorer for scorer in listed}, meanings(listed)
    ordered = sorted(read, key=lambda score: (score.cluster, score.name))
    return tuple(
        _with_meaning(_described(score, described.get(score.name)), known.get(score.name))
        for score in ordered
    )


def _described(score: ScoreObject, scorer: Object | None) -> ScoreObject:
    if scorer is None:
        return score
    spec = scorer.get("spec") or {}
    update = {
        "description": UntrustedText(spec.get("description") or ""),
        "score_dimension_format": UntrustedText(format_for_apps(scorer)),
    }
    return score.model_copy(update=update)


def _with_meaning(score: ScoreObject, meaning: PublishedMeaning | None) -> ScoreObject:
    if meaning is None:
        return score
    update = {
        "display_name": UntrustedText(meaning.display_name or ""),
        "unit": UntrustedText(meaning.unit or ""),
        "direction": meaning.direction,
    }
    return score.model_copy(update=update)
