"""Times as Kubernetes reads them, wherever the clock stands."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from dsf.api.times import rfc3339


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=9))), "2025-12-31T16:00:00Z"),
    ],
)
def test_a_time_is_told_in_utc_and_whole_seconds(moment: datetime, text: str) -> None:
    assert rfc3339(moment) == text
