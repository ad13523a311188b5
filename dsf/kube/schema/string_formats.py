"""The keywords `format` and `pattern` of schemas; formats not listed here are not checked.

Patterns are RE2 patterns, as in Kubernetes: they match in linear time. Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any

import re2

_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(\.\d+)?(z|[+-]\d{2}:\d{2})", re.ASCII)

_SHORT = 128
"""Characters of a text for which it is remembered which patterns it matches: names come again."""


def fits(value: Any, format_: str) -> bool:
    """Return whether a value has a format; other types and unknown formats always fit."""
    if isinstance(value, str):
        return _fits(value, _TEXTS.get(format_))
    if isinstance(value, int) and not isinstance(value, bool):
        return value in integers(format_)
    return True


def integers(format_: str) -> range:
    """Return the integers of a format; those of 64 bits for formats that are not listed here."""
    return _INTEGERS.get(format_, range(-(2**63), 2**63))


def matches(text: str, pattern: str) -> bool:
    """Return whether an RE2 pattern matches within a text; raises re2.error if it is malformed."""
    found = _found if len(text) <= _SHORT else _found.__wrapped__
    return found(text, pattern)


@lru_cache(8192)
def _found(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(text) is not None


def pattern_problem(pattern: str) -> str | None:
    """Return the problem of an RE2 pattern, or None if it is valid."""
    try:
        _compiled(pattern)
    except re2.error as error:
        return str(error.args[0].decode() if isinstance(error.args[0], bytes) else error)
    return None


@lru_cache(1024)
def _compiled(pattern: str) -> "re2._Regexp":
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _fits(text: str, check: Callable[[str], object] | None) -> bool:
    if check is None:
        return True
    try:
        return check(text) is not False
    except (ValueError, binascii.Error):
        return False


def _date_time(text: str) -> bool:
    day, _, time = text.lower().partition("t")
    date.fromisoformat(day)
    found = _TIME.fullmatch(time)
    if not found or len(day) != len("2006-01-02"):
        return False
    hours, minutes, seconds = (int(found.group(place)) for place in (1, 2, 3))
    return hours < 24 and minutes < 60 and seconds < 60  # noqa: PLR2004 - a clock


def _date(text: str) -> bool:
    date.fromisoformat(text)
    return len(text) == len("2006-01-02")


_TEXTS: dict[str, Callable[[str], object]] = {
    "byte": lambda text: base64.b64decode(text, validate=True),
    "date": _date,
    "date-time": _date_time,
    "datetime": _date_time,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "uuid": uuid.UUID,
}
_INTEGERS = {"int32": range(-(2**31), 2**31), "uint32": range(2**32), "uint64": range(2**64)}
