"""The rules that turn the results of a scoring call into entries of an AddOnPlacementScore.

The rules, in this order, for each result:

1. A score that is not finite (NaN or infinite), before or after `scoring.normalize`, is dropped
   (NotFinite). Another one that is outside the declared range, before `scoring.normalize`, stays
   (OutsideDeclaredRange).
2. Labels are cut to 256 characters (LabelCut). A label that the dimension format names and the
   result lacks is empty (MissingLabel). The agent itself sets `cluster` and `scoreName`; what the
   result says about them is ignored.
3. The first result with a name is kept; later ones with the same name are dropped (Duplicate). The
   metrics drop only later ones whose labels are all equal.
4. The value is rounded down and clamped to -100..100, the range that OCM accepts (OutOfRange):
   `dsf.api.crd.score_rules`.

Then, for all results together: if there are more label sets than one score may have, the last in
their order are left out of metrics and entries (SeriesLimit). Entries are ordered by name; if they
have too many bytes for one object, the last in that order are left out (EntryCut).

The effects of each rule are counted. A response that is malformed (a `score` that is not a number,
a label that is not text) is refused as a whole before any rule applies.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.api.crd.score_meaning import ScoreRange
from dsf.api.crd.score_rules import DefaultScore, Normalize, published_value, rounded
from dsf.api.scoring.dimension_format import PLACEHOLDERS, DimensionFormat
from dsf.api.scoring.score_conditions import LABEL_LIMIT, RULES, Adjustments, Rule
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput

MAX_SERIES = 10_000
"""Label sets that one score may have, in the metrics and in its object, unless a flag says more."""

OBJECT_BYTES = 1 << 20
"""Room for the entries; etcd accepts 1.5 MiB per object (etcd's `--max-request-bytes`)."""

Labels = tuple[str, ...]
"""Label values in the order of PLACEHOLDERS."""


@dataclass(frozen=True, slots=True)
class AddOnPlacementScoreItem:
    """One item of `status.scores`: OCM's type of this name."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One score as a metric: normalized if the scorer asks for it, neither rounded nor clamped."""

    labels: Labels
    score: float


@dataclass(frozen=True, slots=True)
class RoundScores:
    """The entries and samples that a round publishes; for each rule the results it affected.

    `results` is their number, `missing` the labels that some lacked.
    """

    entries: tuple[AddOnPlacementScoreItem, ...] = ()
    samples: tuple[MetricSample, ...] = ()
    adjusted: Mapping[Rule, int] = field(default_factory=dict)
    results: int = 0
    missing: tuple[str, ...] = ()

    @property
    def adjustments(self) -> Adjustments:
        """What the rules did, in the form that a condition says it."""
        return Adjustments(self.adjusted, self.results, len(self.entries), self.missing)


@dataclass(frozen=True, slots=True)
class ConversionSettings:
    """How the results of a scorer are converted.

    `further` are the formats of sets of scores besides the first. `declared` is the range of the
    scores before they are normalized. `series` limits the label sets, `object_bytes` the size of
    the entries in the object.
    """

    cluster: str
    score_name: str
    dimension: DimensionFormat
    normalize: Normalize | None = None
    declared: ScoreRange | None = None
    series: int = MAX_SERIES
    object_bytes: int = OBJECT_BYTES
    further: tuple[DimensionFormat, ...] = ()

    def format_of(self, labels: Mapping[str, str]) -> DimensionFormat:
        """Return the format that names the most labels of a result, and none that it lacks.

        That is the first of several; of results that fit no format it is `dimension`.
        """
        if not self.further:
            return self.dimension
        formats = (self.dimension, *self.further)
        fitting = [one for one in formats if labels.keys() >= set(one.named)]
        return max(fitting, key=lambda one: len(set(one.named)), default=self.dimension)


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


class JudgedResult(NamedTuple):
    """One result after the rules; `value` is None if it becomes no entry.

    `missing` are the labels that the dimension format names and the result lacks.
    """

    labels: Labels
    score: float
    name: str
    value: int | None
    rules: tuple[Rule, ...]
    missing: tuple[str, ...] = ()


def convert(results: Iterable[ScoringResult], form: ConversionSettings) -> RoundScores:
    """Return what is published of the results of a response."""
    return assemble(judge(results, form), form)


def judge(results: Iterable[ScoringResult], form: ConversionSettings) -> list[JudgedResult]:
    """Apply the rules to each result, in the order of the response."""
    names, verdicts = set[str](), list[JudgedResult]()
    for result in results:
        verdict = _verdict(result, form, names)
        if verdict.value is not None:
            names.add(verdict.name)
        verdicts.append(verdict)
    return verdicts


def assemble(verdicts: Iterable[JudgedResult], form: ConversionSettings) -> RoundScores:
    """Return what is published of judged results, within the limits of a score and an object."""
    adjusted = Counter[Rule]()
    samples, entries = dict[Labels, float](), dict[str, JudgedResult]()
    missing, results = set[str](), 0
    for verdict in verdicts:
        results += 1
        adjusted.update(verdict.rules)
        missing.update(verdict.missing)
        if math.isfinite(verdict.score):
            samples.setdefault(verdict.labels, verdict.score)
        if verdict.value is not None:
            entries[verdict.name] = verdict
    kept = sorted(samples)[: form.series]
    adjusted["SeriesLimit"] = len(samples) - len(kept)
    if len(kept) < len(samples):
        within = frozenset(kept)
        entries = {name: one for name, one in entries.items() if one.labels in within}
    fitting = _fitting(sorted(entries), form.object_bytes)
    adjusted["EntryCut"] = len(entries) - len(fitting)
    return RoundScores(
        entries=tuple(AddOnPlacementScoreItem(name, entries[name].value or 0) for name in fitting),
        samples=tuple(MetricSample(labels, samples[labels]) for labels in kept),
        adjusted={rule: adjusted[rule] for rule in RULES if adjusted[rule]},
        results=results,
        missing=tuple(sorted(missing)),
    )


def forecasts_of(
    results: Iterable[ScoringResult], verdicts: Iterable[JudgedResult], scores: RoundScores
) -> dict[str, float]:
    """Return, by entry that is published, the score in the scorer's own units."""
    published = {entry.name for entry in scores.entries}
    return {
        verdict.name: result.score
        for result, verdict in zip(results, verdicts, strict=True)
        if verdict.value is not None and verdict.name in published
    }


def entry_of(metric: Mapping[str, str], form: ConversionSettings) -> str:
    """Return the name of the entry of a result, or of another series, with these labels."""
    return form.format_of(metric).render(_cut(_stamped(metric, form)))


def _stamped(metric: Mapping[str, str], form: ConversionSettings) -> Mapping[str, str]:
    return {**metric, "cluster": form.cluster, "scoreName": form.score_name}


def _cut(stamped: Mapping[str, str]) -> dict[str, str]:
    return {label: stamped.get(label, "")[:LABEL_LIMIT] for label in PLACEHOLDERS}


def _verdict(result: ScoringResult, form: ConversionSettings, taken: set[str]) -> JudgedResult:
    stamped = _stamped(result.metric, form)
    labels = _cut(stamped)
    score = _scaled(result.score, form.normalize)
    if not math.isfinite(score):
        return JudgedResult(tuple(labels.values()), score, "", None, ("NotFinite",))
    dimension = form.format_of(result.metric)
    missing = tuple(label for label in dimension.named if label not in stamped)
    applied: dict[Rule, bool] = {
        "OutsideDeclaredRange": form.declared is not None
        and not form.declared.contains(result.score),
        "LabelCut": any(len(stamped.get(label, "")) > LABEL_LIMIT for label in PLACEHOLDERS),
        "MissingLabel": bool(missing),
    }
    name = dimension.render(labels)
    value: int | None = None
    if name in taken:
        applied["Duplicate"] = True
    else:
        value = published_value(score)
        applied["OutOfRange"] = value != rounded(score)
    rules = tuple(rule for rule, applies in applied.items() if applies)
    return JudgedResult(tuple(labels.values()), score, name, value, rules, missing)


def _scaled(score: float, scale: Normalize | None) -> float:
    if scale and math.isfinite(score):
        score = scale.of(score)
    return score + 0.0  # makes 0 of -0


def _fitting(names: list[str], room: int) -> list[str]:
    for index, name in enumerate(names):
        room -= _size(name)
        if room < 0:
            return names[:index]
    return names


def _size(name: str) -> int:
    """Return the bytes of an entry: once in `status.scores`, once as a key of managedFields."""
    text = json.dumps(name)
    entry = len('{"name":,"value":-100},') + len(text)
    return (
        entry + len('"k:{\\"name\\":}":{".":{},"f:name":{},"f:value":{}},') + len(json.dumps(text))
    )


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
