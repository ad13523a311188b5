"""Serves an ASGI app on one address, with limits of connections.

Limits: how many, how long a request may take to arrive, and in what form. An ASGI application is
called when the headers have arrived, so slow headers, and connections that send nothing, can only
be limited here, below it. It sees headers as h11 has read them, so what a proxy may have read in
another way can only be refused here, too.
"""

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import h11
import uvicorn
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dsf.api.strict_http import StrictConnection
from dsf.runtime.endpoints import CannotListen
from optimizer.api.problem_details import RETRY_LATER, error_response

MALFORMED = 400
REQUEST_TIMEOUT = 408
UNAVAILABLE = 503

PIPELINED_BYTES = 65_536
"""What a client may send ahead of the response to its request before it is disconnected."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one server; times in seconds."""

    connections: int = 512
    """Open at once. Most systems give a process 1,024 file descriptors."""
    head_seconds: float = 10.0
    """From the opening of a connection, or the first byte of a further request, to the end of the
    headers. They fit into one packet."""
    body_seconds: float = 60.0
    """From the headers to the end of the body: the largest at 140 kB/s."""
    stalled_seconds: float = 60.0
    """How long a client may read nothing of a response."""


DEFAULT_LIMITS = ConnectionLimits()


class LimitedConnection(H11Protocol):
    """uvicorn's connection with limits; a request that breaks one is answered by problem details.

    Where there are too many connections, the one that is the nearest to its deadline makes room
    for a new one; while all have a request in work, the new one is answered 503.
    """

    limits = DEFAULT_LIMITS
    _deadline: asyncio.TimerHandle | None = None
    _reads_body = False

    def __init__(self, config: uvicorn.Config, *arguments: Any, **rest: Any) -> None:
        super().__init__(config, *arguments, **rest)
        self.conn: StrictConnection = StrictConnection(h11.SERVER)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and not self._make_room():
            self._refuse(UNAVAILABLE, "all connections are in use")
            return
        self._expire_after(self.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes; start, keep or stop the deadline of the headers or the body."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        ahead, _ = self.conn.trailing_data
        if len(ahead) > PIPELINED_BYTES:
            self.transport.abort()
        elif self.conn.their_state is h11.DONE:
            # uvicorn stops reading where a request was sent ahead, and would miss a disconnect.
            self.flow.resume_reading()
        self._follow_request()

    def on_response_complete(self) -> None:
        """Let the deadline follow a request that was sent ahead."""
        super().on_response_complete()
        idle = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if not idle and not self.transport.is_closing():
            self._follow_request()

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read its response."""
        super().pause_writing()
        self._stop_deadline()
        self._deadline = self.loop.call_later(self.limits.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the deadline of a client that reads on."""
        self._stop_deadline()
        super().resume_writing()

    @property
    def due(self) -> float | None:
        """When the client has to have sent more, in the loop's time; None: it need not."""
        timer = self._deadline or self.timeout_keep_alive_task
        return None if timer is None else timer.when()

    def give_way(self) -> None:
        """Disconnect at once, so that another connection has room."""
        self._stop_deadline()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Respond 400 with problem details to bytes that are not an HTTP request."""
        self._refuse(MALFORMED, self.conn.refusal or msg)

    def _follow_request(self) -> None:
        reads_body = self.conn.their_state is h11.SEND_BODY
        if self.conn.their_state is not h11.IDLE and not reads_body:
            self._stop_deadline()
        elif self._deadline is None or reads_body != self._reads_body:
            limits = self.limits
            self._expire_after(limits.body_seconds if reads_body else limits.head_seconds)
        self._reads_body = reads_body

    def _expire_after(self, seconds: float) -> None:
        self._stop_deadline()
        said = f"the request did not arrive within {seconds:g} s"
        self._deadline = self.loop.call_later(seconds, self._refuse, REQUEST_TIMEOUT, said)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> bool:
        """Close the connection that is the nearest to its deadline; tell whether there is one."""
        due = [
            (when, connection)
            for connection in self.connections
            if isinstance(connection, LimitedConnection)
            if (when := connection.due) is not None
        ]
        if due:
            min(due, key=lambda item: item[0])[1].give_way()
        return bool(due)

    def _refuse(self, status: int, detail: str) -> None:
        """Answer if no response has begun, and close; the application sees a disconnect."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._answer(
                error_response(
                    HTTPException(
                        status, detail, headers=RETRY_LATER if status == UNAVAILABLE else None
                    )
                )
            )
        self.transport.close()

    def _answer(self, response: Response) -> None:
        for event in (
            h11.Response(
                status_code=response.status_code,
                headers=[*response.raw_headers, (b"connection", b"close")],
            ),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            with suppress(h11.LocalProtocolError):  # the response to HEAD has no body
                self.transport.write(self.conn.send(event) or b"")


def limited_connection(limits: ConnectionLimits) -> type[LimitedConnection]:
    """Return the class of connections with these limits."""
    return type("LimitedConnection", (LimitedConnection,), {"limits": limits})


SHUTDOWN_SECONDS = 10
"""Time that open requests have to end after a cancellation; Kubernetes' grace period is 30 s."""


class Certificate(Protocol):
    """What a server proves its name with; the context may serve another one at each handshake."""

    context: ssl.SSLContext


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; a used port fails here, before anything else starts.

    Port 0 chooses a free port. Raises CannotListen.
    """
    # asyncio turns Nagle's delay off only if the socket names its protocol.
    listener = socket.socket(_family(host), socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise CannotListen(_sentence(host, port, error)) from error
    return listener


def url(listener: socket.socket, *, tls: bool = False) -> str:
    """Return the base URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


async def serve(
    app: ASGIApp,
    listener: socket.socket,
    certificate: Certificate | None = None,
    *,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    shutdown_seconds: int = SHUTDOWN_SECONDS,
) -> None:
    """Serve HTTP/1.1 until cancelled, over TLS with a certificate.

    Open requests get `shutdown_seconds` to end, and then the same time to release what they hold.
    """
    config = uvicorn.Config(
        app,
        http=limited_connection(limits),
        ws="none",
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=shutdown_seconds,
        ssl_context_factory=(lambda *_: certificate.context) if certificate else None,
    )
    server = _SignalFreeServer(config)
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        server.should_exit = True
        await running
        if cut_off := server.server_state.tasks:
            await asyncio.wait(cut_off, timeout=shutdown_seconds)
        raise


class _SignalFreeServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals: the process handles them."""
        yield


def _family(host: str) -> socket.AddressFamily:
    try:
        six = isinstance(ipaddress.ip_address(host), ipaddress.IPv6Address)
    except ValueError:
        six = False
    return socket.AF_INET6 if six else socket.AF_INET


def _sentence(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; choose another with --port"
    return (
        f"cannot listen on {host} port {port}: {error.strerror or error};"
        " choose another with --bind-address and --port"
    )
