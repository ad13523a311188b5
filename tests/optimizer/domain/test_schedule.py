"""Schedules: what is refused, when they start, and what happens where clocks are set."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.wire.time_windows import Schedule, five_fields, time_zone

pytestmark = pytest.mark.property


def _starts(text: str, zone: str, begin: str, count: int) -> list[str]:
    """Return the next starts after a time in UTC, as local times with their offset."""
    schedule, now = Schedule(five_fields(text), time_zone(zone)), datetime.fromisoformat(begin)
    found = list[str]()
    for _ in range(count):
        start = schedule.next_start(now)
        assert start is not None
        now = start
        found.append(now.astimezone(schedule.zone).strftime("%m-%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("text", "zone", "begin", "starts"),
    [
        ("0 22 * * *", "Etc/UTC", "2026-01-01T22:00Z", ["01-02 22:00+0000", "01-03 22:00+0000"]),
        ("@daily", "Asia/Tokyo", "2026-01-01T00:00Z", ["01-02 00:00+0900"]),
        ("30 6 * * mon-fri", "Etc/UTC", "2026-01-02T07:00Z", ["01-05 06:30+0000"]),
        ("0 0 13 * 5", "Etc/UTC", "2026-02-01T00:00Z", ["02-06 00:00+0000", "02-13 00:00+0000"]),
        ("0 0 */2 * 5", "Etc/UTC", "2026-02-01T00:00Z", ["02-13 00:00+0000", "02-27 00:00+0000"]),
        ("0 0 * * 7", "Etc/UTC", "2026-01-01T00:00Z", ["01-04 00:00+0000"]),
        ("0 0 29 feb *", "Etc/UTC", "2097-01-01T00:00Z", ["02-29 00:00+0000"]),
        # Clocks jump from 02:00 to 03:00: the skipped start comes right after it.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["03-29 03:00+0200"]),
        ("0 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["03-29 03:00+0200"]),
        (
            "*/30 2-3 * * *",
            "Europe/Berlin",
            "2026-03-29T00:00Z",
            ["03-29 03:00+0200", "03-29 03:30+0200", "03-30 02:00+0200"],
        ),
        # Clocks go back from 03:00 to 02:00: a fixed time once, any other by the clock.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00Z",
            ["10-25 02:30+0200", "10-26 02:30+0100"],
        ),
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00Z",
            ["10-25 02:00+0200", "10-25 02:30+0200", "10-25 02:00+0100", "10-25 02:30+0100"],
        ),
        # Midnight itself is skipped, and half an hour is.
        ("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00Z", ["03-29 01:00+0300"]),
        ("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", ["10-04 02:30+1100"]),
    ],
)
def test_next_starts(text: str, zone: str, begin: str, starts: list[str]) -> None:
    assert _starts(text, zone, begin, len(starts)) == starts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it does not have 5 fields; write minute, hour, day of month, month and day of week"),
        ("0 0 0 * * *", "it does not have 5 fields"),
        ("60 * * * *", "bad minute; write minute, hour"),
        ("* 5-3 * * *", "bad hour"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * foo *", "bad month"),
        ("* * * * mon,", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("@reboot", "or a macro such as @daily"),
    ],
)
def test_what_is_no_schedule(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        five_fields(text)


@pytest.mark.parametrize("name", ["", "Mars/Phobos", "America", "../etc/passwd", "a\0b"])
def test_what_is_no_time_zone(name: str) -> None:
    with pytest.raises(ValueError, match="name one such as Europe/Berlin"):
        time_zone(name)


FIELDS = st.tuples(
    st.sampled_from(["0", "30", "*/20", "5-10", "59"]),
    st.sampled_from(["*", "0", "2", "*/3", "1-3"]),
    st.sampled_from(["*", "1", "29", "31", "*/7"]),
    st.sampled_from(["*", "mar", "oct", "1-6"]),
    st.sampled_from(["*", "sun", "mon-fri"]),
).map(" ".join)
ZONES = st.sampled_from(["Etc/UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
TIMES = st.integers(0, 3 * 365 * 86_400).map(
    lambda seconds: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@given(FIELDS, ZONES, TIMES)
def test_last_and_next_start_are_neighbours(text: str, zone: str, now: datetime) -> None:
    schedule = Schedule(five_fields(text), time_zone(zone))
    last, coming = schedule.last_start(now), schedule.next_start(now)
    assert last is not None
    assert coming is not None
    assert last <= now < coming
    assert schedule.next_start(last) == coming
    assert schedule.last_start(coming - timedelta(microseconds=1)) == last


@given(ZONES, TIMES)
def test_every_minute_is_every_minute_also_where_clocks_are_set(zone: str, now: datetime) -> None:
    schedule, found = Schedule("* * * * *", time_zone(zone)), [now]
    for _ in range(300):
        start = schedule.next_start(found[-1])
        assert start is not None
        found.append(start)
    assert {after - before for before, after in pairwise(found[1:])} == {timedelta(minutes=1)}
