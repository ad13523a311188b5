import json
import math
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dsf.agent.score.forecasts import (
    CLOCK_TOLERANCE,
    PENDING_ROUNDS,
    TRACKED_ENTRIES,
    ForecastLedger,
    Instant,
    IssuedForecasts,
    JudgedRound,
    judge_round,
    quantile_loss,
    read_truth,
    truth_question,
    with_round,
)
from dsf.agent.score.result_rules import ConversionSettings, assemble, forecasts_of, judge
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.crd.score_rules import ForecastRules, ForecastTruth, Normalize
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.score_conditions import HALF_LIFE, TrackRecord
from dsf.api.untrusted_text import InvalidInput
from tests.dsf.agent.builders import scoring_result, summary

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


PERFECT = JudgedRound(0.0, 1.0, 1, 0)


def at(time: float, steady: float | None = None) -> Instant:
    return Instant(time, time if steady is None else steady)


def issued(time: float, **values: float) -> IssuedForecasts:
    return IssuedForecasts(at(time), values or {"a": 1.0})


@given(
    st.lists(st.tuples(st.floats(0.1, 5000), st.booleans()), max_size=200), st.integers(1, 86_400)
)
def test_memory_is_bounded_whatever_the_rounds_and_the_truths(
    steps: list[tuple[float, bool]], horizon: int
) -> None:
    ledger, time = ForecastLedger(TrackRecord(horizon)), 0.0
    for later, known in steps:
        time += later
        ledger = ledger.without_jumps(at(time)).with_forecasts(issued(time))
        assert len(ledger.pending) <= PENDING_ROUNDS
        assert list(ledger.pending) == sorted(ledger.pending, key=lambda one: one.at.unix)
        for one in ledger.due(at(time)):
            assert ledger.forecast_time(one) <= time
            ledger = ledger.judged(one, PERFECT) if known else ledger
    assert ledger.record.evidence >= 0


def test_of_many_entries_the_same_ones_are_kept_in_every_round() -> None:
    values = {f"n1;shop;pod-{number}": float(number) for number in range(10_000)}
    ledger = ForecastLedger(TrackRecord(600))
    ledger = ledger.with_forecasts(IssuedForecasts(at(0), values))
    turned = dict(reversed(values.items()))
    ledger = ledger.with_forecasts(IssuedForecasts(at(60), turned))
    first, second = ledger.pending
    assert len(first.values) == TRACKED_ENTRIES
    assert first.values == second.values


def test_rounds_are_kept_so_far_apart_that_a_long_horizon_fits() -> None:
    ledger = ForecastLedger(TrackRecord(86_400))
    for time in range(0, 2 * 86_400, 30):
        for one in ledger.due(at(time)):
            ledger = ledger.judged(one, PERFECT)
        ledger = ledger.with_forecasts(issued(time))
    assert ledger.record.evidence > 0.9
    oldest = ledger.pending[0].at.unix
    assert 2 * 86_400 - oldest >= 86_400 * (1 - 2 / PENDING_ROUNDS)


@given(st.floats(-1e6, 1e6))
def test_forecasts_since_which_the_clock_was_set_are_dropped(jump: float) -> None:
    ledger = ForecastLedger(TrackRecord(600)).with_forecasts(issued(1e7))
    now = Instant(1e7 + 300 + jump, 1e7 + 300)
    kept = ledger.without_jumps(now).pending
    assert bool(kept) == (abs(now.unix - 1e7 - 300) <= CLOCK_TOLERANCE)


def test_a_record_from_the_future_starts_anew() -> None:
    record = TrackRecord(600, share=0.1, evidence=5.0, until=5000.0)
    ledger = ForecastLedger(record)
    assert ledger.without_jumps(at(4995)).record == record
    assert ledger.without_jumps(at(1000)).record == TrackRecord(600)


def test_nothing_is_due_before_its_time_and_nothing_is_judged_twice() -> None:
    ledger = ForecastLedger(TrackRecord(600)).with_forecasts(issued(0)).with_forecasts(issued(60))
    assert ledger.due(at(599)) == ()
    (one,) = ledger.due(at(600))
    assert one.at.unix == 0
    after = ledger.judged(one, PERFECT)
    assert after.due(at(600)) == ()
    assert len(after.pending) == 1
    assert after.record.until == 600
    assert replace(after, pending=()).due(at(1e9)) == ()


def test_a_round_without_forecasts_leaves_no_trace() -> None:
    ledger = ForecastLedger(TrackRecord(600))
    assert ledger.with_forecasts(IssuedForecasts(at(0), {})) is ledger


RULES = ForecastRules(horizon=600, truth=ForecastTruth(query="load"))


def form(**more: Any) -> ConversionSettings:
    dimension = DimensionFormat.parse("${cluster};${node}")
    assert not isinstance(dimension, InvalidInput)
    return ConversionSettings("east", "load_score", dimension, **more)


def series(metric: dict[str, str], *samples: tuple[float, str]) -> EncodedSeries:
    return EncodedSeries(json.dumps(metric).encode(), json.dumps(samples).encode())


def test_the_truth_is_asked_for_at_an_instant() -> None:
    asked = truth_question(summary(forecast=RULES))
    assert (asked.source_query, asked.source_range) == ("load", 0)
    with pytest.raises(ValueError, match="declares no forecast"):
        truth_question(summary())


def test_series_are_matched_to_entries_by_the_dimension_format() -> None:
    found = read_truth(
        [
            series({"node": "n1", "job": "x", "cluster": "other"}, (1600, "2")),
            series({"node": "n2"}, (1600, "+Inf")),
            series({"node": "n3"}, (1000, "1"), (1600, "7")),
            series({"node": "n4"}),
            series({"node": "n5"}, (1600, "many")),
            EncodedSeries(b'{"node":"n6"}', b'[1600,"0.5"]', instant=True),
        ],
        form(),
    )
    assert math.isnan(found.pop("east;n5"))
    assert found == {"east;n1": 2, "east;n2": math.inf, "east;n3": 7, "east;n6": 0.5}


def test_an_entry_that_several_series_name_has_no_truth() -> None:
    thrice = [series({"node": "n1", "pod": pod}, (600, "2")) for pod in "abc"]
    assert math.isnan(read_truth(thrice, form())["east;n1"])


def test_forecasts_are_in_the_units_of_the_scorer_whatever_is_published() -> None:
    results = [
        scoring_result(4000.0, {"node": "a"}),
        scoring_result(1.5, {"node": "a"}),
        scoring_result(math.nan, {"node": "b"}),
        scoring_result(-7.25, {"node": "c"}),
    ]
    settings = form(normalize=Normalize(min=0, max=8000, invert=True))
    verdicts = judge(results, settings)
    scores = assemble(verdicts, settings)
    assert [entry.value for entry in scores.entries] == [50, 100]
    assert forecasts_of(results, verdicts, scores) == {"east;a": 4000.0, "east;c": -7.25}


def test_entries_that_are_not_published_are_not_judged() -> None:
    results = [scoring_result(1.0, {"node": f"n{number}"}) for number in range(5)]
    settings = form(series=2)
    verdicts = judge(results, settings)
    scores = assemble(verdicts, settings)
    assert set(forecasts_of(results, verdicts, scores)) == {"east;n0", "east;n1"}
