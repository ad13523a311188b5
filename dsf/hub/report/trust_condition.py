"""The condition Trusted of a DynamicScorer: on how many managed clusters its forecasts are good."""

from dsf.api.conditions import Condition
from dsf.api.plural import counted
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.track_record import BETTER, INSUFFICIENT, NO_BETTER, TRUSTED
from dsf.hub.report.scorer_counts import ScorerCounts
from dsf.hub.report.wording import first_items


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
