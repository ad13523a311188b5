"""Compares the direction in which a request counts a score with the one that its scorer states."""

from collections.abc import Iterator

from dsf.api.crd.score_meaning import PublishedMeaning, ScoreRange, normalized_ends
from dsf.api.crd.score_rules import LOWEST, published_value
from dsf.api.scoring.registered_meaning import meanings
from optimizer.domain.issue import Issue
from optimizer.snapshot.observation import Observation
from optimizer.wire.request import OptimizeRequest, Preference
from optimizer.wire.request_problem import UNPROCESSABLE, FieldProblem, RequestProblem

_SAYS = "its DynamicScorer says in status.meaning"


def maximised_by_mistake(
    observation: Observation, request: OptimizeRequest
) -> RequestProblem | None:
    """Return the problem of a request that maximises scores of which lower values are better.

    A score with `invert`, with weight 0 or without a stated direction is none.
    """
    errors = tuple(
        FieldProblem(f"{field}.invert", _advice(score, meaning))
        for field, score, meaning in _with_meaning(observation, request)
        if meaning.direction == "LowerIsBetter" and score.weight and not score.invert
    )
    if not errors:
        return None
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="LowerIsBetter",
        title="The request maximises a score of which lower values are better",
        detail="; ".join(error.message for error in errors),
        errors=errors,
    )


def direction_issues(observation: Observation, request: OptimizeRequest) -> Iterator[Issue]:
    """Yield what a request may have wrong about directions, or what can't be known of them."""
    if observation.scorers is None:
        message = (
            "the optimizer may not list DynamicScorers, so it does not know of which scores lower"
            " values are better; grant its service account this right with a ClusterRole"
        )
        yield Issue(reason="DirectionsUnknown", message=message)
    for field, score, meaning in _with_meaning(observation, request):
        if meaning.direction == "HigherIsBetter" and score.weight and score.invert:
            message = (
                f"{field}.invert prefers lower values of the score {score.score_name}, but higher"
                f" ones are better: {_SAYS} HigherIsBetter, after scoring.normalize"
            )
            yield Issue(reason="InvertedAgainstDirection", message=message)


def _with_meaning(
    observation: Observation, request: OptimizeRequest
) -> Iterator[tuple[str, Preference, PublishedMeaning]]:
    """Yield each score that decides and that a scorer says something about, with its field."""
    known = meanings(observation.scorers or ())
    fields = ("preference", *(f"objectives[{i}]" for i in range(len(request.objectives))))
    for field, score in zip(fields, request.scored, strict=True):
        if meaning := known.get(score.score_name):
            yield field, score, meaning


def _advice(score: Preference, meaning: PublishedMeaning) -> str:
    """Return what to do: with a range, places are still worth more than none."""
    least, most = map(published_value, normalized_ends(meaning.range or ScoreRange(min=LOWEST)))
    return (
        f"lower values of the score {score.score_name} are better: {_SAYS} LowerIsBetter; set"
        f" invert to true to prefer them, with minimum {least} and maximum {most}"
    )
