"""What scorers say that their scores mean: shown beside the scores, compared with the request."""

import math
from collections.abc import Iterable, Iterator

from dsf.api.crd.score_meaning import PublishedMeaning, ScoreRange, normalized_ends
from dsf.api.crd.score_rules import HIGHEST, LOWEST, published_value
from dsf.api.scoring.placement_scores import (
    declared_formats,
    forecast_quantiles,
    format_for_apps,
    meanings,
    published_score,
)
from dsf.api.untrusted_text import UntrustedText
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.scores.entry_formats import QUANTILE_LABEL, formats_of, has_quantiles
from optimizer.wire.request import OptimizeRequest, Preference, ScoreRef
from optimizer.wire.request_problem import FieldProblem, RequestProblem, refused_fields
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


_SAYS = "its DynamicScorer says in status.meaning"


def maximised_by_mistake(
    observation: Observation, request: OptimizeRequest
) -> RequestProblem | None:
    """Return the problem of a request that maximises scores of which lower values are better.

    A score with `invert`, with weight 0 or without a stated direction is none.
    """
    errors = tuple(
        FieldProblem(f"{field}.invert", _advice(score, meaning))
        for field, score, meaning in _scores_with_meaning(observation, request)
        if meaning.direction == "LowerIsBetter" and score.weight and not score.invert
    )
    title = "The request maximises a score of which lower values are better"
    return refused_fields("LowerIsBetter", title, *errors) if errors else None


def absent_quantiles(observation: Observation, request: OptimizeRequest) -> RequestProblem | None:
    """Return the problem of a request that names quantiles which its scores do not have."""
    scorers = observation.scorers or ()
    declared, forecast = declared_formats(scorers), forecast_quantiles(scorers)
    errors = tuple(
        FieldProblem(f"{field}.at", _quantile_advice(score, forecast.get(score.score_name)))
        for field, score in request.read_scores
        if score.at
        and not any(map(has_quantiles, formats_of(_of_all_quantiles(score), declared).formats))
        and not _forecasts(score.at, forecast.get(score.score_name))
    )
    title = "The request names quantiles that its scores do not have"
    return refused_fields("NoSuchQuantile", title, *errors) if errors else None


def _of_all_quantiles(score: ScoreRef) -> ScoreRef:
    return score.model_copy(update={"at": None})


def _forecasts(at: str, quantile: float | None) -> bool:
    return quantile is not None and math.isclose(float(at.removeprefix("p")), 100 * quantile)


def _quantile_advice(score: ScoreRef, quantile: float | None) -> str:
    said = (
        "no DynamicScorer says that it is a forecast"
        if quantile is None
        else f"its DynamicScorer says that it forecasts p{100 * quantile:g}"
    )
    return (
        f"the score {score.score_name} has no {score.at}: {said}, and no format of its entries has"
        f" ${{{QUANTILE_LABEL}}}; let the scorer return a result for each quantile, with the label"
        f" {QUANTILE_LABEL}, or leave out `at`"
    )


def direction_issues(observation: Observation, request: OptimizeRequest) -> Iterator[Issue]:
    """Yield what a request may have wrong about directions, or what can't be known of them."""
    if observation.scorers is None:
        message = (
            "the optimizer may not list DynamicScorers, so it does not know of which scores lower"
            " values are better, and how their entries are named; grant its service account this"
            " right with a ClusterRole"
        )
        yield Issue(reason="DirectionsUnknown", message=message)
    for field, score, meaning in _scores_with_meaning(observation, request):
        if meaning.direction == "HigherIsBetter" and score.weight and score.invert:
            message = (
                f"{field}.invert prefers lower values of the score {score.score_name}, but higher"
                f" ones are better: {_SAYS} HigherIsBetter, after scoring.normalize"
            )
            yield Issue(reason="InvertedAgainstDirection", message=message)


def _scores_with_meaning(
    observation: Observation, request: OptimizeRequest
) -> Iterator[tuple[str, Preference, PublishedMeaning]]:
    """Yield each score that decides and that a scorer says something about, with its field."""
    known = meanings(observation.scorers or ())
    fields = ("preference", *(f"objectives[{i}]" for i in range(len(request.objectives))))
    for field, score in zip(fields, request.scored, strict=True):
        if meaning := known.get(score.score_name):
            yield field, score, meaning


def inverted_ends(published: ScoreRange | None) -> tuple[int, int]:
    """Return the minimum and maximum with which an inverted score is worth more than no place."""
    least, _ = normalized_ends(published or ScoreRange(min=LOWEST))
    return published_value(least), HIGHEST + 1


def _advice(score: Preference, meaning: PublishedMeaning) -> str:
    least, most = inverted_ends(meaning.range)
    return (
        f"lower values of the score {score.score_name} are better: {_SAYS} LowerIsBetter; set"
        f" invert to true to prefer them, with minimum {least} and maximum {most}, so that each"
        " place is worth more than none"
    )
