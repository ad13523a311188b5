"""Text that shows where each value of a round came from, for people who write scorers."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsf.agent.failure import Failure, Stage
from dsf.agent.score.expiry import validity
from dsf.agent.score.result_rules import ConversionSettings, JudgedResult, RoundScores, judge
from dsf.agent.wire.foreign_text import NO_SECRETS
from dsf.agent.wire.http_answer import display_url
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api import names
from dsf.api.crd.score_rules import rounded
from dsf.api.scoring.dimension_format import PLACEHOLDERS, STAMPED
from dsf.api.scoring.score_conditions import Rule
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import counted, escaped
from dsf.cli.output import TextTable

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class RoundEvidence:
    """The inputs of a round; empty for stages that were not reached.

    `called` tells whether the scoring API is called if the source does not fail.
    `endpoints` are the URLs that were asked for series, source by source, empty where no server
    is asked. They differ from the scorer's own if `--prometheus-url` replaces those.
    """

    endpoints: Sequence[str] = ()
    series: Sequence[EncodedSeries] = ()
    results: Sequence[ScoringResult] = ()
    form: ConversionSettings | None = None
    called: bool = True


def explain(
    summary: ScorerSummary,
    evidence: RoundEvidence,
    scores: RoundScores | None,
    failure: Failure | None,
) -> str:
    """Return what was sent to a scorer, what it answered, and what each result became."""
    facts = [
        *_source(summary, evidence, failure),
        *_context(summary),
        *_stated("params", summary.scoring_params),
        ("scoring", _scoring(summary, evidence, failure)),
        *([("range", f"{summary.scoring_range} declared")] if summary.scoring_range else []),
        ("normalize", str(summary.scoring_normalize or "none: scores count as they are")),
        *(("format", form) for form in summary.dimension_formats),
        ("on failure", str(summary.scoring_on_failure or "Expire")),
        *_stated("default", summary.scoring_default_score),
        *_stated("forecast", summary.forecast),
        *_published(summary, evidence, scores),
    ]
    width = max(len(name) for name, _ in facts)
    lines = [f"scorer {summary.name}", *(f"  {name.ljust(width)}  {fact}" for name, fact in facts)]
    text = list(map(escaped, lines))
    if evidence.form and scores is not None and evidence.results:
        text += ["", _table(evidence.form, evidence.results, scores)]
    return "\n".join(text) + "\n"


def _source(
    summary: ScorerSummary, evidence: RoundEvidence, failure: Failure | None
) -> Iterator[tuple[str, str]]:
    for place, one in enumerate(summary.single_sources):
        name = one.source_name
        series = [each for each in evidence.series if each.source == name]
        endpoint = evidence.endpoints[place] if evidence.endpoints else ""
        named = f"{name}: " if name else ""
        where = f" {display_url(endpoint)}" if endpoint else ""
        yield "source", f"{named}{one.source_type}{where}: {_sent(series, name, failure)}"
        if one.source_query:
            window = f"last {one.source_range} s, one sample in {one.source_step} s"
            when = window if one.source_range else "instant value"
            yield "query", f"{NO_SECRETS.line(one.source_query)} ({when})"


def _sent(series: Sequence[EncodedSeries], source: str, failure: Failure | None) -> str:
    """Return what became of a source; `source` is empty for the only one."""
    if failure and failure.stage == "source" and failure.source != source:
        return "not used, as another source failed"
    samples = sum(1 if one.instant else len(json.loads(bytes(one.values))) for one in series)
    sent = f"{len(series)} series, {counted(samples, 'sample')} sent"
    return _failed(failure, "source") or sent


def _scoring(summary: ScorerSummary, evidence: RoundEvidence, failure: Failure | None) -> str:
    answered = _failed(failure, "scoring") or counted(len(evidence.results), "result")
    called = evidence.called and not _failed(failure, "source")
    outcome = answered if called else "not called"
    return f"{display_url(summary.scoring_endpoint)}: {outcome}"


def _context(summary: ScorerSummary) -> Iterator[tuple[str, str]]:
    """Yield what the body of the call says besides series."""
    asked = summary.context
    if asked is None:
        return
    parts = ["names of cluster, score and scorer"] if asked.cluster else []
    values = (summary.context_labels | summary.context_claims).items()
    parts += [NO_SECRETS.line(f"{key}={value}") for key, value in values]
    if asked.workloads is not None:
        parts.append(counted(len(summary.context_workloads), "workload"))
    if asked.devices:
        parts.append(counted(len(summary.context_devices), "device"))
    yield "context", ", ".join(parts) or "nothing of what is asked for"


def _stated(name: str, value: object) -> Iterator[tuple[str, str]]:
    if value:
        yield name, NO_SECRETS.line(json.dumps(value) if isinstance(value, dict) else str(value))


def _failed(failure: Failure | None, stage: Stage) -> str:
    return f"failed, {failure.reason}" if failure and failure.stage == stage else ""


def _published(
    summary: ScorerSummary, evidence: RoundEvidence, scores: RoundScores | None
) -> Iterator[tuple[str, str]]:
    if scores is None or evidence.form is None:
        return
    valid = f"valid for {validity(summary.scoring_interval).total_seconds():g} s"
    if summary.score_destination == "None":
        yield "published", "only on /metrics (scoreDestination None)"
        return
    made_of = f"{len(scores.entries)} of {counted(len(evidence.results), 'result')}"
    if summary.scoring_default_score and not evidence.results:
        made_of = f"the default score, as there is nothing to score, {len(scores.entries)} times"
    entries = f"{made_of}, {valid}"
    name = f"{evidence.form.cluster}/{names.score_object_name(summary.score_name)}"
    yield "published", f"AddOnPlacementScore {name}: {entries}"


def _table(form: ConversionSettings, results: Sequence[ScoringResult], scores: RoundScores) -> str:
    header = ["labels", "score", "normalized", "floor", "value", "entry", "rules"]
    verdicts = judge(results, form)
    return str(TextTable(header, [*_rows(form, results, verdicts, scores)]))


def _rows(
    form: ConversionSettings,
    results: Iterable[ScoringResult],
    verdicts: Iterable[JudgedResult],
    scores: RoundScores,
) -> Iterator[list[str]]:
    entries = {entry.name for entry in scores.entries}
    labels = {sample.labels for sample in scores.samples}
    for result, verdict in zip(results, verdicts, strict=True):
        cut = _cut(verdict, entries, labels)
        there = verdict.value is not None and cut is None
        yield [
            _labels(verdict),
            f"{result.score:g}",
            f"{verdict.score:g}" if form.normalize else NOTHING,
            str(rounded(verdict.score)) if math.isfinite(verdict.score) else NOTHING,
            str(verdict.value) if there else NOTHING,
            NO_SECRETS.line(verdict.name) or '""' if there else NOTHING,
            ", ".join([*verdict.rules, *([cut] if cut else [])]) or NOTHING,
        ]


def _cut(verdict: JudgedResult, entries: set[str], labels: set[tuple[str, ...]]) -> Rule | None:
    if verdict.value is None or verdict.name in entries:
        return None
    return "EntryCut" if verdict.labels in labels else "SeriesLimit"


def _labels(verdict: JudgedResult) -> str:
    named = zip(PLACEHOLDERS, verdict.labels, strict=True)
    labels = [f"{name}={value}" for name, value in named if value and name not in STAMPED]
    return NO_SECRETS.line(",".join(labels)) or NOTHING
