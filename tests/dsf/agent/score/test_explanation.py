"""The whole text of `--explain`, for rounds that ended at each stage."""

from typing import Any

from dsf.agent.failure import Failure
from dsf.agent.score.explanation import RoundEvidence, explain
from dsf.agent.score.result_rules import ConversionSettings, convert
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.crd.score_meaning import ScoreRange
from dsf.api.crd.score_rules import Normalize, OnFailure
from dsf.api.crd.scoring_params import AskedContext, AskedWorkloads
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.untrusted_text import InvalidInput
from tests.dsf.agent.builders import scoring_result, summary

SERIES = (
    EncodedSeries(b'{"pod":"a"}', b'[[1,"2"],[2,"3"]]'),
    EncodedSeries(b'{"pod":"b"}', b'[1,"2"]', instant=True),
)
PUBLISHED = "AddOnPlacementScore cluster1/sample-my-score"
ENDPOINT = "http://prometheus:9090/api/v1/query_range"


def rounded(*results: ScoringResult, **changes: Any) -> str:
    """Return the explanation of a round that published; `changes` are of the summary."""
    one = summary(**{"score_dimension_format": "${node};${pod}"} | changes)
    dimension = DimensionFormat.parse(one.score_dimension_format)
    assert not isinstance(dimension, InvalidInput)
    form = ConversionSettings(
        "cluster1",
        one.score_name,
        dimension,
        normalize=one.scoring_normalize,
        declared=one.scoring_range,
        series=3,
    )
    evidence = RoundEvidence([ENDPOINT], SERIES, results, form)
    return explain(one, evidence, convert(results, form), None)


def result(score: float, **metric: str) -> ScoringResult:
    return scoring_result(score, metric)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.partition("\n\n")[2].splitlines()]


def test_every_value_says_where_it_comes_from() -> None:
    text = rounded(
        result(250, node="n1", pod="a"),
        result(1, node="n1", pod="a"),
        result(5001, node="n1", pod="b"),
        result(0, pod="c"),
        result(3, node="n2", pod="z"),
        scoring_normalize=Normalize(min=0, max=1000, invert=True),
        scoring_on_failure=OnFailure(policy="Hold", hold_seconds=60),
    )
    assert text.partition("\n\n")[0].splitlines() == [
        "scorer sample-scorer",
        f"  source      Prometheus {ENDPOINT}: 2 series, 3 samples sent",
        "  query       up (last 3600 s, one sample in 60 s)",
        "  scoring     http://scorer.example:8000/scoring: 5 results",
        "  normalize   0..1000 inverted",
        "  format      ${node};${pod}",
        "  on failure  Hold 60 s",
        f"  published   {PUBLISHED}: 3 of 5 results, valid for 90 s",
    ]
    assert rows(text) == [
        ["LABELS", "SCORE", "NORMALIZED", "FLOOR", "VALUE", "ENTRY", "RULES"],
        ["node=n1,pod=a", "250", "75", "75", "75", "n1;a", "-"],
        ["node=n1,pod=a", "1", "99.9", "99", "-", "-", "Duplicate"],
        ["node=n1,pod=b", "5001", "-400.1", "-401", "-100", "n1;b", "OutOfRange"],
        ["pod=c", "0", "100", "100", "100", ";c", "MissingLabel"],
        ["node=n2,pod=z", "3", "99.7", "99", "-", "-", "SeriesLimit"],
    ]


def test_a_score_outside_the_declared_range_is_shown_beside_the_range() -> None:
    text = rounded(result(7, node="n1", pod="a"), scoring_range=ScoreRange(min=0, max=5))
    assert "  range       0..5 declared\n" in text
    assert rows(text)[1][-1] == "OutsideDeclaredRange"


def test_the_context_of_the_call_is_told() -> None:
    asked = AskedContext(
        cluster=True, labels=["region"], claims=["id.k8s.io"], workloads=AskedWorkloads()
    )
    text = rounded(context=asked, context_labels={"region": "eu\x1b[31m"})
    told = next(line for line in text.splitlines() if line.startswith("  context"))
    assert told.split(maxsplit=1)[1] == (
        "names of cluster, score and scorer, region=eu [31m, 0 workloads"
    )
    nothing = rounded(context=AskedContext(claims=["id.k8s.io"]))
    assert "context     nothing of what is asked for" in nothing
    assert "  context" not in rounded()


def test_scores_as_they_are_have_no_normalized_value() -> None:
    text = rounded(
        result(12.5, node="n"), result(float("nan"), node="x"), score_dimension_format="${node}"
    )
    assert "  normalize   none: scores count as they are" in text
    assert "  on failure  Expire" in text
    assert rows(text)[1:] == [
        ["node=n", "12.5", "-", "12", "12", "n", "-"],
        ["node=x", "nan", "-", "-", "-", "-", "NotFinite"],
    ]


def test_an_instant_query_and_scores_that_are_metrics_only_say_so() -> None:
    text = rounded(result(1, node="n", pod="p"), source_range=0, score_destination="None")
    assert "  query       up (instant value)" in text
    assert "  scoring     http://scorer.example:8000/scoring: 1 result\n" in text
    assert "  published   only on /metrics (scoreDestination None)" in text


def test_a_failure_is_named_at_its_stage() -> None:
    source = explain(summary(), RoundEvidence(), None, Failure("source", "TimedOut", "slow"))
    assert "  source      Prometheus: failed, TimedOut" in source
    assert "  scoring     http://scorer.example:8000/scoring: not called" in source
    scoring = explain(summary(), RoundEvidence(), None, Failure("scoring", "NotJSON", "html"))
    assert "  source      Prometheus: 0 series, 0 samples sent" in scoring
    assert "  scoring     http://scorer.example:8000/scoring: failed, NotJSON" in scoring
    assert "published" not in source + scoring
