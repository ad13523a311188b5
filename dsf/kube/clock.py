"""The wall clock. Only shells read it; pure functions take the time as an argument."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current time in UTC, timezone-aware."""
    return datetime.now(UTC)
