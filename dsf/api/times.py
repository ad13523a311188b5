"""Times as Kubernetes writes them."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Return an aware time as `meta/v1` Time: RFC 3339 in UTC, whole seconds, cut down."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
