"""Serves an ASGI app on one address until the caller is cancelled."""

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from typing import Protocol

import uvicorn
from starlette.types import ASGIApp

from dsf.runtime.endpoints import CannotListen
from optimizer.api.connection_limits import DEFAULT_LIMITS, ConnectionLimits, limited_connection

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
