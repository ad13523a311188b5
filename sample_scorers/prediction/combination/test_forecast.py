# SPDX-License-Identifier: Apache-2.0
"""The forecast of the prediction scorer: a pure function of the samples."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ...scoring_service.wire import MAX_MAGNITUDE, Series
from .forecast import Forecasts, forecast
from .members import MOST_STEPS, Floats, regular, window
from .score import ScoreMeaning, score

times = st.floats(0, 253_402_300_799)
numbers = st.floats(-MAX_MAGNITUDE, MAX_MAGNITUDE)
samples = st.lists(st.tuples(times, numbers), min_size=1, max_size=60)
Points = list[tuple[float, float]]
STEPS = 130
"""Steps of a made load: a window of 120, and the horizon."""


def mean(values: list[float], step: float = 60, horizon: float = 600) -> float:
    return mean_of([(step * index, value) for index, value in enumerate(values)], horizon)


def mean_of(points: Points, horizon: float = 600) -> float:
    return float(found(points, horizon).mean[0])


def found(points: Points, horizon: float = 600) -> Forecasts:
    one = window(points, horizon)
    return forecast(one.values[:, None], one.ahead)


def series(points: Points, **labels: str) -> Series:
    sent = [(when, repr(float(value))) for when, value in points]
    return Series.model_validate({"metric": labels, "values": sent})


@given(numbers, st.lists(times, min_size=1, max_size=40))
def test_a_constant_is_forecast_to_stay(value: float, when: list[float]) -> None:
    # Averaging equal numbers may round once.
    assert mean_of([(each, value) for each in when]) == pytest.approx(value, rel=1e-12)


@given(samples, st.floats(1, 1e6))
@example([(0.0, 1.4496664697021118e-11)] * 3, 1.0)
def test_a_forecast_stays_within_reason(points: Points, horizon: float) -> None:
    grid = window(points, horizon).values  # whose averages of samples may round once
    low, high = np.nanmin(grid), np.nanmax(grid)
    forecasts = found(points, horizon)
    for bound in (forecasts.mean, *map(forecasts.quantile, (0.05, 0.95))):
        assert low - (high - low) <= bound[0] <= high + (high - low)
        assert bound[0] >= 0 or low < 0
    assert forecasts.quantile(0.1)[0] <= forecasts.quantile(0.9)[0]


@given(samples, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(points: Points, random: Any) -> None:
    shuffled = random.sample(points, len(points))
    assert score([series(points)]) == score([series(shuffled)])


@given(samples)
@example([(0, 1.0), (5e-324, 2.0), (253_402_300_799, 3.0)])
def test_the_grid_keeps_its_bound_and_its_ends(points: Points) -> None:
    when, values = np.array(points).T
    grid, step = regular(when, values)
    assert 1 <= len(grid) <= MOST_STEPS + 1
    assert not np.isnan(grid[[0, -1]]).any()
    assert step > 0


@given(st.floats(-100, 100), st.floats(0.001, 10), st.sampled_from([-1, 1]))
def test_a_line_goes_on(start: float, slope: float, sign: int) -> None:
    slope *= sign
    values = [1000 + start + slope * position for position in range(60)]
    expected = values[-1] + slope * 5.5  # the mean of the next ten
    assert mean(values) == pytest.approx(expected, abs=0.5 * abs(slope))


def test_what_has_never_been_negative_is_not_forecast_to_be() -> None:
    assert mean([float(value) for value in range(60, 0, -1)]) == 0


def test_after_a_step_the_new_level_is_forecast() -> None:
    assert mean([1.0] * 30 + [3.0] * 30) == pytest.approx(3, abs=0.05)


def test_gaps_and_uneven_steps_leave_a_line_a_line() -> None:
    points = [(60.0 * each + each % 3, 5.0 + each) for each in range(120) if each % 7 != 3]
    assert mean_of(points) == pytest.approx(5 + 119 + 5.5, abs=1.5)


def test_it_looks_at_most_half_a_window_ahead() -> None:
    assert mean([0.0, 1.0, 2.0, 3.0, 4.0], horizon=120) == mean(
        [0.0, 1.0, 2.0, 3.0, 4.0], horizon=1e9
    )


def test_a_season_in_the_window_is_forecast_to_go_on() -> None:
    wave = 5 + np.sin(2 * np.pi * np.arange(140) / 24)
    forecasts = forecast(wave[:120, None], 6)
    assert forecasts.period.tolist() == [24]
    assert forecasts.mean[0] == pytest.approx(wave[120:126].mean(), abs=0.02)


def test_noise_has_no_season() -> None:
    noise = np.random.default_rng(1).random((120, 500))
    assert (forecast(noise, 20).period > 0).sum() <= 2


def test_a_forecast_does_not_depend_on_the_series_beside_it() -> None:
    random = np.random.default_rng(3)
    grid = np.concatenate(
        [random.random((90, 200)), np.sin(np.arange(90) / 3)[:, None] + np.zeros((90, 2))], axis=1
    )
    together = forecast(grid, 10)
    alone = [forecast(grid[:, [column]], 10) for column in (0, 150, 201)]
    assert together.mean[[0, 150, 201]] == pytest.approx([one.mean[0] for one in alone])


def test_the_chance_of_exceeding_is_the_inverse_of_the_quantile() -> None:
    noise = found(USUAL)
    for probability in (0.1, 0.3, 0.8, 0.9):
        chance = noise.exceedance(float(noise.quantile(probability)[0]))
        assert chance[0] == pytest.approx(1 - probability, abs=0.05)
    assert noise.exceedance(1e9) == 0
    assert noise.exceedance(-1e9) == 1


def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Over noise, ramps, steps and random walks: 90% intervals hold 85% to 95%."""
    random = _random()
    loads = np.stack([kind(random) for kind in LOADS for _ in range(100)], axis=1)
    forecasts, truth = forecast(loads[:120], 10), loads[120:].mean(axis=0)
    inside = (forecasts.quantile(0.05) <= truth) & (truth <= forecasts.quantile(0.95))
    assert 0.85 <= inside.mean() <= 0.95


def test_it_forecasts_better_than_the_mean_and_than_the_last_value() -> None:
    """Over loads of several kinds, by the mean absolute error of the next ten steps' mean."""
    random = _random()
    loads = np.stack([kind(random) for kind in LOADS for _ in range(100)], axis=1)
    past, truth = loads[:120], loads[120:].mean(axis=0)
    guesses = (forecast(past, 10).mean, past.mean(axis=0), past[-1])
    errors = [np.abs(guess - truth).mean() for guess in guesses]
    assert errors[0] < 0.8 * min(errors[1:])


def _random() -> np.random.Generator:
    return np.random.default_rng(7)


def _noise(random: np.random.Generator) -> Floats:
    return random.normal(2, 0.5, STEPS).clip(0)


def _ramp(random: np.random.Generator) -> Floats:
    ramp: Floats = np.linspace(0, random.uniform(1, 4), STEPS) + random.normal(1, 0.1, STEPS)
    return ramp


def _scaled(random: np.random.Generator) -> Floats:
    change = random.integers(15, 105)
    levels = np.where(np.arange(STEPS) < change, 1.0, random.uniform(0, 4))
    return levels + random.normal(1, 0.1, STEPS)


def _wandering(random: np.random.Generator) -> Floats:
    return 5 + np.cumsum(random.normal(0, 0.1, STEPS))


LOADS = (_noise, _ramp, _scaled, _wandering)

USUAL = [(60.0 * index, float(value)) for index, value in enumerate(_noise(_random()))]


@pytest.mark.parametrize(
    ("points", "remark"),
    [
        (USUAL, None),
        ([(0.0, 3.0)], "short,constant"),
        ([(60.0 * index, 1.0) for index in range(60)], "constant"),
        (USUAL[:8], "short"),
        ([point for index, point in enumerate(USUAL) if not 20 < index < 40], "gaps"),
        ([(60.0 * index, float(index % 8)) for index in range(60)], "season"),
    ],
)
def test_what_is_special_about_a_window_is_said(points: Points, remark: str | None) -> None:
    (result,) = score([series(points, pod="a")])
    assert result.metric == {"pod": "a"} | ({"meta": remark} if remark else {})


def test_the_score_can_be_a_bound_or_a_chance() -> None:
    (usual,) = score([series(USUAL)])
    (bound,) = score([series(USUAL)], ScoreMeaning(quantile=0.9))
    (chance,) = score([series(USUAL)], ScoreMeaning(threshold=usual.score))
    assert dict(usual.quantiles or ())[0.9] == bound.score > usual.score
    assert 30 < chance.score < 70


def test_series_of_any_length_are_forecast_in_few_groups_and_in_their_order() -> None:
    """Series that start at different times need not cost a preparation each."""
    many = [series(USUAL[start:], pod="a") for start in range(len(USUAL) - 1)]
    found = score(many)
    assert len(found) == len(many)
    assert found[0].score == pytest.approx(score(many[:1])[0].score)
    lengths = {len(window(USUAL[start:], 600).values) for start in range(len(USUAL))}
    assert len(lengths) < len(USUAL) / 2


def test_one_sample_has_no_interval() -> None:
    (result,) = score([series([(0.0, 3.0)])])
    assert (result.score, result.quantiles) == (3.0, None)
