"""The embedded hub over HTTP, for kubectl and every other Kubernetes client.

It has no authentication, so it must listen on loopback only. It refuses requests whose `Host` is
unknown, which protects it from web pages that use DNS rebinding.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from dsf.api.host_header import LOOPBACK, MALFORMED_HOST, host_name
from dsf.api.strict_http import StrictConnection
from dsf.kube.embedded.http import kubectl, request_info
from dsf.kube.embedded.http.handlers import ResourceHandlers
from dsf.kube.embedded.hub import EmbeddedHub
from dsf.kube.errors import ApiError, BadRequest, Forbidden, NotFound, ServerError
from dsf.kube.port import Object
from dsf.kube.resources.resource_catalog import PAGE_NOT_FOUND

IDLE_SECONDS = 90
"""Seconds that an idle connection stays open, as in kube-apiserver.

Clients use a connection again after a pause: `dsf optimize` does after its user has said yes.
"""

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_LOG = logging.getLogger(__name__)


def create_app(hub: EmbeddedHub, *, hosts: Collection[str] = LOOPBACK) -> Starlette:
    """Return the ASGI app of a hub; requests must name one of `hosts`."""
    answers = ResourceHandlers(hub)

    async def respond(request: Request) -> Response:
        _check_host(request, hosts)
        found = _discovered(hub, request.url.path) if request.method in {"GET", "HEAD"} else None
        if found is not None:
            return JSONResponse(found)
        target = request_info.target(hub.server.catalog, request.url.path)
        if target is None:
            raise NotFound(PAGE_NOT_FOUND)
        return await answers.answer(request, target)

    async def healthy(request: Request) -> Response:
        _check_host(request, hosts)
        return PlainTextResponse("ok")

    health = [Route(path, _with_statuses(healthy)) for path in ("/healthz", "/livez", "/readyz")]
    everything = Route("/{path:path}", _with_statuses(respond), methods=_METHODS)
    return Starlette(routes=[*health, everything])


@asynccontextmanager
async def serving(hub: EmbeddedHub, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve a hub and yield its URL; port 0 takes a free one.

    Raises OSError if the port is not available. Open watches end with the context.
    """
    shown = f"[{host}]" if ":" in host else host
    app = create_app(hub, hosts={*LOOPBACK, shown})
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            app,
            http=_StrictProtocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        server = _LoopbackServer(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await server.accepting.wait()
            yield f"http://{shown}:{listener.getsockname()[1]}"
        finally:
            hub.end_watches()
            server.should_exit = True
            await task


def kubeconfig(url: str, *, name: str = "embedded") -> Object:
    """Return a kubeconfig for a served hub."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def _check_host(request: Request, served: Collection[str]) -> None:
    host = host_name(request.headers.get("host", ""))
    if host is None:
        raise BadRequest(MALFORMED_HOST)
    if host not in served:
        raise Forbidden(f"the host {host!r} is not served here")


class _StrictProtocol(H11Protocol):
    """uvicorn's connection, with the strict parser."""

    def __init__(self, config: uvicorn.Config, *arguments: Any, **rest: Any) -> None:
        super().__init__(config, *arguments, **rest)
        self.conn: StrictConnection = StrictConnection(h11.SERVER)

    def send_400_response(self, msg: str) -> None:
        """Answer why a request is refused, unless a response has begun, and close."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(self.conn.refusal or msg)
        self.transport.close()


class _LoopbackServer(uvicorn.Server):
    """A uvicorn server that leaves signal handling to the program."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, then set `accepting`."""
        await super().startup(sockets)
        self.accepting.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for a socket that names its protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def _with_statuses(
    respond: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        try:
            return await respond(request)
        except ApiError as error:
            return _refused(error)
        except Exception:  # noqa: BLE001 - the last resort: one request may not end the hub
            _LOG.exception("%s %s failed", request.method, request.url.path)
            return _refused(ServerError("Internal error occurred"))

    return answered


def _refused(error: ApiError) -> Response:
    return JSONResponse(error.status(), error.actual_code)


def _discovered(hub: EmbeddedHub, path: str) -> Object | None:
    resources = hub.server.catalog.all()
    found: Object | None = None
    match path.strip("/").split("/"):
        case ["version"]:
            found = kubectl.VERSION
        case ["api"]:
            found = kubectl.api_versions()
        case ["apis"]:
            found = kubectl.groups(resources)
        case ["apis", group]:
            found = kubectl.group(resources, group)
        case ["api", version]:
            found = kubectl.resource_list(resources, "", version)
        case ["apis", group, version]:
            found = kubectl.resource_list(resources, group, version)
        case ["openapi", "v3"]:
            found = kubectl.openapi_index(resources)
        case ["openapi", "v3", *place]:
            found = kubectl.openapi(resources, "/".join(place))
    return found
