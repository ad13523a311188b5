"""Times as Kubernetes reads them, wherever the clock stands."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from dsf.api.times import read_time, rfc3339


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
