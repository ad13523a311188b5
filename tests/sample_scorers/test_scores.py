"""The pure cores: sample values, the mean, the static table."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sample_scorers.prediction.score import score as prediction_score
from sample_scorers.sample.score import META
from sample_scorers.sample.score import score as sample_score
from sample_scorers.static.score import InvalidScoresFile, parse, shipped
from sample_scorers.static.score import score as static_score
from sample_scorers.wire import MAX_MAGNITUDE, ScoreResult, Series

times = st.floats(0, 253_402_300_799)
numbers = st.floats(-MAX_MAGNITUDE, MAX_MAGNITUDE)
any_value = st.floats().map(
    lambda value: {math.inf: "+Inf", -math.inf: "-Inf"}.get(
        value, repr(value).replace("nan", "NaN")
    )
)
any_series = st.builds(
    lambda metric, values: Series.model_validate({"metric": metric, "values": values}),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.lists(st.tuples(times, any_value), max_size=30),
)


def series(*values: str, **labels: str) -> Series:
    points = [(60 * position, value) for position, value in enumerate(values)]
    return Series.model_validate({"metric": labels, "values": points})


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_is_read_as_prometheus_writes_it(value: float) -> None:
    written_out = np.format_float_positional(value, trim="-")
    assert series(written_out).values == [(0, value)]
    assert series(repr(value)).values == [(0, value)]


@pytest.mark.parametrize(
    "text",
    ["", "abc", "1_0", " 1", "1e999", "infinity", "nan", "0x1", "\u0661", "1" * 401, "--1", "."],
)
def test_what_prometheus_never_writes_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="number in a string"):
        series(text)


def test_finite_samples_are_sorted_and_leave_out_what_no_score_can_be_made_of() -> None:
    values = [(3, "NaN"), (2, "+Inf"), (4, "5"), (1, "-Inf"), (0, "1e101"), (0, "2"), (5, "-1e100")]
    read = Series.model_validate({"metric": {}, "values": values})
    assert read.finite() == [(0, 2), (4, 5), (5, -1e100)]


@pytest.mark.parametrize("score", [sample_score, prediction_score])
@given(found=st.lists(any_series, max_size=4))
def test_each_series_with_a_finite_sample_gets_one_score_between_reasonable_bounds(
    score: Callable[[list[Series]], list[ScoreResult]], found: list[Series]
) -> None:
    scorable = [each for each in found if each.finite()]
    results = score(found)
    assert [{**each.metric, "meta": ""} for each in results] == [
        {**each.metric, "meta": ""} for each in scorable
    ]
    for result, scored in zip(results, scorable, strict=True):
        values = [value for _, value in scored.finite()]
        slack = 2 * (max(values) - min(values)) + 1e-9 * max(map(abs, values))
        assert min(values) - slack <= result.score <= max(values) + slack


def test_the_sample_score_is_the_mean_and_keeps_the_labels() -> None:
    assert sample_score([series("1", "NaN", "2", "6", pod="a"), series("NaN", pod="b")]) == [
        ScoreResult(metric={"pod": "a", "meta": META}, score=3)
    ]


def test_the_static_tables_are_those_of_the_development_guide() -> None:
    found = {
        (table.score_name, each.metric["app"], each.metric["device"]): each.score
        for table in shipped()
        if table.scores
        for each in static_score(table)
    }
    performance, power = "example_performance_score", "example_powerconsumption_score"
    expected = {"all": (80, 80, 20, 10), "3g.48gb": (60, 55, 30, 55), "2g.24gb": (10, 15, 80, 90)}
    assert found == {
        (name, app, device): scores[position]
        for device, scores in expected.items()
        for position, (name, app) in enumerate(
            (name, app) for name in (performance, power) for app in ("app01", "app02")
        )
    }


TABLE = {
    "path": "/x",
    "name": "x-scorer",
    "description": "x",
    "scoreName": "x_score",
    "interval": 30,
    "scores": {"app": {"gpu": 1}},
}


def test_a_scores_file_may_be_json() -> None:
    tables = parse(json.dumps([TABLE]))
    assert not isinstance(tables, InvalidScoresFile)
    assert static_score(tables[0]) == [ScoreResult(metric={"app": "app", "device": "gpu"}, score=1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the document: Input should be a valid list"),
        ("[]", "has no table"),
        ("a: [", "line 1 is not YAML"),
        ("\x00", "is not YAML"),
        ("[" * 5000, "is not YAML"),
        (json.dumps([{**TABLE, "interval": 0}]), "[0][interval]: Input should be greater than 0"),
        (json.dumps([{**TABLE, "path": "x"}]), "[0][path]"),
        (json.dumps([{**TABLE, "colour": 1}]), "[0][colour]: Extra inputs are not permitted"),
        (json.dumps([{**TABLE, "scores": {"a": {"b": "x"}}}]), "[0][scores][a][b]"),
        ("[{path: /x, scores: {a: {b: .nan}}}]", "[0][name]: Field required"),
        (json.dumps([TABLE, TABLE]), "path /x is used twice"),
        (json.dumps([TABLE, {**TABLE, "path": "/y"}]), "scoreName x_score is used twice"),
    ],
)
def test_a_wrong_scores_file_is_told_in_one_line(text: str, said: str) -> None:
    found = parse(text)
    assert isinstance(found, InvalidScoresFile)
    assert said in found.message
    assert "\n" not in found.message


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_a_scores_file_or_told_why_not(text: str) -> None:
    assert isinstance(parse(text), InvalidScoresFile | list)
