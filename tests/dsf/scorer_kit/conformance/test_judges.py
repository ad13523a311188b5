"""Whatever a scoring API answers, a check has findings, and never an exception."""

import json

from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.scoring_answer import parse_scoring_answer
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.snapshot.registered_scorer import ProbeResult
from dsf.scorer_kit.conformance.checks import CHECKS, ConformanceCheck
from dsf.scorer_kit.conformance.evidence import (
    CallCounts,
    CallOutcome,
    CheckInput,
    CheckResult,
    CheckSettings,
    ConformanceReport,
    Evidence,
    Finding,
)
from dsf.scorer_kit.invented_series import forms_of, invented
from dsf.scorer_kit.scorer_target import NamedApi, ScorerTarget
from tests.dsf.scorer_kit.scorers import config

URL = "http://scorer/scoring"
SUMMARY = ScorerSummary(
    name="s",
    score_name="s",
    source_type="Prometheus",
    scoring_endpoint=URL,
    scoring_interval=30,
    score_dimension_format="${pod}",
)
FORMS = forms_of(SUMMARY, 1_700_000_000)
GIVEN = CheckInput(FORMS, invented(FORMS, 2), CheckSettings(series=2, samples=2), False)

labels = st.dictionaries(st.sampled_from(["node", "app", "pod", "meta", "x"]), st.text(max_size=5))
scores = st.one_of(st.floats(), st.integers(), st.sampled_from(["NaN", "1e400", "-Inf"]))
results = st.lists(st.fixed_dictionaries({"metric": labels, "score": scores}), max_size=4)
anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
bodies = st.one_of(
    results.map(lambda found: json.dumps({"results": found}).encode()),
    anything.map(lambda document: json.dumps({"results": document}).encode()),
    st.binary(max_size=20),
)
statuses = st.sampled_from([200, 200, 204, 302, 400, 401, 413, 422, 500, 503])
FAILURES = [Failure("scoring", reason, "why") for reason in ("Unreachable", "ResponseTooLarge")]


@st.composite
def outcomes(draw: st.DrawFn) -> CallOutcome:
    if draw(st.integers(0, 9)) == 0:
        failure = draw(st.sampled_from(FAILURES))
        return CallOutcome(failure, failure, 1.0)
    answer = HttpAnswer(draw(statuses), draw(st.text(max_size=9)), draw(bodies))
    return CallOutcome(answer, parse_scoring_answer(URL, answer, 100), 1.0)


@st.composite
def scored(draw: st.DrawFn) -> CallOutcome:
    body = json.dumps({"results": draw(results)}).encode()
    answer = HttpAnswer(200, "application/json", body)
    return CallOutcome(answer, parse_scoring_answer(URL, answer, 100), 1.0)


def judged(
    item: ConformanceCheck, named: NamedApi, typical: CallOutcome, found: list[CallOutcome]
) -> tuple[Finding, ...]:
    served = ScorerConfig.model_validate(config(""))
    target = ScorerTarget(named, ProbeResult(None, served), SUMMARY)
    calls = CallCounts()
    calls.add(typical)
    return tuple(item.judge(Evidence(target, 10.0, calls, found)))


@given(st.data(), st.sampled_from(CHECKS), st.sampled_from(["", "${pod}", "${cluster}"]))
def test_a_judge_has_an_opinion_of_every_answer(
    data: st.DataObject, item: ConformanceCheck, form: str
) -> None:
    number = len(item.calls(GIVEN)) if item.calls else 0
    typical = data.draw(scored() if item.needs in {"results", "own series"} else outcomes())
    answers = [data.draw(outcomes()) for _ in range(number)]
    named = NamedApi("http://scorer/config", dimension_format=form)
    findings = judged(item, named, typical, answers)
    assert all(finding.what and finding.fix for finding in findings)
    result = CheckResult(item.name, item.promise, findings)
    report = ConformanceReport("http://scorer/config", "s", form, [result], 1, 1.0)
    assert report.passed == ("FAIL" not in report.text())
    json.dumps(report.document(), allow_nan=False)
