"""The drawing of series and scores."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.cli.terminal_drawing import ASCII_LEVELS, LEVELS, line
from dsf.scorer_kit.pictures import MOST_ROWS, plot


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([1.0], "▁"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([0, math.nan, 7], "▁ █"),
        ([math.nan, math.inf], "  "),
        ([5, 5, 5], "▁▁▁"),
    ],
)
def test_a_line_has_a_level_for_each_value(values: list[float], drawn: str) -> None:
    assert line(values, LEVELS) == drawn


@given(st.lists(st.floats(), max_size=200))
def test_a_line_is_never_wider_than_asked(values: list[float]) -> None:
    drawn = line(values, ASCII_LEVELS, 10)
    assert len(drawn) == min(len(values), 10)
    assert set(drawn) <= {*ASCII_LEVELS, " "}


def test_a_sample_that_is_not_a_number_is_a_space() -> None:
    one = EncodedSeries(b'{"pod": "a"}', b'[[0, "0"], [60, "x"], [120, "1"]]')
    assert "▁ █" in plot([one], [], LEVELS)


def series(pod: str) -> EncodedSeries:
    return EncodedSeries(f'{{"pod": "{pod}"}}'.encode(), b'[[0, "1"], [60, "3"]]')


def result(pod: str, score: float) -> ScoringResult:
    return ScoringResult(Raw(f'{{"pod": "{pod}", "meta": "m"}}'.encode()), score)


def test_a_score_stands_beside_its_series() -> None:
    rows = plot([series("a"), series("b")], [result("b", 7), result("c", 8)], LEVELS).splitlines()
    assert [row.split() for row in rows[1:]] == [
        ["pod=a", "▁█", "1", "3", "3", "-"],
        ["pod=b", "▁█", "1", "3", "3", "7"],
        ["pod=c", "-", "-", "-", "-", "8"],
    ]


def test_many_rows_are_counted() -> None:
    drawn = plot([series(str(number)) for number in range(MOST_ROWS + 5)], [], LEVELS)
    assert len(drawn.splitlines()) == 1 + MOST_ROWS + 1
    assert drawn.endswith("(5 more)")
