"""What each check concludes from the outcomes of its calls."""

import math
from collections.abc import Iterator, Sequence

from dsf.agent.failure import Failure
from dsf.agent.score.result_rules import RoundScores, conversion_settings, convert
from dsf.agent.wire.http_answer import UNAUTHORIZED
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.api.untrusted_text import InvalidInput, UntrustedName, counted
from dsf.hub.snapshot.registered_scorer import ProbeFailure
from dsf.scorer_kit.conformance.evidence import JSON, CallOutcome, Evidence, Finding, error, warning
from dsf.scorer_kit.registration import suggested_format
from dsf.scorer_kit.scorer_target import CLUSTER

Findings = Iterator[Finding]

SLOW_SHARE = 0.5
"""Share of the agent's time limit above which a call is called slow."""

_CLIENT_ERROR = range(400, 500)
_UNAUTHORIZED = (401, 403)
_BUSY = 503


def health(evidence: Evidence) -> Findings:
    """Judge the health endpoint."""
    if found := evidence.target.probed.health:
        yield error(
            found.message, "answer GET /healthz, at the root of the server, with 200 within 5 s"
        )


def config(evidence: Evidence) -> Findings:
    """Judge the config document."""
    probed = evidence.target.probed
    if isinstance(probed.config, ProbeFailure):
        yield error(probed.config.message, "serve a document as in docs/reference/scoring-api.md")
    for field in probed.unknown:
        yield warning(f"the field {field} is unknown and ignored", "correct or remove it")


def registration(evidence: Evidence) -> Findings:
    """Judge whether a DynamicScorer with nothing but this configURL would work."""
    found = evidence.target.summary
    if isinstance(found, InvalidInput):
        fix = "complete the config, or set the field in the DynamicScorer"
        if found.reason == "AnotherServer":
            fix = "only the server of the URL is called: name its endpoint with --scoring-url"
        yield error(f"{found.reason}: {found.message}", fix)
    if evidence.target.config and not evidence.target.config.description:
        yield warning("the description is empty", "say what a score means, and in which unit")


def scoring(evidence: Evidence) -> Findings:
    """Judge the status of the answer to a typical request."""
    failure = _refusal(evidence.typical)
    if failure and failure.reason == UNAUTHORIZED:
        yield error(failure.message, "name the file with the token by --token-file")
    elif failure:
        yield error(failure.message, "answer POST at the path of the config with 200")


def schema(evidence: Evidence) -> Findings:
    """Judge the document that answered a typical request."""
    outcome = evidence.typical
    if isinstance(outcome.results, Failure):
        yield error(
            outcome.results.message,
            'answer {"results": [{"metric": {label: text}, "score": number}]}',
        )
        return
    kind = "" if isinstance(outcome.answer, Failure) else outcome.answer.content_type
    if kind.partition(";")[0].strip().lower() != JSON:
        said = UntrustedName(kind)
        yield warning(f"the content type is {said or 'missing'}", f"answer as {JSON}")
    if not outcome.results:
        yield warning(
            "the answer has no result, so nothing more can be checked",
            "send series that it scores with --data",
        )


def accepted(evidence: Evidence) -> Findings:
    """Judge requests that every scorer has to answer."""
    for failure in filter(None, map(_unusable, evidence.outcomes)):
        yield error(failure.message, "answer 200; leave out series without a usable score")


def not_finite(evidence: Evidence) -> Findings:
    """Judge the answer to samples that are NaN or infinite."""
    yield from accepted(evidence)
    for outcome in evidence.outcomes:
        wrong = sum(not math.isfinite(result.score) for result in _results(outcome))
        if wrong:
            yield error(
                f"{counted(wrong, 'score')} in the answer, NaN or infinite",
                "ignore such samples, and leave out a series that has no other: agents drop it",
            )


def large(evidence: Evidence) -> Findings:
    """Judge the answer to the largest request: a refusal that says so is allowed."""
    (outcome,) = evidence.outcomes
    failure = _unusable(outcome)
    if failure and (outcome.status in _CLIENT_ERROR or outcome.status == _BUSY):
        yield warning(failure.message, "accept more, or say in the README what it accepts")
    elif failure:
        yield error(failure.message, "accept more, or read the body to its end and answer 413")


def latency(evidence: Evidence) -> Findings:
    """Judge the slowest call so far against the time that the agent allows."""
    limit = f"{evidence.seconds:g} s"
    slowest = evidence.calls.slowest_seconds
    if evidence.calls.late:
        yield error(
            f"a call had no complete answer within {limit}",
            "compute less, ask for less in the query, or lengthen the interval (at most 120 s)",
        )
    elif slowest > SLOW_SHARE * evidence.seconds:
        yield warning(
            f"the slowest call took {slowest:.1f} s of {limit}", "compute less, or ask for less"
        )


def determinism(evidence: Evidence) -> Findings:
    """Judge whether two equal requests have equal answers."""
    first, second = (_by_labels(outcome) for outcome in evidence.outcomes)
    if first.keys() != second.keys():
        yield error(
            "two equal requests have results with different labels",
            "make labels from the series alone: an entry that comes and goes moves workloads",
        )
    elif changed := [key for key, score in first.items() if not _same(score, second[key])]:
        yield error(
            f"two equal requests have {counted(len(changed), 'different score')}",
            "use a fixed seed, and no state of earlier calls: a change moves workloads",
        )


def refused(evidence: Evidence) -> Findings:
    """Judge the answers to requests that are no scoring requests: a status of 4xx."""
    seen = set[str]()
    for outcome in evidence.outcomes:
        finding = _not_refused(outcome, ignores=evidence.summary.source_type == "None")
        if finding and finding.what not in seen:
            seen.add(finding.what)
            yield finding


def other_content_type(evidence: Evidence) -> Findings:
    """Judge the answers to other content types: 2xx for what is JSON, else 4xx."""
    valid, text = evidence.outcomes
    if valid.status not in _CLIENT_ERROR and (failure := _refusal(valid)):
        yield error(failure.message, "answer 415, or take the body as JSON")
    if finding := _not_refused(text, ignores=evidence.summary.source_type == "None"):
        yield finding


def survival(evidence: Evidence) -> Findings:
    """Judge the health endpoint after all wrong requests."""
    if evidence.health:
        yield error(
            f"after wrong requests: {evidence.health.message}",
            "catch errors of one request, so that the next one is served",
        )


def dimensions(evidence: Evidence) -> Findings:
    """Judge whether the labels of results make a name of its own for each."""
    results = _results(evidence.typical)
    form = evidence.target.named.dimension_format
    if not form:
        if _suggested(evidence) is None:
            yield error(
                "no labels that all results have tell them apart",
                "set some of node, namespace, pod, container, app, device and meta",
            )
        return
    adjusted = _published(evidence, results, form).adjusted
    if count := adjusted.get("MissingLabel"):
        yield error(
            f"{counted(count, 'result')} without a label that {form} names",
            "set that label, or name another with --dimension-format",
        )
    if count := adjusted.get("Duplicate"):
        yield error(
            f"{counted(count, 'result')} with the name of another, by {form}",
            "name labels that differ: only the first result with a name is published",
        )


def values(evidence: Evidence) -> Findings:
    """Judge whether the values of entries tell anything."""
    results = _results(evidence.typical)
    given = evidence.target.named.dimension_format
    form = given or _suggested(evidence)
    if form is None:
        return
    scores = _published(evidence, results, form)
    fix = "set scoring.normalize to the range that your scores can have"
    if count := scores.adjusted.get("OutOfRange"):
        yield warning(f"{counted(count, 'value')} clamped to -100..100", fix)
    if len(scores.entries) > 1 and {entry.value for entry in scores.entries} == {0}:
        yield warning("all values are 0, because scores are rounded down", fix)
    if count := scores.adjusted.get("OutsideDeclaredRange"):
        declared = evidence.summary.scoring_range
        yield warning(
            f"{counted(count, 'score')} outside the declared range {declared}",
            "correct range in the config, or the scores",
        )


def token(evidence: Evidence) -> Findings:
    """Judge the answers without a token and with a wrong one."""
    for named, outcome in zip(
        ("without a token", "with a wrong one"), evidence.outcomes, strict=True
    ):
        if outcome.status not in _UNAUTHORIZED:
            said = _refusal(outcome)
            yield error(
                f"{named}: {said.message if said else f'answered {outcome.status}'}",
                "compare the Authorization header with the token, and answer 401",
            )


def _not_refused(outcome: CallOutcome, *, ignores: bool) -> Finding | None:
    """Return what is wrong with the answer to a wrong request; a scorer may ignore its body."""
    failure = _refusal(outcome)
    if failure is None:
        find = warning if ignores else error
        return find(
            f"a wrong request was answered {outcome.status}",
            "refuse it with 400 or 422, so that mistakes are seen",
        )
    if outcome.status in _CLIENT_ERROR:
        return None
    return error(failure.message, "answer 400, 415 or 422 and a sentence that says what is wrong")


def _refusal(outcome: CallOutcome) -> Failure | None:
    """Return why a call has no answer of 2xx."""
    return None if outcome.ok else _unusable(outcome)


def _unusable(outcome: CallOutcome) -> Failure | None:
    return outcome.results if isinstance(outcome.results, Failure) else None


def _results(outcome: CallOutcome) -> Sequence[ScoringResult]:
    return () if isinstance(outcome.results, Failure) else outcome.results


def _by_labels(outcome: CallOutcome) -> dict[tuple[tuple[str, str], ...], float]:
    return {tuple(sorted(one.metric.items())): one.score for one in _results(outcome)}


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _suggested(evidence: Evidence) -> str | None:
    metrics = [result.metric for result in _results(evidence.typical)]
    return suggested_format(metrics, evidence.summary.score_dimension_formats)


def _published(evidence: Evidence, results: Sequence[ScoringResult], form: str) -> RoundScores:
    summary = evidence.summary.model_copy(update={"score_dimension_format": form})
    settings = conversion_settings(summary, CLUSTER)
    if isinstance(settings, InvalidInput):
        raise TypeError(settings.message)
    return convert(results, settings)
