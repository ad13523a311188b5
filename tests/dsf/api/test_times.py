"""Times as Kubernetes reads them, wherever the clock stands."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.times import read_time, retry_after, rfc3339


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=9))), "2025-12-31T16:00:00Z"),
    ],
)
def test_a_time_is_told_in_utc_and_whole_seconds(moment: datetime, text: str) -> None:
    assert rfc3339(moment) == text


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05+09:00", datetime(2026, 1, 1, 18, 4, 5, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("0001-01-01T00:00:00+09:00", None),
        ("0000-01-01T00:00:00Z", None),
        ("2026-12-31T23:59:60Z", None),
        ("2026-01-02T03:04:05", None),
        ("yesterday", None),
        (7, None),
        (None, None),
    ],
)
def test_a_time_is_read_in_utc_or_not_at_all(text: object, moment: datetime | None) -> None:
    assert read_time(text) == moment


DATE = "Fri, 20 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120),
        ({"retry-after": " 0 "}, 0),
        ({"retry-after": "99999999999999999999"}, 999_999_999),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1.5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT", "date": DATE}, 30),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT", "date": DATE}, 0),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, None),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 -0000", "date": DATE}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers) == expected


@given(st.text(), st.text())
def test_any_header_gives_a_value(after: str, date: str) -> None:
    found = retry_after({"retry-after": after, "date": date})
    assert found is None or 0 <= found < 1e12
