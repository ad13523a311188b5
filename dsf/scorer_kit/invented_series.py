"""Invents series for a scorer: the labels that its query gives, and deterministic values."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dsf.agent.wire.scoring_request import EncodedSeries, of_source
from dsf.api.crd.kubernetes_objects import OWN_LABELS
from dsf.api.scoring.scorer_summary import ScorerSummary

UNGROUPED = ("node", "namespace", "pod")
"""Labels of invented series if the query aggregates nothing; without them, there is one series."""

TYPICAL_SERIES = 5
"""Series of a typical request: enough to see whether names differ."""

DEFAULT_STEP = 60
MOST_SAMPLES = 60
"""Samples of an invented series, if the window of the scorer has no fewer."""

_BY = re.compile(r"\bby\s*\(([^()]*)\)", re.IGNORECASE)
_WITHOUT = re.compile(r"\bwithout\s*\(", re.IGNORECASE)
_AGGREGATION = re.compile(
    r"\b(sum|avg|min|max|count|group|stddev|stdvar|quantile)\s*\(", re.IGNORECASE
)
"""An aggregation of all series into one, unless it has `by` or `without`.

Source: https://prometheus.io/docs/prometheus/latest/querying/operators/#aggregation-operators
"""

_LABEL = re.compile(r"[A-Za-z_]\w*")

Value = Callable[[int, int], str]
"""The text of a sample's value, from the numbers of its series and of itself."""


@dataclass(frozen=True, slots=True)
class SeriesForm:
    """The labels of invented series, and their times: the last sample is at `end`.

    `source` is the name of their source, of a scorer with several.
    """

    labels: tuple[str, ...]
    samples: int
    step: int
    end: int
    source: str = ""


def forms_of(summary: ScorerSummary, end: int) -> tuple[SeriesForm, ...]:
    """Return the form of series that each source would give; `end` is in unix seconds."""
    return tuple(_form_of(source, end) for source in summary.single_sources)


def _form_of(summary: ScorerSummary, end: int) -> SeriesForm:
    grouped = [name for by in _BY.findall(summary.source_query) for name in _LABEL.findall(by)]
    step = summary.source_step or DEFAULT_STEP
    samples = min(max(summary.source_range // step, 1), MOST_SAMPLES)
    if summary.source_kubernetes:
        grouped = [*OWN_LABELS, *summary.source_kubernetes.labels]
    query = summary.source_query
    single = not grouped and _AGGREGATION.search(query) and not _WITHOUT.search(query)
    labels = () if single else tuple(dict.fromkeys(grouped)) or UNGROUPED
    return SeriesForm(labels, samples, step, end, summary.source_name)


def wave(series: int, sample: int) -> str:
    """Return a value between 0 and 1 that differs between series and between samples."""
    return f"{0.5 + 0.4 * math.sin(0.7 * series + 0.2 * sample):.4f}"


def invented(
    forms: Sequence[SeriesForm], count: int, value: Value = wave, samples: int | None = None
) -> list[EncodedSeries]:
    """Return `count` series of each form, each with `samples` samples if that is given.

    There is one series of a form without labels.
    """
    return [one for form in forms for one in _of_form(form, count, value, samples)]


def _of_form(
    form: SeriesForm, count: int, value: Value, samples: int | None
) -> Iterable[EncodedSeries]:
    number = form.samples if samples is None else samples
    times = [form.end - form.step * (number - 1 - index) for index in range(number)]
    different = count if form.labels else 1
    found = [_series(form.labels, index, times, value) for index in range(different)]
    return of_source(found, form.source) if form.source else found


def _series(
    labels: Sequence[str], number: int, times: Sequence[int], value: Value
) -> EncodedSeries:
    metric = {label: f"{label}-{number}" for label in labels}
    values = [[time, value(number, index)] for index, time in enumerate(times)]
    return EncodedSeries(_json(metric), _json(values))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
