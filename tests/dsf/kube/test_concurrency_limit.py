"""The limit of writes in flight, for arbitrary latencies and for those of a modelled server."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dsf.kube.concurrency_limit import (
    WINDOW,
    ConcurrencyBounds,
    ConcurrencyLimit,
    WriteSample,
    after_write,
    checked,
)

seconds = st.floats(0.0, 60.0)
bounds = st.integers(1, 8).flatmap(
    lambda least: st.builds(
        ConcurrencyBounds, st.just(least), st.integers(least, 64), st.floats(1.0, 4.0)
    )
)
samples = st.lists(
    st.builds(WriteSample, st.integers(0, 3), st.integers(1, 64), seconds, st.booleans())
)


def window(limit: ConcurrencyLimit, latency: float, bounds: ConcurrencyBounds) -> ConcurrencyLimit:
    """Return the limit after as many writes as decide, all with one latency."""
    for _ in range(max(WINDOW, limit.current)):
        limit = after_write(limit, WriteSample(limit.epoch, limit.current, latency), bounds)
    return limit


@given(bounds, samples)
def test_the_limit_stays_in_its_bounds(bounds: ConcurrencyBounds, ended: list[WriteSample]) -> None:
    limit = ConcurrencyLimit(bounds.minimum)
    for sample in ended:
        before = limit
        limit = after_write(limit, sample, bounds)
        assert bounds.minimum <= limit.current <= bounds.maximum
        assert before.current // 2 <= limit.current <= max(2 * before.current, before.learnt)


@given(st.lists(seconds, max_size=100))
def test_above_the_minimum_the_floor_only_falls(latencies: list[float]) -> None:
    bounds = ConcurrencyBounds()
    limit = window(ConcurrencyLimit(1), 0.01, bounds)
    for latency in latencies:
        before = limit
        limit = after_write(limit, WriteSample(limit.epoch, limit.current, latency), bounds)
        if before.current > bounds.minimum and limit.floor_seconds is not None:
            assert (limit.floor_seconds or 0.0) <= (before.floor_seconds or 0.0)


def test_refusals_of_writes_in_flight_together_halve_the_limit_once() -> None:
    limit = ConcurrencyLimit(16, floor_seconds=0.01)
    refused = WriteSample(limit.epoch, 16, 0.001, refused=True)
    for _ in range(16):
        limit = after_write(limit, refused, ConcurrencyBounds())
    assert limit.current == 8
    assert after_write(limit, replace(refused, epoch=1), ConcurrencyBounds()).current == 4


def test_a_limit_that_is_not_reached_does_not_grow() -> None:
    limit = ConcurrencyLimit(8, floor_seconds=0.01)
    for _ in range(10 * WINDOW):
        limit = after_write(limit, WriteSample(0, 7, 0.01), ConcurrencyBounds())
    assert limit.current == 8


@settings(max_examples=30)
@given(places=st.integers(1, 24), factor=st.floats(1.2, 3.0))
def test_the_limit_settles_where_the_latency_is_the_factor_of_its_floor(
    places: int, factor: float
) -> None:
    """A server with `places` has the latency max(1, in flight / places)."""
    bounds = ConcurrencyBounds(latency_factor=factor)
    limit, knee = ConcurrencyLimit(1), min(int(factor * places), bounds.maximum)
    for _ in range(50):
        before = limit
        limit = window(limit, max(1.0, limit.current / places), bounds)
        overshot = 2 * knee if limit.doubles or before.doubles else 0.75 * before.current
        assert limit.current <= max(knee + 1, overshot)
        if not limit.doubles and not limit.learnt and limit.current < before.current:
            assert limit.current >= min(places, bounds.maximum) * 0.75 - 1


def test_the_limit_stays_where_one_more_write_would_be_too_many() -> None:
    bounds = ConcurrencyBounds()
    limit = ConcurrencyLimit(4, floor_seconds=1.0)
    held = window(limit, 1.4, bounds)
    assert (held.current, held.doubles) == (4, False)
    assert window(held, 1.0, bounds).current == 5
    assert window(held, 1.6, bounds).current == 3
    assert window(limit, 1.0, bounds).current == 8


def learnt(current: int, floor: float) -> ConcurrencyLimit:
    return ConcurrencyLimit(current, floor_seconds=floor, doubles=False, writes=100)


@given(st.integers(1, 32), st.floats(0.0, 2.0))
def test_after_a_quiet_time_one_write_tells_whether_the_server_is_what_it_was(
    before: int, seconds: float
) -> None:
    bounds = ConcurrencyBounds()
    limit = checked(learnt(before, 0.1), bounds, idle=True)
    assert limit.current == 1
    limit = after_write(limit, WriteSample(limit.epoch, 1, seconds), bounds)
    as_before = 0.1 / 1.5 <= seconds <= 0.1 * 1.5
    assert limit.current == (before if as_before else 1)


def test_one_slow_write_after_a_quiet_time_may_be_a_new_connection() -> None:
    bounds = ConcurrencyBounds()
    limit = checked(learnt(20, 0.1), bounds, idle=True)
    for seconds in (0.4, 0.3, 0.1):
        assert limit.current == 1
        limit = after_write(limit, WriteSample(limit.epoch, 1, seconds), bounds)
    assert limit.current == 20
    assert limit.floor_seconds == 0.1


@given(st.one_of(st.floats(0.001, 0.06), st.floats(0.16, 5.0)))
def test_a_server_that_has_changed_is_learnt_anew(seconds: float) -> None:
    bounds = ConcurrencyBounds()
    limit = window(checked(learnt(20, 0.1), bounds, idle=True), seconds, bounds)
    assert (limit.current, limit.doubles, limit.learnt) == (2, True, 0)
    assert limit.floor_seconds == seconds


def test_a_refusal_after_a_quiet_time_forgets_what_was_learnt() -> None:
    bounds = ConcurrencyBounds()
    limit = checked(learnt(20, 0.1), bounds, idle=True)
    limit = after_write(limit, WriteSample(limit.epoch, 1, 0.1, refused=True), bounds)
    limit = after_write(limit, WriteSample(limit.epoch, 1, 0.1), bounds)
    assert (limit.current, limit.learnt) == (1, 0)


def test_the_floor_is_measured_again_and_the_limit_kept() -> None:
    bounds = ConcurrencyBounds()
    limit = window(ConcurrencyLimit(1), 0.1, bounds)
    found = []
    for _ in range(100):
        limit = window(limit, 0.11 if limit.current == 1 else 0.1, bounds)
        found.append((limit.current, limit.floor_seconds))
    assert found[-1][0] == 32
    checks = [number for number, (current, _) in enumerate(found) if current == 1]
    assert checks
    for number in checks:
        assert found[number + 1] == (32, 0.11)


def test_the_load_of_others_is_learnt_when_it_comes_and_when_it_is_gone() -> None:
    """The latency of a single write is the floor, also while others load the server."""
    bounds = ConcurrencyBounds()
    limit = ConcurrencyLimit(1)
    for others, least, most in ((0, 1, 4), (60, 16, 32), (0, 1, 4)):
        found = []
        for _ in range(200):
            limit = window(limit, 0.01 * (limit.current + others), bounds)
            found.append(limit.current)
        assert least <= sorted(found[100:])[50] <= most


def test_a_large_server_is_reached_by_doubling() -> None:
    limit = ConcurrencyLimit(1)
    for expected in (2, 4, 8, 16, 32, 32):
        limit = window(limit, 0.01, ConcurrencyBounds())
        assert limit.current == expected
