"""What is published on a managed cluster that has nothing to score: `scoring.defaultScore`."""

from dsf.agent.score.result_rules import (
    AddOnPlacementScoreItem,
    ConversionSettings,
    MetricSample,
    RoundScores,
    conversion_settings,
)
from dsf.api.crd.score_rules import DefaultScore
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.api.scoring.scorer_summary import ScorerSummary


def declared_default(summary: ScorerSummary, cluster: str) -> RoundScores | None:
    """Return the entries of a scorer's default score on a cluster; None if it declares none."""
    if summary.scoring_default_score is None:
        return None
    form = conversion_settings(summary, cluster)
    if isinstance(form, InvalidInput):
        return None
    return default_scores(summary.scoring_default_score, form)


def default_scores(default: DefaultScore, form: ConversionSettings) -> RoundScores:
    """Return the entries of a default score, and its metric if a format needs no result's labels.

    The entries are those that it names, else those of such formats.
    """
    stamped = {"cluster": form.cluster, "scoreName": form.score_name}
    labels = {**dict.fromkeys(PLACEHOLDERS, ""), **stamped}
    fixed = [one for one in (form.dimension, *form.further) if not one.named]
    names = set(default.entries or [one.render(labels) for one in fixed])
    entries = tuple(AddOnPlacementScoreItem(name, default.value) for name in sorted(names))
    sample = MetricSample(tuple(labels.values()), float(default.value))
    return RoundScores(entries, (sample,) if fixed else ())
