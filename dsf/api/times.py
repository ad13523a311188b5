"""Times in the format of Kubernetes, durations for people, and pauses that HTTP servers ask for."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SHOWN_UNITS = (("s", 1, 120), ("m", 60, 180), ("h", 3600, 48))
"""Units of a shown duration: seconds of one, and from how many on the next unit is shown."""
_DAY = 86_400
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


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


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, below 1e12; None without a valid header.

    A date is relative to the answer's own Date, so that clocks need not agree. Callers limit the
    pause that they grant. `headers`: with lower-case names, or of any case.
    Source: RFC 9110, 10.2.3.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return max(wait.total_seconds(), 0.0)


def shown_duration(seconds: float) -> str:
    """Return a duration in one unit, as kubectl shows ages: `85s`, `12m`, `5h`, `3d`."""
    for unit, size, most in _SHOWN_UNITS:
        if seconds < most * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds // _DAY)}d"


def shown_expiry(until: datetime | None, now: datetime) -> str:
    """Return in how long a time comes, or how long ago it was, for people; None: never."""
    if until is None:
        return "never"
    left = (until - now).total_seconds()
    return f"in {shown_duration(left)}" if left > 0 else f"{shown_duration(-left)} ago"


def read_duration(text: str) -> float | None:
    """Return the seconds of a text such as `15s`, `1m30s`, `500ms` or `7d`; None if it is none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
