"""The condition ScoresAdjusted: what the agents' rules did to the results of a scorer."""

from collections import Counter
from collections.abc import Mapping

from dsf.api.conditions import Condition
from dsf.api.scoring.adjustments import Adjustments, Rule
from dsf.hub.report.scorer_counts import ScorerCounts
from dsf.hub.report.wording import SHOWN_ITEMS, first_items

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
    found = {_OF_RULES[rule] for rule in adjustments.counts}
    if adjustments.results is not None:
        if not adjustments.entries:
            found.add("AllDropped")
        elif adjustments.counts.get("OutOfRange", 0) >= adjustments.entries:
            found.add("AllClamped")
    return min(found, key=_GRAVITY.__getitem__)
