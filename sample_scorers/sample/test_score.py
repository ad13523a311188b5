# SPDX-License-Identifier: Apache-2.0
"""The score of the sample: change this with `score.py`."""

from ..scoring_service.wire import ScoreResult, Series
from .score import META, score


def series(*values: str, **labels: str) -> Series:
    points = [(60 * position, value) for position, value in enumerate(values)]
    return Series.model_validate({"metric": labels, "values": points})


def test_the_score_is_the_mean_and_keeps_the_labels() -> None:
    found = score([series("1", "NaN", "2", "6", pod="a"), series("NaN", pod="b"), series()])
    assert found == [ScoreResult(metric={"pod": "a", "meta": META}, score=3)]


def test_samples_of_any_size_have_a_finite_mean() -> None:
    assert score([series(*["1e100"] * 1000)])[0].score == 1e100
