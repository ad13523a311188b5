import json
import math
from typing import Any

import pytest
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
from dsf.api.crd.score_meaning import ScoreRange
from dsf.api.crd.score_rules import Normalize
from dsf.api.scoring.dimension_format import PLACEHOLDERS, DimensionFormat
from dsf.api.scoring.score_conditions import LABEL_LIMIT, RULES, Adjustments
from dsf.api.untrusted_text import InvalidInput
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


Result = tuple[float, dict[str, str]]
LONG = "x" * LABEL_LIMIT


def apps(*scores: float) -> list[Result]:
    """Return a result for each score, of the apps a, b and so on."""
    return [(score, {"app": app}) for score, app in zip(scores, "abcde", strict=False)]


def formats(*texts: str) -> dict[str, Any]:
    return {"further": tuple(map(dimension, texts))}


SCALE = {"normalize": Normalize(min=0, max=4), "declared": ScoreRange(min=0, max=4)}
WATTS = {"normalize": Normalize(min=100, max=500, invert=True)}
TINY = {"normalize": Normalize(min=0, max=1e-300)}
MORE = [
    (1, {"node": "n1", "pod": "p"}),
    (2, {"node": "n1", "pod": "q", "app": "a"}),
    (3, {"node": "n1"}),
    (4, {"node": "n1", "app": "a"}),
    (5, {"zone": "z"}),
]
CASES: dict[str, tuple[list[Result], dict[str, Any], dict[str, int], dict[str, int]]] = {
    # name: the results, how they are converted, the entries, and the results that rules affected
    "rounded down": (apps(12.9, -12.1, -0.0), {}, {"a": 12, "b": -13, "c": 0}, {}),
    "clamped": (
        apps(100.9, 101, -100.1, 1e308),
        {},
        {"a": 100, "b": 100, "c": -100, "d": 100},
        {"OutOfRange": 3},
    ),
    "not finite": (apps(math.nan, math.inf, -math.inf, 1), {}, {"d": 1}, {"NotFinite": 3}),
    "outside the declared range": (
        apps(-1, 0, 4, 4.5, math.nan),
        SCALE,
        {"a": -25, "b": 0, "c": 100, "d": 100},
        {"NotFinite": 1, "OutsideDeclaredRange": 2, "OutOfRange": 1},
    ),
    "a range with an open end": (
        apps(-1, 0, 4.5),
        {"declared": ScoreRange(min=0)},
        {"a": -1, "b": 0, "c": 4},
        {"OutsideDeclaredRange": 1},
    ),
    "units of its own": (
        apps(100, 301, 500, 2000),
        WATTS,
        {"a": 100, "b": 49, "c": 0, "d": -100},
        {"OutOfRange": 1},
    ),
    "no scale can hold it": (apps(1e300, 0), TINY, {"b": 0}, {"NotFinite": 1}),
    "a label is missing": (
        [(1, {"app": "a"}), (1, {"app": "b", "pod": ""})],
        {"format_": "${app};${pod}"},
        {"a;": 1, "b;": 1},
        {"MissingLabel": 1},
    ),
    "a label is too long": ([(1, {"app": f"{LONG}y"})], {}, {LONG: 1}, {"LabelCut": 1}),
    "a label of no format is too long": (
        [(1, {"app": "a", "instance": f"{LONG}y"})],
        {},
        {"a": 1},
        {},
    ),
    "the same once cut": (
        [(2, {"app": f"{LONG}y"}), (1, {"app": f"{LONG}z"})],
        {},
        {LONG: 2},
        {"LabelCut": 2, "Duplicate": 1},
    ),
    "a dropped result takes no name": (
        [(math.nan, {}), (1, {"app": ""})],
        {},
        {"": 1},
        {"NotFinite": 1},
    ),
    "the format that names the most labels": (
        MORE,
        {
            "format_": "${node}-${pod}",
            **formats("${scoreName}", "${node}", "node ${node}", "${app}"),
        },
        {"n1-p": 1, "n1-q": 2, "n1": 3, "my_score": 5},
        {"Duplicate": 1},
    ),
    "no format fits": ([(1, {"zone": "z"})], formats("${node}"), {"": 1}, {"MissingLabel": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_results_become_entries_by_the_rules(name: str) -> None:
    results, changes, entries, adjusted = CASES[name]
    scores = converted(*(scoring_result(*one) for one in results), **changes)
    assert {entry.name: entry.value for entry in scores.entries} == entries
    assert scores.adjusted == adjusted
    assert all(len(label) <= LABEL_LIMIT for one in scores.samples for label in one.labels)


def test_the_labels_that_results_lack_are_named() -> None:
    scores = converted(result(1, pod="p"), result(2, pod="p"), format_="${node};${pod};${app}")
    assert scores.adjustments == Adjustments(
        {"MissingLabel": 2, "Duplicate": 1}, 2, 1, ("app", "node")
    )


def test_metrics_keep_the_score_as_it_is_or_normalized() -> None:
    assert converted(result(123.45, app="a")).samples[0].score == 123.45
    assert converted(result(301, app="a"), **WATTS).samples[0].score == 49.75


def test_the_agent_itself_names_cluster_and_score() -> None:
    lying = result(1, cluster="other", scoreName="other", app="a")
    scores = converted(lying, format_="${cluster}/${scoreName}/${app}")
    assert scores.entries[0].name == "cluster1/my_score/a"
    assert dict(zip(PLACEHOLDERS, scores.samples[0].labels, strict=True))["cluster"] == "cluster1"


def test_minus_zero_is_zero() -> None:
    assert math.copysign(1, converted(result(-0.0, app="a")).samples[0].score) == 1


def test_more_label_sets_than_a_score_may_have_are_left_out_in_their_order() -> None:
    results = [result(n, app=f"app{n:02}") for n in range(50)]
    scores = converted(*reversed(results), series=20)
    assert [e.name for e in scores.entries] == [f"app{n:02}" for n in range(20)]
    assert len(scores.samples) == 20
    assert scores.adjusted == {"SeriesLimit": 30}


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
