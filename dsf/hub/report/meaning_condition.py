"""The condition MeaningClear: whether what a scorer declares about its scores can be relied on."""

from collections.abc import Iterator
from math import isfinite

from dsf.api.conditions import Condition
from dsf.api.crd.score_meaning import ScoreRange, in_words, normalized_ends
from dsf.api.crd.score_rules import HIGHEST, LOWEST, Normalize, published_value
from dsf.hub.assess.config_resolution import Resolved
from dsf.hub.assess.scorer_assessment import ScorerAssessment

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
