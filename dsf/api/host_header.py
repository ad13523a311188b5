"""The name in a Host header, or none: what is no host and port names no server.

Sources: RFC 9110 section 7.2, RFC 3986 section 3.2.2.
"""

import ipaddress
import re

_HOST = re.compile(
    r"(?P<name>\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::[0-9]*)?", re.ASCII
)

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names of the machine itself."""

MALFORMED_HOST = "the Host header is no host with a port; see RFC 9110, section 7.2"


def host_name(header: str) -> str | None:
    """Return the host of a Host header in lower case, without its port; None if it is malformed."""
    match = _HOST.fullmatch(header)
    if match is None:
        return None
    name = match["name"].lower()
    if name.startswith("["):
        try:
            ipaddress.IPv6Address(name[1:-1])
        except ValueError:
            return None
    return name
