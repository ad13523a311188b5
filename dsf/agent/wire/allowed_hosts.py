"""Which hosts a token may be sent to.

A list of hosts looks like `thanos.monitoring.svc, *.example.com, 10.0.0.7:9090`: `*.` stands for
one or more names in front, a port limits an entry to it, letter case does not count.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_AMBIGUOUS = re.compile(r"[\\\s\x00-\x20\x7f]")


def listed(text: str) -> tuple[str, ...]:
    """Return the entries of a list separated by commas."""
    return tuple(entry.strip().lower() for entry in text.split(",") if entry.strip())


def allowed(entries: Iterable[str], url: str) -> bool:
    """Tell whether the host of a URL is one of the entries.

    Never true for a URL in which not every parser sees the same host.
    """
    if _AMBIGUOUS.search(url):
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return False
    return bool(host) and any(_matches(entry, host, port) for entry in entries)


def _matches(entry: str, host: str, port: int | None) -> bool:
    pattern, wanted = _split(entry)
    if wanted and wanted != str(port):
        return False
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and host != pattern[1:]
    return pattern == host


def _split(entry: str) -> tuple[str, str]:
    """Return host and port; the colons of an IPv6 address are told apart by its brackets."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    if entry.count(":") > 1:
        return entry, ""
    host, _, port = entry.partition(":")
    return host.rstrip("."), port
