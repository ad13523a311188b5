"""The season of a history is found where there is one, and nowhere else."""

import math

import pytest

from dsf.scorer_kit.backtest.history import History, PastSeries
from dsf.scorer_kit.backtest.simple_methods import found_seasons
from tests.dsf.scorer_kit.backtest.histories import DAY, HOUR, WEEK, drawn


def wrong(numbers: range) -> list[str]:
    """Return how each history was made whose season was not found, or found where none is."""
    found = []
    for one in map(drawn, numbers):
        seasons = [lag * one.history.step for lag in found_seasons(one.history)] or [0]
        if seasons[0] != one.season:
            found.append(f"{one.how} {seasons=}")
    return found


def test_the_seasons_of_50_histories_are_found() -> None:
    missed = wrong(range(50))
    assert len(missed) <= 2, missed


@pytest.mark.long
def test_the_seasons_of_2000_histories_are_found() -> None:
    missed = wrong(range(50, 2_050))
    assert len(missed) <= 40, missed


def repeating(seconds: int, step: int, count: int) -> tuple[float, ...]:
    return tuple(math.sin(2 * math.pi * index * step / seconds) for index in range(count))


@pytest.mark.parametrize("step", [15, 60, 300, 3_600])
def test_a_week_is_found_at_any_step(step: int) -> None:
    history = History(step, (PastSeries({}, repeating(WEEK, step, 2 * WEEK // step)),))
    assert found_seasons(history) == [WEEK // step]


def test_a_day_whose_weekdays_differ_is_followed_by_the_week() -> None:
    week = [(day < 5) * 2 + 3 + value for day in range(7) for value in repeating(DAY, 300, 288)]
    history = History(300, (PastSeries({}, week * 3),))
    assert found_seasons(history) == [DAY // 300, WEEK // 300]


@pytest.mark.parametrize("season", [12 * 60, 2 * HOUR, 20 * HOUR])
def test_another_season_is_found_where_no_natural_one_is(season: int) -> None:
    step = season // 24
    wave = PastSeries({}, repeating(season, step, 200))
    assert found_seasons(History(step, (wave,))) == [24]


@pytest.mark.parametrize("values", [[1.0] * 9, [1.0] * 500, [None, 2.0, None], [5.0]])
def test_what_does_not_change_has_no_season(values: list[float | None]) -> None:
    assert found_seasons(History(60, (PastSeries({}, values),))) == []
