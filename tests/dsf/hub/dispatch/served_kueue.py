"""Kueue's embedded hub over HTTP, with applies of a status, and `dsf dispatcher` as a process."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dsf.kube.embedded.http.handlers import SERVER_SIDE_APPLY
from dsf.kube.embedded.http.server import create_app, kubeconfig
from dsf.kube.errors import ApiError
from dsf.kube.kinds import WORKLOAD
from tests.dsf.hub.dispatch.kueue_hub import KueueHub

Arrives = Callable[[Request], bool]
"""Called for each write; False: it does not arrive."""


def applying_app(hub: KueueHub, arrives: Arrives) -> ASGIApp:
    """The app of a hub that also takes applies of the status of a Workload."""
    inner = create_app(hub)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        reads = request.method in {"GET", "HEAD"}
        if not reads and not arrives(request):
            await Response(status_code=503)(scope, receive, send)
        elif request.headers.get("content-type") in SERVER_SIDE_APPLY:
            await (await _applied(hub, request))(scope, receive, send)
        else:
            await inner(scope, receive, send)

    return app


async def _applied(hub: KueueHub, request: Request) -> Response:
    obj, manager = json.loads(await request.body()), request.query_params["fieldManager"]
    try:
        return JSONResponse(await hub.applying().apply_status(WORKLOAD, obj, manager=manager))
    except ApiError as error:
        return JSONResponse(error.status(), error.actual_code)


@asynccontextmanager
async def serving_kueue(
    hub: KueueHub, directory: Path, arrives: Arrives = lambda _: True
) -> AsyncIterator[None]:
    """Serve a hub; its kubeconfig is `config` in a directory."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        (directory / "config").write_text(json.dumps(kubeconfig(url)))
        config = uvicorn.Config(
            applying_app(hub, arrives),
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        server = _SignalFreeServer(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield
        finally:
            hub.end_watches()
            server.should_exit = True
            await task


class _SignalFreeServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def start_dispatcher(
    directory: Path, *flags: str, without: str = ""
) -> asyncio.subprocess.Process:
    """Start `dsf dispatcher` for the hub whose kubeconfig is `config` in a directory.

    `without`: a package that is not installed.
    """
    program = f"import sys; sys.modules[{without!r}] = None; from dsf.cli import main; main()"
    command = (*(("-c", program) if without else ("-m", "dsf")), "dispatcher")
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *command, f"--kubeconfig={directory / 'config'}", *flags),
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stderr=asyncio.subprocess.PIPE,
    )
