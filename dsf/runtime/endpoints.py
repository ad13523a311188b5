"""Liveness, readiness and metrics over HTTP: `/healthz`, `/readyz`, `/metrics`.

aiohttp serves them, because the Kubernetes client has imported it already.
"""

import errno
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from dsf.api.host_header import MALFORMED_HOST, host_name

HIGHEST_PORT = 65535

Ready = Callable[[], Awaitable[str | None]]


class CannotListen(Exception):
    """The address cannot be bound; the message names it and says what to do."""


@asynccontextmanager
async def serve_endpoints(
    bind: str, *, registry: CollectorRegistry, ready: Ready
) -> AsyncIterator[str]:
    """Serve the endpoints on `host:port` while the context lasts, and yield their base URL.

    Port 0 takes a free port. `ready` returns None, or what is still missing; then `/readyz` answers
    503 with that text. `/metrics` answers in the format that the client accepts (Prometheus text
    or OpenMetrics). Raises CannotListen.
    """
    async with serving(_app(registry, ready), bind) as url:
        yield url


@asynccontextmanager
async def serving(
    app: web.Application,
    bind: str,
    *,
    flag: str = "--bind-address",
    auto_decompress: bool = True,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve an application on `host:port` while the context lasts, and yield its base URL.

    A malformed Host, and a transfer coding other than chunked, are answered 400, as aiohttp answers
    what else is malformed, and the connection closes. `flag` is the command-line flag of the
    address, for the message. With `tls`, the server speaks https only. Raises CannotListen.
    """
    host, port = _address(bind)
    app.middlewares.append(_refuse_ambiguous)
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=1.0, auto_decompress=auto_decompress
    )
    await runner.setup()
    try:
        await _listen(web.TCPSite(runner, host, port, ssl_context=tls), bind, flag)
        bound, number = runner.addresses[0][:2]
        yield f"{'https' if tls else 'http'}://{f'[{bound}]' if ':' in bound else bound}:{number}"
    finally:
        await runner.cleanup()


@web.middleware
async def _refuse_ambiguous(request: web.Request, handler: Handler) -> web.StreamResponse:
    why = ""
    if "Host" in request.headers and host_name(request.headers["Host"]) is None:
        why = MALFORMED_HOST
    elif request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        why = "the only Transfer-Encoding here is chunked"
    if not why:
        return await handler(request)
    response = web.Response(text=f"{why}\n", status=400)
    response.force_close()
    return response


def _app(registry: CollectorRegistry, ready: Ready) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        missing = await ready()
        return web.Response(text=f"{missing or 'ok'}\n", status=503 if missing else 200)

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app


async def _listen(site: web.TCPSite, bind: str, flag: str) -> None:
    try:
        await site.start()
    except OSError as error:
        used = error.errno == errno.EADDRINUSE
        reason = "the address is in use" if used else error.strerror or str(error)
        raise CannotListen(
            f"cannot listen on {bind}: {reason}; choose another with {flag}"
        ) from error


def _address(bind: str) -> tuple[str | None, int]:
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > HIGHEST_PORT:
        raise CannotListen(
            f'cannot listen on "{bind}": write host:port, such as 127.0.0.1:8080 or [::1]:8080'
        )
    return host.removeprefix("[").removesuffix("]") or None, int(port)
