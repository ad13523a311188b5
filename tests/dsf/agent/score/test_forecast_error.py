import math
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dsf.agent.score.forecast_error import JudgedRound, judge_round, quantile_loss, with_round
from dsf.api.scoring.track_record import HALF_LIFE, TrackRecord

LARGEST = sys.float_info.max
ANY = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(-LARGEST, LARGEST)
USUAL = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-3)
QUANTILES = st.floats(0.01, 0.99)
WEIGHTS = st.floats(0, 1).filter(lambda weight: weight == 0 or weight > 1e-9)
ROUNDS = st.builds(
    JudgedRound, share=st.floats(0, 1), weight=WEIGHTS, judged=st.just(1), gaps=st.just(0)
)


@given(st.lists(st.tuples(FINITE, ANY, ANY), max_size=5), QUANTILES)
def test_whatever_the_numbers_share_and_weight_are_between_0_and_1(
    entries: list[tuple[float, float, float]], quantile: float
) -> None:
    forecasts, before, truth = ({str(i): row[k] for i, row in enumerate(entries)} for k in range(3))
    found = judge_round(forecasts, before, truth, quantile)
    assert 0 <= found.share <= 1
    assert 0 <= found.weight <= 1
    assert found.judged + found.gaps == len(entries)


@given(USUAL, USUAL)
def test_a_perfect_forecast_of_a_truth_that_moves_has_no_error(last: float, came: float) -> None:
    assume(abs(last - came) > 1e-3)
    found = judge_round({"a": came}, {"a": last}, {"a": came}, 0.5)
    assert found.share == 0
    assert found.weight > 0


@given(USUAL, USUAL, QUANTILES)
def test_the_last_value_is_exactly_as_good_as_the_last_value(
    last: float, came: float, quantile: float
) -> None:
    assume(last != came)
    assert judge_round({"a": last}, {"a": last}, {"a": came}, quantile).share == 0.5


@given(USUAL, USUAL, USUAL, st.integers(-8, 8))
def test_the_unit_of_the_scores_does_not_matter(
    forecast: float, last: float, came: float, power: int
) -> None:
    assume(abs(forecast - came) + abs(last - came) > 1e-2)
    one = judge_round({"a": forecast}, {"a": last}, {"a": came}, 0.5)
    scale = 2.0**power
    other = judge_round({"a": forecast * scale}, {"a": last * scale}, {"a": came * scale}, 0.5)
    assert other.share == pytest.approx(one.share)
    assert other.weight == pytest.approx(one.weight, rel=1e-3)


def test_a_forecast_of_a_bound_is_judged_as_one() -> None:
    # A truth of 1 to 10 exceeds 9 one time in ten, and 5.5 every second time.
    truths = [float(value) for value in range(1, 11)]
    means = {
        bound: sum(quantile_loss(0.9, truth, bound) for truth in truths)
        for bound in (5.5, 8.0, 9.5, 20.0)
    }
    assert min(means, key=lambda bound: means[bound]) == 9.5


def test_a_truth_that_stands_still_says_nothing_of_a_good_forecast() -> None:
    assert judge_round({"a": 5.0}, {"a": 5.0}, {"a": 5.0}, 0.5).weight == 0
    assert judge_round({"a": -3e-17}, {"a": 0.0}, {"a": 0.0}, 0.5).weight < 1e-6
    assert judge_round({"a": 5.01}, {"a": 5.0}, {"a": 5.0}, 0.5).weight < 0.1
    wrong = judge_round({"a": 90.0}, {"a": 5.0}, {"a": 5.0}, 0.5)
    assert (wrong.share, wrong.weight > 0.99) == (1.0, True)


@pytest.mark.parametrize("gone", [{}, {"a": math.nan}, {"a": math.inf}, {"b": 1.0}])
def test_an_entry_without_truth_is_a_gap_and_not_an_error(gone: dict[str, float]) -> None:
    known = {"a": 1.0}
    for before, truth in ((known, gone), (gone, known)):
        assert judge_round({"a": 9.0}, before, truth, 0.5) == JudgedRound(0.0, 0.0, 0, 1)


@given(st.lists(st.tuples(ROUNDS, st.floats(1, 10_000)), max_size=40), st.integers(1, 3600))
def test_a_record_stays_within_bounds_however_long_it_is_kept(
    rounds: list[tuple[JudgedRound, float]], horizon: int
) -> None:
    record, time = TrackRecord(horizon), 0.0
    for found, later in rounds:
        time += later
        after = with_round(record, found, time)
        assert 0 <= after.share <= 1
        # A round adds at most 1, and evidence halves in HALF_LIFE horizons.
        assert 0 <= after.evidence <= 1 / (1 - 2 ** (-1 / HALF_LIFE)) + 1
        assert abs(after.share - record.share) <= found.weight / max(after.evidence, 1e-300) + 1e-9
        record = after


@given(st.floats(1e3, 1e300))
def test_one_outlier_moves_the_record_no_further_than_any_other_round(size: float) -> None:
    record = TrackRecord(600, share=0.2, evidence=6.0, until=0.0)
    usual = judge_round({"a": 100.0}, {"a": 1.0}, {"a": 1.0}, 0.5)
    outlier = judge_round({"a": size}, {"a": 1.0}, {"a": 1.0}, 0.5)
    one, other = with_round(record, usual, 600.0), with_round(record, outlier, 600.0)
    assert other.share - one.share < 0.01


def test_rounds_that_overlap_count_by_the_time_between_them() -> None:
    found = JudgedRound(0.2, 1.0, 1, 0)
    often, seldom = TrackRecord(3600), TrackRecord(3600)
    for time in range(3600, 12 * 3600, 60):
        often = with_round(often, found, float(time))
    for time in range(3600, 12 * 3600, 3600):
        seldom = with_round(seldom, found, float(time))
    assert often.evidence == pytest.approx(seldom.evidence, rel=0.15)
    assert with_round(often, found, often.until - 1) is often
