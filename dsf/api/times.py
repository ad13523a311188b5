"""Times in the format of Kubernetes."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Return an aware time as `meta/v1` Time: RFC 3339 in UTC, truncated to seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(value: object) -> datetime | None:
    """Return a time in RFC 3339, in UTC; None where it is missing, unreadable or without a zone."""
    try:
        read = datetime.fromisoformat(str(value))
        return read.astimezone(UTC) if read.tzinfo else None
    except (ValueError, OverflowError):
        return None


def micro_time(moment: datetime) -> str:
    """Return an aware time as `meta/v1` MicroTime: RFC 3339 in UTC, with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
