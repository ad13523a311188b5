from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.score.forecast_error import JudgedRound
from dsf.agent.score.forecast_ledger import (
    CLOCK_TOLERANCE,
    PENDING_ROUNDS,
    TRACKED_ENTRIES,
    ForecastLedger,
    Instant,
    IssuedForecasts,
)
from dsf.api.scoring.track_record import TrackRecord

PERFECT = JudgedRound(0.0, 1.0, 1, 0)


def at(time: float, steady: float | None = None) -> Instant:
    return Instant(time, time if steady is None else steady)


def issued(time: float, **values: float) -> IssuedForecasts:
    return IssuedForecasts(at(time), values or {"a": 1.0})


@given(
    st.lists(st.tuples(st.floats(0.1, 5000), st.booleans()), max_size=200),
    st.integers(1, 86_400),
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
