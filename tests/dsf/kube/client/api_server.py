"""A small API server over real HTTP whose next answers can be scripted.

It serves ConfigMaps of one namespace: lists in pages, and watches with history. A scripted
answer replaces the response to one request. After the script, the server behaves normally.
"""

import asyncio
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from dsf.kube.port import Object

Answer = Callable[["ApiServer", web.Request], Awaitable[web.StreamResponse]]
PATH = "/api/v1/namespaces/ns/configmaps"


class ApiServer:
    """The server's state; the version counts its writes."""

    def __init__(self) -> None:
        self.url = ""
        self.version = 1
        self.objects: dict[str, Object] = {}
        self.requests: list[web.Request] = []
        self.lists: deque[Answer] = deque()
        self.watches: deque[Answer] = deque()
        self.others: deque[Answer] = deque()
        self.stopped = asyncio.Event()
        self._history: list[tuple[int, str, Object]] = []
        self._oldest = 0
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    def put(self, name: str, **data: str) -> None:
        type_ = "MODIFIED" if name in self.objects else "ADDED"
        self.version += 1
        self.objects[name] = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"uid-{name}",
                "resourceVersion": str(self.version),
                "managedFields": [{"manager": "somebody"}],
            },
            "data": data,
        }
        self._record(type_, self.objects[name])

    def delete(self, name: str) -> None:
        self.version += 1
        last = self.objects.pop(name)
        metadata = {**last["metadata"], "resourceVersion": str(self.version)}
        self._record("DELETED", {**last, "metadata": metadata})

    def compact(self) -> None:
        """Forget the history: watches from before are answered with 410."""
        self._history.clear()
        self._oldest = self.version

    @property
    def data(self) -> dict[tuple[str, str], Any]:
        return {("ns", name): obj["data"] for name, obj in self.objects.items()}

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        app = web.Application()
        app.router.add_get(PATH, self._collection)
        app.router.add_route("*", "/{rest:.*}", self._other)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=tls).start()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        self.stopped.set()
        if self._runner:
            await self._runner.cleanup()

    def _record(self, type_: str, obj: Object) -> None:
        self._history.append((self.version, type_, obj))
        self._changed.set()
        self._changed = asyncio.Event()

    async def _collection(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        watching = request.query.get("watch") == "true"
        script = self.watches if watching else self.lists
        if script:
            return await script.popleft()(self, request)
        return await (self.watch(request) if watching else self.list(request))

    async def _other(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.others:
            return await self.others.popleft()(self, request)
        return web.Response(status=404, text="404 page not found\n")

    async def list(self, request: web.Request) -> web.Response:
        names = sorted(self.objects)
        start = int(request.query.get("continue", 0))
        end = start + int(request.query.get("limit", 0) or len(names))
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if end < len(names):
            metadata |= {"continue": str(end), "remainingItemCount": len(names) - end}
        items = [self.objects[name] for name in names[start:end]]
        return web.json_response({"kind": "ConfigMapList", "metadata": metadata, "items": items})

    async def watch(self, request: web.Request) -> web.StreamResponse:
        seen = int(request.query["resourceVersion"])
        if seen < self._oldest:
            return await status(410, "Expired")(self, request)
        response = await stream(request)
        try:
            async with asyncio.timeout(int(request.query["timeoutSeconds"])):
                while True:
                    changed = self._changed
                    for version, type_, obj in list(self._history):
                        if version > seen:
                            await send(response, type_, obj)
                            seen = version
                    await changed.wait()
        except TimeoutError:
            return response


def status(code: int, reason: str = "", **headers: str) -> Answer:
    """Answer with a Status."""

    async def answer(_: ApiServer, __: web.Request) -> web.StreamResponse:
        body = {"kind": "Status", "code": code, "reason": reason, "message": f"scripted {code}"}
        return web.json_response(body, status=code, headers=headers)

    return answer


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    return response


async def send(response: web.StreamResponse, type_: str, obj: Any) -> None:
    await response.write(json.dumps({"type": type_, "object": obj}).encode() + b"\n")


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[ApiServer]:
    server = ApiServer()
    await server.start(tls=tls)
    try:
        yield server
    finally:
        await server.stop()
