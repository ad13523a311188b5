# SPDX-License-Identifier: Apache-2.0
"""The forecast by the last season: a pure function of the samples."""

import pytest

from ..scoring_service.wire import Series
from .__main__ import main
from .score import FEWEST_ERRORS, MOST_ERRORS, score

MINUTE, HOUR = 60, 3600


def series(values: list[float], step: int = MINUTE, **labels: str) -> Series:
    points = [(step * place, str(value)) for place, value in enumerate(values)]
    return Series.model_validate({"metric": labels, "values": points})


def forecast(values: list[float], season: int | None = None) -> float:
    (found,) = score([series(values)], 10 * MINUTE, season)
    return found.score


def test_without_a_season_the_last_horizon_is_forecast_to_stay() -> None:
    assert forecast([9.0] * 20 + [1.0] * 5 + [3.0] * 5) == 2


def test_the_same_time_of_the_last_season_is_forecast() -> None:
    """A wave of an hour: the last sample is at its 59th minute, the horizon is minutes 0 to 9."""
    wave = [float(minute % 60) for minute in range(180)]
    assert forecast(wave, HOUR) == 4.5
    assert forecast(wave[:-30], HOUR) == 34.5


def test_a_season_that_is_shorter_than_the_horizon_is_repeated() -> None:
    assert forecast([float(minute % 4) for minute in range(60)], 4 * MINUTE) == pytest.approx(
        1.5, abs=0.2
    )


def test_a_history_without_the_season_has_the_last_horizon() -> None:
    assert forecast([1.0] * 30 + [3.0] * 10, HOUR) == 3


def test_quantiles_hold_the_past_errors_and_are_left_out_if_these_are_few() -> None:
    levels = [float(level) for level in (5, 1, 6, 2, 7, 1, 8, 2, 9, 3, 9, 1)]
    values = [level for level in levels for _ in range(10)]
    (found,) = score([series(values)], 10 * MINUTE)
    assert found.quantiles is not None
    (low, lowest), (high, highest) = found.quantiles
    assert (low, high) == (0.1, 0.9)
    assert 0 == lowest <= found.score <= highest
    (few,) = score([series(values[-10 * FEWEST_ERRORS :])], 10 * MINUTE)
    assert few.quantiles is None


def test_a_series_keeps_its_labels_and_needs_a_finite_sample() -> None:
    found = score([series([1.0], pod="a"), series([], pod="b")])
    assert [(each.metric, each.score) for each in found] == [({"pod": "a"}, 1)]


def test_the_work_on_a_long_history_is_bounded() -> None:
    long = Series.model_validate({"metric": {}, "values": [(0, "1"), (200_000_000_000, "2")]})
    assert score([long])[0].score == 2
    assert MOST_ERRORS == 100


def test_a_season_that_the_window_does_not_hold_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--season", "86400"])
    assert "--range must be at least --season" in capsys.readouterr().err
