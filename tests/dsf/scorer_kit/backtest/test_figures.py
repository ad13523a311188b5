"""The figures of a backtest: errors, significance, calibration, regret, seasons."""

import math
import random

import numpy as np
import pytest

from dsf.scorer_kit.backtest.accuracy import (
    Choices,
    comparison,
    intervals,
    loss_of,
    quantile_shares,
    regrets,
    scorer_accuracy,
    smaller_loss,
)
from dsf.scorer_kit.backtest.history import (
    Answered,
    History,
    Judged,
    PastSeries,
    Quantiles,
    Said,
    UnusableHistory,
    Values,
    from_samples,
    judged,
)
from dsf.scorer_kit.backtest.plan import BacktestPlan, of_horizon
from dsf.scorer_kit.backtest.plausibility import copies
from dsf.scorer_kit.backtest.report import report
from dsf.scorer_kit.backtest.simple_methods import Horizon, simple_methods

RAMP = [float(value) for value in range(20)]


def drawn(mean: float, count: int) -> list[float]:
    """Return normal numbers, the same in each run."""
    source = random.Random(1)  # noqa: S311  # not a secret
    return [source.gauss(mean, 1) for _ in range(count)]


def series(values: Values, **labels: str) -> PastSeries:
    return PastSeries(labels, values)


def outcomes(one: PastSeries, scores: dict[int, float], ahead: int = 1) -> list[Judged]:
    """Return what became of scores given after the step before each key."""
    answers = [Answered(end, {one.labels: Said(score)}) for end, score in scores.items()]
    return judged(answers, [one], ahead)


def test_the_test_says_small_only_if_losses_are_smaller() -> None:
    noise = drawn(0, 200)
    assert (smaller_loss([value - 1 for value in noise], 1) or 1) < 0.001
    assert (smaller_loss([value + 1 for value in noise], 1) or 0) > 0.999
    assert 0.01 < (smaller_loss(noise, 1) or 0) < 0.99


def test_overlapping_horizons_count_less_than_new_ones() -> None:
    """Each difference ten times: a test of these 1,000 must not be surer than of the 100."""
    few = drawn(-0.2, 100)
    many = [value for value in few for _ in range(10)]
    alone, repeated = smaller_loss(few, 1), smaller_loss(many, 10)
    naive = smaller_loss(many, 1)
    assert alone
    assert repeated
    assert naive is not None
    assert naive < repeated
    assert repeated == pytest.approx(alone, abs=0.1)


def test_too_few_horizons_have_no_p_value() -> None:
    assert smaller_loss([-1.0] * 20, 10) is None
    assert smaller_loss([-1.0] * 40, 10) == 0


def test_false_alarms_are_as_rare_as_promised() -> None:
    """Two equal methods with horizons of 5 steps: below 5% in at most 9% of 400 histories."""
    noise, alarms = drawn(0, 400 * 104), 0
    for start in range(0, len(noise), 104):
        overlapping = [sum(noise[index : index + 5]) / 5 for index in range(start, start + 100)]
        alarms += (smaller_loss(overlapping, 5) or 1) < 0.05
    assert alarms <= 36


@pytest.mark.parametrize("digits", [4, 8, 15])
def test_equal_forecasts_are_a_tie_however_they_are_rounded(digits: int) -> None:
    """Of 50 histories none is significant; unrounded, rounding errors alone would be."""
    for seed in range(50):
        source = random.Random(seed)  # noqa: S311  # not a secret
        one = series([1e3 + source.gauss(0, 1) for _ in range(120)])
        methods = simple_methods(Horizon(window=10, ahead=2), season=7)
        for method in methods:
            scores = {end: method.forecast(one, end) for end in range(10, 118)}
            given = {end: round(score + 1e-6, digits) for end, score in scores.items() if score}
            found = comparison(outcomes(one, given, 2), method, loss_of(0.5), 2)
            assert found
            assert found.p_value == 0.5


def test_the_loss_of_a_bound_punishes_what_is_above_it() -> None:
    loss = loss_of(0.9)
    assert loss(1, 2) == pytest.approx(1.8)
    assert loss(2, 1) == pytest.approx(0.2)
    assert loss_of(0.5)(2, 5) == 3


def test_errors_are_scaled_by_the_change_from_step_to_step() -> None:
    doubled = series([2 * value for value in RAMP])
    found = scorer_accuracy(outcomes(doubled, {10: 19.0, 12: 25.0}), loss_of(0.5))
    assert (found.error, found.scaled, found.count) == (1.0, 0.5, 2)
    constant = scorer_accuracy(outcomes(series([1.0] * 20), {10: 2.0}), loss_of(0.5))
    assert (constant.error, constant.scaled) == (1.0, None)


def test_the_simple_methods_are_what_they_say() -> None:
    one = series([float(index % 4) for index in range(20)])
    last, window, season = simple_methods(Horizon(window=8, ahead=2), season=4)
    assert [last.forecast(one, 9), last.forecast(one, 10)] == [0.0, 1.0]
    assert window.forecast(one, 9) == 1.5
    assert season.forecast(one, 9) == 1.5  # the steps 9 and 10, as 5 and 6
    assert season.forecast(one, 3) is None
    assert simple_methods(Horizon(8, 6), 4)[2].forecast(one, 8) == pytest.approx((6 + 0 + 1) / 6)


def test_the_truth_can_be_a_quantile_or_an_extreme_of_the_horizon() -> None:
    ramp = History(60, (series([*RAMP[:10], None, None, None, *RAMP[13:]]),))
    for truth, expected in (("max", 7.0), ("min", 4.0), ("p50", 5.5), ("p90", 6.7)):
        (one,) = of_horizon(ramp, truth, 4).series
        assert one.came_true(4, 4) == pytest.approx(expected)
        assert one.came_true(9, 4) is None  # one of four samples
        season = simple_methods(Horizon(4, 4), season=3)[2]
        assert season.forecast(one, 9) == one.came_true(3, 4)  # two seasons before step 12


def test_a_comparison_is_made_where_both_have_a_forecast() -> None:
    one = series(RAMP)
    method = simple_methods(Horizon(4, 1), season=12)[2]
    found = comparison(
        outcomes(one, {end: RAMP[end] for end in range(10, 20)}), method, loss_of(0.5), 1
    )
    assert found
    assert (found.simple.count, found.simple.error, found.scorer.error) == (8, 12.0, 0.0)
    assert found.ratio == 0


def quantiles(*pairs: tuple[float, float]) -> Quantiles:
    return pairs


def test_the_shares_and_intervals_are_counted() -> None:
    one = series(RAMP)
    said = Said(0, quantiles((0.1, 10.0), (0.5, 12.0), (0.9, 14.0)))
    found = judged([Answered(end, {one.labels: said}) for end in range(9, 19)], [one], 1)
    assert [share.below for share in quantile_shares(found)] == [0.2, 0.4, 0.6]
    assert quantile_shares(found, 0.9) == quantile_shares(found)
    assert quantile_shares(found, 0.2)[1].below == 0
    (interval,) = intervals(found)
    assert (interval.level, interval.coverage, interval.width) == (0.8, 0.5, 4.0)


def test_regret_is_the_distance_from_the_best_choice() -> None:
    flat, ramp = series([5.0] * 20, site="flat"), series(RAMP, site="ramp")
    answers = [
        Answered(end, {flat.labels: Said(5.0), ramp.labels: Said(float(end))}) for end in (3, 10)
    ]
    found = judged(answers, [flat, ramp], 1)
    methods = simple_methods(Horizon(2, 1), 1)
    lowest = {one.method: one for one in regrets(found, methods, Choices("", lowest=True))}
    assert (lowest["scorer"].loss, lowest["scorer"].best) == (0.0, 1.0)
    assert lowest["at random"].loss == pytest.approx((2 / 2 + 5 / 2) / 2)
    wrong = [Answered(10, {flat.labels: Said(99.0), ramp.labels: Said(1.0)})]
    (first, *_) = regrets(judged(wrong, [flat, ramp], 1), methods, Choices("site", lowest=True))
    assert (first.method, first.loss, first.best) == ("scorer", 5.0, 0.0)


def test_one_series_is_no_choice() -> None:
    found = outcomes(series(RAMP), {10: 1.0})
    assert regrets(found, [], Choices("", lowest=True)) == []


def test_samples_become_steps_with_holes() -> None:
    found = from_samples(
        [({"pod": "a"}, [(100, 1.0), (161, 2.0), (280, math.nan), (340, 4.0)])], 60
    )
    assert (found.start, found.step, found.series[0].values) == (
        100,
        60,
        [1.0, 2.0, None, None, 4.0],
    )
    assert found.holes == 2
    (sent,) = found.window(0, 3)
    assert bytes(sent.values) == b'[[100,"1.0"],[160,"2.0"]]'
    assert found.series[0].mean(2, 5) is None
    assert found.series[0].mean(3, 5) == 4.0
    with pytest.raises(UnusableHistory, match="no finite sample"):
        from_samples([({}, [(1, math.inf)])], 60)


def test_a_coarser_step_takes_every_nth_value() -> None:
    history = History(30, (series(RAMP),))
    assert history.coarser(60).series[0].values == RAMP[::2]
    with pytest.raises(UnusableHistory, match="not a multiple"):
        history.coarser(45)


@pytest.mark.parametrize("seed", range(5))
def test_copies_keep_weekdays_and_what_came_true(seed: int) -> None:
    recorded = History(60, (PastSeries({"pod": "a"}, [*RAMP, None]),))
    asked = History(60, (PastSeries({"pod": "a"}, [*RAMP, None], truth=[*RAMP, None]),))
    for history in (recorded, asked):
        moved, other = copies(history, np.random.default_rng(seed))
        for copy in (moved, other):
            weeks, rest = divmod(history.start - copy.history.start, 7 * 86_400)
            assert (10 <= weeks < 200, rest) == (True, 0)
            assert copy.history.series[0].truth == history.series[0].truth
        assert moved.history.series == history.series
        assert other.history.series[0].values != history.series[0].values
        assert other.history.series[0].values[-1] is None
        assert other.history.series[0].scale == pytest.approx(
            0.7 if history is recorded else 1, abs=0.1
        )


def plan(values: Values, **changes: object) -> BacktestPlan:
    settings = {"window": 240, "horizon": 120, "choices": Choices("", lowest=True), **changes}
    return BacktestPlan("test", History(60, (series(values, pod="a"),)), **settings)  # type: ignore[arg-type]


def test_the_steps_are_spread_over_the_history_or_a_half_of_it() -> None:
    assert list(plan(RAMP).ends()) == list(range(4, 19))
    assert list(plan(RAMP, requests=5).ends()) == [4, 7, 10, 13, 16]
    assert list(plan(RAMP, part="first").ends()) == list(range(4, 11))
    assert list(plan(RAMP, part="second").ends()) == list(range(11, 19))


def test_holes_missing_scores_and_strange_results_are_said() -> None:
    planned = plan([*RAMP[:10], None, *RAMP[11:]])
    labels = planned.history.series[0].labels
    answers = [Answered(5, {labels: Said(5.5)}), Answered(6, {}, strange=2)]
    text = report(planned, answers).text()
    assert "1 steps of the history have no sample" in text
    assert "1 times a series had a truth and no score" in text
    assert "2 results have the labels of no series" in text
