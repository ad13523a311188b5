"""What is published on a managed cluster that has nothing to score: `scoring.defaultScore`."""

from collections.abc import Iterable

from dsf.agent.score.result_rules import (
    MAX_SERIES,
    AddOnPlacementScoreItem,
    ConversionSettings,
    MetricSample,
    RoundScores,
)
from dsf.api.crd.score_rules import DefaultScore
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.dimension_format import PLACEHOLDERS, DimensionFormat
from dsf.api.scoring.scorer_summary import ScorerSummary


def conversion_settings(
    summary: ScorerSummary, cluster: str, max_series: int = MAX_SERIES
) -> ConversionSettings | InvalidInput:
    """Return how the results of a scorer are converted on a managed cluster."""
    formats = list[DimensionFormat]()
    for text in summary.dimension_formats:
        form = DimensionFormat.parse(text)
        if isinstance(form, InvalidInput):
            return form
        formats.append(form)
    return ConversionSettings(
        cluster,
        summary.score_name,
        formats[0],
        summary.scoring_normalize,
        summary.scoring_range,
        series=max_series,
        further=tuple(formats[1:]),
    )


def default_scores(default: DefaultScore, form: ConversionSettings) -> RoundScores:
    """Return the entries of a default score, and its metric if a format needs no result's labels.

    The entries are those that it names, else those of such formats.
    """
    stamped = {"cluster": form.cluster, "scoreName": form.score_name}
    labels = {**dict.fromkeys(PLACEHOLDERS, ""), **stamped}
    fixed = [one for one in (form.dimension, *form.further) if not one.of_results]
    names = default.entries or [one.render(labels) for one in fixed]
    sample = MetricSample(tuple(labels.values()), float(default.value))
    return RoundScores(_entries(names, default.value), (sample,) if fixed else ())


def _entries(names: Iterable[str], value: int) -> tuple[AddOnPlacementScoreItem, ...]:
    return tuple(AddOnPlacementScoreItem(name, value) for name in sorted(set(names)))
