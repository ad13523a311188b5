# SPDX-License-Identifier: Apache-2.0
"""Limits of HTTP connections, below the application: how long a request may take to arrive.

A request that RFC 9112 lets two servers read in two ways is answered 400, because a proxy in front
may have read it otherwise.
"""

import asyncio
import re
from ipaddress import IPv6Address
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

ARRIVAL_SECONDS = 30.0
"""From the connection, or the first byte of a further request, to the end of the body: 8 MiB at
280 kB/s."""

STALLED_SECONDS = 30.0
"""How long a client may read nothing of a response."""

MOST_CONNECTIONS = 512
"""Open at once; further requests are answered 503. Most systems give a process 1,024 files."""

_FOLDED = re.compile(rb"\n[ \t]")
_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|[\w.~!$&'()*+,;=%-]+)(?::[0-9]*)?", re.ASCII)


class TimedConnection(H11Protocol):
    """uvicorn's connection, which ends when its client sends, or reads, nothing for too long."""

    arrival_seconds = ARRIVAL_SECONDS
    stalled_seconds = STALLED_SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, config: uvicorn.Config, *arguments: Any, **rest: Any) -> None:
        super().__init__(config, *arguments, **rest)
        self.conn = _Connection(h11.SERVER)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
        self._abort_after(self.arrival_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes; stop the deadline when the request is complete."""
        super().data_received(data)
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._stop_deadline()
        elif self._deadline is None and not self.transport.is_closing():
            self._abort_after(self.arrival_seconds)

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read its response."""
        super().pause_writing()
        self._stop_deadline()
        self._abort_after(self.stalled_seconds)

    def resume_writing(self) -> None:
        """Stop the deadline of a client that reads on."""
        self._stop_deadline()
        super().resume_writing()

    def _abort_after(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


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
