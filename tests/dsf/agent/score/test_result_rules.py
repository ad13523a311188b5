import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.score.result_rules import (
    AddOnPlacementScoreItem,
    ConversionSettings,
    RoundScores,
    convert,
    judge,
)
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.api.crd.published_value import Normalize
from dsf.api.crd.score_meaning import ScoreRange
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.dimension_format import PLACEHOLDERS, DimensionFormat
from dsf.api.scoring.score_conditions import LABEL_LIMIT, RULES, Adjustments
from tests.dsf.agent.builders import scoring_result


def dimension(text: str = "${app};${device}") -> DimensionFormat:
    parsed = DimensionFormat.parse(text)
    assert not isinstance(parsed, InvalidInput)
    return parsed


def result(score: float, **metric: str) -> ScoringResult:
    return scoring_result(score, metric)


def form(format_: str = "${app}", **changes: Any) -> ConversionSettings:
    return ConversionSettings("cluster1", "my_score", dimension(format_), **changes)


def converted(*results: ScoringResult, format_: str = "${app}", **changes: Any) -> RoundScores:
    return convert(results, form(format_, **changes))


def test_a_score_is_rounded_down() -> None:
    scores = converted(result(12.9, app="a"), result(-12.1, app="b"), result(-0.0, app="c"))
    assert scores.entries == (
        AddOnPlacementScoreItem("a", 12),
        AddOnPlacementScoreItem("b", -13),
        AddOnPlacementScoreItem("c", 0),
    )


def test_a_score_outside_the_declared_range_is_published_and_counted() -> None:
    results = [result(score, app=str(score)) for score in (-1.0, 0.0, 4.0, 4.5, math.nan)]
    whole = {"normalize": Normalize(min=0, max=4), "declared": ScoreRange(min=0, max=4)}
    scores = converted(*results, **whole)
    assert [entry.value for entry in scores.entries] == [-25, 0, 100, 100]
    assert scores.adjusted == {"NotFinite": 1, "OutsideDeclaredRange": 2, "OutOfRange": 1}
    open_end = converted(*results, declared=ScoreRange(min=0))
    assert open_end.adjusted["OutsideDeclaredRange"] == 1


def test_the_labels_that_results_lack_are_named() -> None:
    scores = converted(result(1, pod="p"), result(2, pod="p"), format_="${node};${pod};${app}")
    assert scores.adjustments == Adjustments(
        {"MissingLabel": 2, "Duplicate": 1}, 2, 1, ("app", "node")
    )


def test_a_result_is_an_entry_of_the_format_that_names_the_most_of_its_labels() -> None:
    further = tuple(map(dimension, ("${scoreName}", "${node}", "node ${node}", "${app}")))
    scores = converted(
        result(1, node="n1", pod="p"),
        result(2, node="n1", pod="q", app="a"),
        result(3, node="n1"),
        result(4, node="n1", app="a"),
        result(5, zone="z"),
        format_="${node}-${pod}",
        further=further,
    )
    assert {one.name: one.value for one in scores.entries} == {
        "n1-p": 1,
        "n1-q": 2,
        "n1": 3,
        "my_score": 5,
    }
    assert scores.adjusted == {"Duplicate": 1}


def test_a_result_that_fits_no_format_is_one_of_the_first() -> None:
    scores = converted(result(1, zone="z"), format_="${app}", further=(dimension("${node}"),))
    assert [one.name for one in scores.entries] == [""]
    assert scores.missing == ("app",)


def test_a_score_out_of_range_is_clamped_and_counted() -> None:
    scores = converted(
        result(100.9, app="a"),
        result(101, app="b"),
        result(-100.1, app="c"),
        result(1e308, app="d"),
    )
    assert [entry.value for entry in scores.entries] == [100, 100, -100, 100]
    assert scores.adjusted == {"OutOfRange": 3}


def test_metrics_keep_the_score_as_it_is() -> None:
    scores = converted(result(123.45, app="a"))
    assert scores.samples[0].score == 123.45


def test_scores_that_are_not_finite_are_dropped_and_counted() -> None:
    scores = converted(result(math.nan), result(math.inf), result(-math.inf), result(1, app="a"))
    assert scores.entries == (AddOnPlacementScoreItem("a", 1),)
    assert scores.adjusted == {"NotFinite": 3}
    assert len(scores.samples) == 1


def test_the_agent_itself_names_cluster_and_score() -> None:
    lying = result(1, cluster="other", scoreName="other", app="a")
    scores = converted(lying, format_="${cluster}/${scoreName}/${app}")
    assert scores.entries[0].name == "cluster1/my_score/a"
    assert dict(zip(PLACEHOLDERS, scores.samples[0].labels, strict=True))["cluster"] == "cluster1"


def test_a_missing_label_is_empty() -> None:
    scores = converted(result(1, app="a"), result(1, app="b", pod=""), format_="${app};${pod}")
    assert [entry.name for entry in scores.entries] == ["a;", "b;"]
    assert scores.adjusted == {"MissingLabel": 1}


def test_labels_are_cut() -> None:
    scores = converted(result(1, app="x" * 300))
    assert scores.entries[0].name == "x" * LABEL_LIMIT
    assert max(map(len, scores.samples[0].labels)) == LABEL_LIMIT
    assert scores.adjusted == {"LabelCut": 1}


def test_labels_that_nothing_is_made_of_are_not_counted() -> None:
    assert converted(result(1, app="a", instance="x" * 300)).adjusted == {}


def test_labels_that_are_the_same_once_cut_are_duplicates() -> None:
    scores = converted(result(2, app="x" * 300), result(1, app="x" * 301))
    assert [entry.value for entry in scores.entries] == [2]
    assert scores.adjusted == {"LabelCut": 2, "Duplicate": 1}


def test_minus_zero_is_zero() -> None:
    assert math.copysign(1, converted(result(-0.0, app="a")).samples[0].score) == 1


def test_a_scorers_own_units_become_0_to_100() -> None:
    watts = Normalize(min=100, max=500, invert=True)
    scores = converted(
        result(100, app="a"),
        result(301, app="b"),
        result(500, app="c"),
        result(2000, app="d"),
        normalize=watts,
    )
    assert [entry.value for entry in scores.entries] == [100, 49, 0, -100]
    assert [sample.score for sample in scores.samples] == [100, 49.75, 0, -375]
    assert scores.adjusted == {"OutOfRange": 1}


def test_a_score_that_no_scale_can_hold_is_dropped() -> None:
    tiny = Normalize(min=0, max=1e-300)
    scores = converted(result(1e300, app="a"), result(0, app="b"), normalize=tiny)
    assert scores.entries == (AddOnPlacementScoreItem("b", 0),)
    assert scores.adjusted == {"NotFinite": 1}


def test_more_label_sets_than_a_score_may_have_are_left_out_in_their_order() -> None:
    results = [result(n, app=f"app{n:02}") for n in range(50)]
    scores = converted(*reversed(results), series=20)
    assert [e.name for e in scores.entries] == [f"app{n:02}" for n in range(20)]
    assert len(scores.samples) == 20
    assert scores.adjusted == {"SeriesLimit": 30}


def test_a_dropped_result_takes_no_name() -> None:
    scores = converted(result(math.nan), result(1, app=""))
    assert scores.entries == (AddOnPlacementScoreItem("", 1),)


def test_every_result_has_its_verdict() -> None:
    results = [result(math.inf), result(101, app="a"), result(3, app="a"), result(4)]
    found = judge(results, form())
    assert [(v.name, v.value, v.rules) for v in found] == [
        ("", None, ("NotFinite",)),
        ("a", 100, ("OutOfRange",)),
        ("a", None, ("Duplicate",)),
        ("", 4, ("MissingLabel",)),
    ]


def test_the_first_of_a_name_counts() -> None:
    scores = converted(result(2, app="a", pod="x"), result(1, app="a", pod="y"))
    assert scores.entries == (AddOnPlacementScoreItem("a", 2),)
    assert scores.adjusted == {"Duplicate": 1}
    assert [sample.score for sample in scores.samples] == [2, 1]


def test_a_metric_never_has_the_same_labels_twice() -> None:
    scores = converted(result(2, app="a", other="x"), result(1, app="a", other="y"))
    assert [sample.score for sample in scores.samples] == [2]


def test_too_many_entries_are_cut_at_the_end_of_their_order() -> None:
    results = [result(n, app=f"app{n:04}") for n in range(1000)]
    scores = converted(*reversed(results), object_bytes=10_000)
    assert 0 < len(scores.entries) < 1000
    assert scores.adjusted["EntryCut"] == 1000 - len(scores.entries)
    assert [e.name for e in scores.entries] == [f"app{n:04}" for n in range(len(scores.entries))]
    assert len(scores.samples) == 1000


RESULTS = st.lists(
    st.builds(
        scoring_result,
        metric=st.dictionaries(
            st.sampled_from([*PLACEHOLDERS, "instance"]), st.text(max_size=5), max_size=4
        ),
        score=st.floats(),
    ),
    max_size=30,
)


@given(RESULTS, st.none() | st.builds(Normalize, min=st.floats(-1e308, 0), max=st.floats(1, 1e308)))
def test_what_comes_out_is_always_accepted_by_the_api(
    results: list[ScoringResult], normalize: Normalize | None
) -> None:
    scores = converted(*results, format_="${app};${device}", normalize=normalize)
    names = [entry.name for entry in scores.entries]
    assert names == sorted(set(names))
    assert all(type(e.value) is int and -100 <= e.value <= 100 for e in scores.entries)
    dropped = [scores.adjusted.get(rule, 0) for rule in ("NotFinite", "Duplicate", "EntryCut")]
    assert len(names) + sum(dropped) == len(results)
    assert set(scores.adjusted) <= set(RULES)
    assert all(scores.adjusted.values())
    labels = [sample.labels for sample in scores.samples]
    assert len(set(labels)) == len(labels)
    assert all(math.isfinite(sample.score) for sample in scores.samples)


@given(st.floats(-100, 100))
def test_within_the_range_the_value_is_the_floor(score: float) -> None:
    value = converted(result(score)).entries[0].value
    assert value <= score < value + 1


@given(st.permutations([result(n / 3, app=f"a{n}") for n in range(8)]))
def test_the_order_of_the_results_does_not_matter(results: list[ScoringResult]) -> None:
    assert converted(*results, object_bytes=500) == converted(
        *sorted(results, key=lambda r: r.score), object_bytes=500
    )


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=50), st.integers(0, 5000))
def test_the_entries_fit_into_their_room(names: list[str], room: int) -> None:
    scores = converted(*(result(1, app=name) for name in names), object_bytes=room)
    body = [{"name": entry.name, "value": entry.value} for entry in scores.entries]
    fields: list[object] = [
        {'k:{"name":' + json.dumps(e.name) + "}": {"f:value": {}}} for e in scores.entries
    ]
    assert len(json.dumps(body, separators=(",", ":"))) - 2 <= room
    size = len(json.dumps([body, fields], separators=(",", ":")))
    assert not scores.entries or size <= room + 10
