"""HTTP without what RFC 9112 lets two servers read in two ways: such a request is answered 400."""

import re
from ipaddress import IPv6Address
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_FOLDED = re.compile(rb"\n[ \t]")
_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|[\w.~!$&'()*+,;=%-]+)(?::[0-9]*)?", re.ASCII)


class StrictProtocol(H11Protocol):
    """uvicorn's connection, which refuses what a proxy in front of it may have read otherwise."""

    def __init__(self, config: uvicorn.Config, *arguments: Any, **rest: Any) -> None:
        super().__init__(config, *arguments, **rest)
        self.conn = _Connection(h11.SERVER)


class _Connection(h11.Connection):
    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event; raises RemoteProtocolError."""
        head = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if isinstance(event, h11.Request) and _is_ambiguous(event, head):
            raise h11.RemoteProtocolError("the request can be read in two ways")
        return event


def _is_ambiguous(request: h11.Request, head: bytes) -> bool:
    headers = dict(request.headers)
    head = head.lstrip(b"\r\n").replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    return (
        _FOLDED.search(head) is not None
        or {b"content-length", b"transfer-encoding"} <= headers.keys()
        or (b"transfer-encoding" in headers and request.http_version < b"1.1")
        or (b"host" in headers and not _is_host(headers[b"host"]))
    )


def _is_host(header: bytes) -> bool:
    found = _HOST.fullmatch(header)
    try:
        return found is not None and (not found[1] or bool(IPv6Address(found[1].decode())))
    except ValueError:
        return False
