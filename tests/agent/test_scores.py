import json
import math

from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.scores import LABEL_LIMIT, Entry, Scores, convert
from dsf.api.dimension import PLACEHOLDERS, DimensionFormat
from dsf.api.invalid import Invalid
from dsf.api.scoring_api import ScoreResult


def dimension(text: str = "${app};${device}") -> DimensionFormat:
    parsed = DimensionFormat.parse(text)
    assert not isinstance(parsed, Invalid)
    return parsed


def result(score: float, **metric: str) -> ScoreResult:
    return ScoreResult(metric=metric, score=score)


def converted(*results: ScoreResult, format_: str = "${app}", **changes: int) -> Scores:
    return convert(
        results, cluster="cluster1", score_name="my_score", dimension=dimension(format_), **changes
    )


def test_a_score_is_rounded_down() -> None:
    scores = converted(result(12.9, app="a"), result(-12.1, app="b"), result(-0.0, app="c"))
    assert scores.entries == (Entry("a", 12), Entry("b", -13), Entry("c", 0))


def test_a_score_out_of_range_is_clamped_and_counted() -> None:
    scores = converted(
        result(100.9, app="a"),
        result(101, app="b"),
        result(-100.1, app="c"),
        result(1e308, app="d"),
    )
    assert [entry.value for entry in scores.entries] == [100, 100, -100, 100]
    assert scores.clamped == 3


def test_metrics_keep_the_score_as_it_is() -> None:
    scores = converted(result(123.45, app="a"))
    assert scores.samples[0].score == 123.45


def test_scores_that_are_not_finite_are_dropped_and_counted() -> None:
    scores = converted(result(math.nan), result(math.inf), result(-math.inf), result(1, app="a"))
    assert scores.entries == (Entry("a", 1),)
    assert scores.not_finite == 3
    assert len(scores.samples) == 1


def test_the_agent_itself_names_cluster_and_score() -> None:
    lying = result(1, cluster="other", scoreName="other", app="a")
    scores = converted(lying, format_="${cluster}/${scoreName}/${app}")
    assert scores.entries[0].name == "cluster1/my_score/a"
    assert dict(zip(PLACEHOLDERS, scores.samples[0].labels, strict=True))["cluster"] == "cluster1"


def test_a_missing_label_is_empty() -> None:
    assert converted(result(1, app="a"), format_="${app};${pod}").entries[0].name == "a;"


def test_labels_are_cut() -> None:
    scores = converted(result(1, app="x" * 300))
    assert scores.entries[0].name == "x" * LABEL_LIMIT
    assert max(map(len, scores.samples[0].labels)) == LABEL_LIMIT


def test_the_first_of_a_name_counts() -> None:
    scores = converted(result(2, app="a", pod="x"), result(1, app="a", pod="y"))
    assert scores.entries == (Entry("a", 2),)
    assert scores.duplicates == 1
    assert [sample.score for sample in scores.samples] == [2, 1]


def test_a_metric_never_has_the_same_labels_twice() -> None:
    scores = converted(result(2, app="a", other="x"), result(1, app="a", other="y"))
    assert [sample.score for sample in scores.samples] == [2]


def test_too_many_entries_are_cut_at_the_end_of_their_order() -> None:
    results = [result(n, app=f"app{n:04}") for n in range(1000)]
    scores = converted(*reversed(results), object_bytes=10_000)
    assert 0 < len(scores.entries) < 1000
    assert scores.cut == 1000 - len(scores.entries)
    assert [e.name for e in scores.entries] == [f"app{n:04}" for n in range(len(scores.entries))]
    assert len(scores.samples) == 1000


RESULTS = st.lists(
    st.builds(
        ScoreResult,
        metric=st.dictionaries(
            st.sampled_from([*PLACEHOLDERS, "instance"]), st.text(max_size=5), max_size=4
        ),
        score=st.floats(),
    ),
    max_size=30,
)


@given(RESULTS)
def test_what_comes_out_is_always_accepted_by_the_api(results: list[ScoreResult]) -> None:
    scores = converted(*results, format_="${app};${device}")
    names = [entry.name for entry in scores.entries]
    assert names == sorted(set(names))
    assert all(type(e.value) is int and -100 <= e.value <= 100 for e in scores.entries)
    assert len(names) + scores.not_finite + scores.duplicates + scores.cut == len(results)
    labels = [sample.labels for sample in scores.samples]
    assert len(set(labels)) == len(labels)
    assert all(math.isfinite(sample.score) for sample in scores.samples)


@given(st.floats(-100, 100))
def test_within_the_range_the_value_is_the_floor(score: float) -> None:
    value = converted(result(score)).entries[0].value
    assert value <= score < value + 1


@given(st.permutations([result(n / 3, app=f"a{n}") for n in range(8)]))
def test_the_order_of_the_results_does_not_matter(results: list[ScoreResult]) -> None:
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
