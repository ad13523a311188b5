"""Which hosts a token may be sent to.

A list of hosts reads `thanos.monitoring.svc, *.example.com, 10.0.0.7:9090`. `*.` stands for one or
more labels in front; an entry with a port matches that port only; letter case is ignored.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_AMBIGUOUS = re.compile(r"[\\\s\x00-\x20\x7f]")


def parse_hosts(text: str) -> tuple[str, ...]:
    """Return the entries of a comma-separated list."""
    return tuple(entry.strip().lower() for entry in text.split(",") if entry.strip())


def host_allowed(entries: Iterable[str], url: str) -> bool:
    """Tell whether an entry matches the host of a URL.

    Returns False for a URL in which different parsers see different hosts.
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
    """Return host and port of an entry; an IPv6 address with a port is in brackets."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    if entry.count(":") > 1:
        return entry, ""
    host, _, port = entry.partition(":")
    return host.rstrip("."), port
