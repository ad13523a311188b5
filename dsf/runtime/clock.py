"""The clock of the shell."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time of now, aware."""
    return datetime.now(UTC)
