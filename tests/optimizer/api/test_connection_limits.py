"""Callers that disconnect, stall or come in crowds, over real sockets."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, ObjectList
from optimizer.api.app import create_app
from optimizer.api.serving import ConnectionLimits, listen, serve, url
from optimizer.domain.settings import OptimizerSettings
from optimizer.operations.access.caller import caller_of
from optimizer.service.optimizer import Optimizer
from tests.dsf.runtime.test_endpoints import AMBIGUOUS
from tests.eventually import eventually
from tests.kube_wrappers.wrapper import Wrapper
from tests.optimizer.build import NOW, SETTINGS, body, guide, score, workload
from tests.optimizer.hubs import hub_of, names
from tests.optimizer.solve.test_supervised_process import no_process_is_left

HANGS_SECONDS = 60
SHORT = 0.05
"""Seconds of a deadline that a test waits for."""


class Held(Wrapper):
    """Holds the first call of one verb and kind until it is released."""

    def __init__(self, inner: Kube, verb: str, kind: Kind) -> None:
        super().__init__(inner)
        self._held = (verb, kind)
        self.reached, self.released = asyncio.Event(), asyncio.Event()
        self.cancelled = asyncio.Event()
        self.passing = 0
        """Calls that pass before one is held."""

    async def _hold(self, verb: str, kind: Kind) -> None:
        if (verb, kind) != self._held or self.reached.is_set():
            return
        if self.passing:
            self.passing -= 1
            return
        self.reached.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def list(self, kind: Kind, *args: Any, **rest: Any) -> ObjectList:
        await self._hold("list", kind)
        return await super().list(kind, *args, **rest)

    async def create(self, kind: Kind, *args: Any, **rest: Any) -> Object:
        await self._hold("create", kind)
        return await super().create(kind, *args, **rest)


class Server:
    """A served optimizer on a loopback socket."""

    def __init__(self, listener: Any) -> None:
        self.host, self.port = listener.getsockname()[:2]
        self.url = url(listener)

    async def connect(self, sent: bytes = b"") -> "Connection":
        connection = Connection(*await asyncio.open_connection(self.host, self.port))
        await connection.send(sent)
        return connection

    async def get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=HANGS_SECONDS) as http:
            return await http.get(f"{self.url}{path}")

    async def optimize(self, **more: Any) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=HANGS_SECONDS) as http:
            return await http.post(f"{self.url}/optimize", json={**body(), **more})


class Connection:
    """A connection whose bytes the test sends itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def response(self) -> bytes:
        """Return everything that the server sends until it closes the connection."""
        async with asyncio.timeout(HANGS_SECONDS):
            try:
                return await self._reader.read()
            except ConnectionResetError:
                return b""
            finally:
                self._writer.close()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def served(
    kube: Kube,
    limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - immutable
    settings: OptimizerSettings = OptimizerSettings(),  # noqa: B008 - immutable
) -> AsyncIterator[Server]:
    app = create_app(Optimizer(kube, settings, now=lambda: NOW), read_only=False)
    with listen("127.0.0.1", 0) as listener:
        running = asyncio.create_task(serve(app, listener, limits=limits))
        try:
            async with asyncio.timeout(HANGS_SECONDS):
                yield Server(listener)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def _post(request: dict[str, Any], path: str = "/optimize") -> bytes:
    content = json.dumps(request).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def _of_many() -> tuple[Any, dict[str, Any]]:
    """A fleet that takes the solver a while, and the request for it."""
    draw = random.Random(3)  # noqa: S311 - a seeded case, not a secret
    clusters, apps = [f"c{index}" for index in range(12)], [f"w{index}" for index in range(60)]
    entries = [f"{app};{device}" for app in apps for device, _ in SETTINGS]
    observation = replace(
        guide(clusters),
        workloads=tuple(workload(app, app, draw.choice([1, 2])) for app in apps),
        scores=tuple(
            score(cluster, "performance", {name: draw.randint(1, 100) for name in entries})
            for cluster in clusters
        ),
    )
    return observation, body("performance", clusters, apps)


async def _solver_stopped() -> bool:
    """Stop the solver's process by SIGSTOP, so that it can't end."""
    for process in multiprocessing.active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGSTOP)
            return True
    return False


async def test_the_solver_of_a_gone_caller_is_killed() -> None:
    observation, request = _of_many()
    hub = await hub_of(observation)
    settings = OptimizerSettings(time_limit_seconds=3_000.0, max_solves=1)
    async with served(hub, settings=settings) as server:
        connection = await server.connect(_post(request))
        await eventually(_solver_stopped, every=0.001)
        await connection.close()
        await eventually(no_process_is_left)
        assert await names(hub, kinds.PLACEMENT) == []

        async def has_room() -> bool:
            return (await server.optimize(dryRun=True)).status_code != 429

        await eventually(has_room)


@pytest.mark.parametrize("ahead", [b"", b"GET /healthz HTTP/1.1\r\n", _post(body("power"))])
async def test_a_gone_caller_is_noticed_whatever_it_sent_ahead(ahead: bytes) -> None:
    hub = await hub_of()
    kube = Held(hub, "list", kinds.POLICY)
    async with served(kube) as server:
        connection = await server.connect(_post(body()) + ahead)
        await kube.reached.wait()
        await connection.send(b"X-More: 1\r\n" if ahead else b"")
        await connection.close()
        await kube.cancelled.wait()
        assert (await server.get("/healthz")).status_code == 200
        assert await names(hub, kinds.PLACEMENT) == []


@pytest.mark.parametrize("path", ["/optimize", "/reset"])
async def test_a_caller_that_goes_before_the_first_write_writes_nothing(path: str) -> None:
    hub = await hub_of()
    if path == "/reset":
        async with served(hub) as server:
            assert (await server.optimize()).status_code == 200
    before = await names(hub, kinds.PLACEMENT)
    reset = Held(hub, "list", kinds.DYNAMIC_SCORER)
    kube = reset if before else Held(hub, "create", kinds.LEASE)
    async with served(kube) as server:
        sent = _post(body()) if path == "/optimize" else _post({"namespace": "default"}, path)
        connection = await server.connect(sent)
        await kube.reached.wait()
        await connection.close()
        await server.get("/healthz")  # the server has read what was sent before this
        kube.released.set()

        async def the_lease_is_given_back() -> bool:
            leases = (await hub.list(kinds.LEASE, "default")).items
            return any(not item["spec"].get("holderIdentity") for item in leases)

        await eventually(the_lease_is_given_back)
        assert await names(hub, kinds.PLACEMENT) == before


async def test_a_plan_that_is_being_written_is_written_as_a_whole() -> None:
    hub = await hub_of()
    kube = Held(hub, "create", kinds.PLACEMENT)
    async with served(kube) as server:
        connection = await server.connect(_post(body()))
        await kube.reached.wait()
        await connection.close()
        await server.get("/healthz")
        kube.released.set()

        async def all_are_written() -> bool:
            return len(await names(hub, kinds.PLACEMENT)) == 4

        await eventually(all_are_written)


async def test_too_many_plans_at_once_are_told_when_to_try_again() -> None:
    kube = Held(await hub_of(), "list", kinds.POLICY)
    async with served(kube, settings=OptimizerSettings(max_solves=1)) as server:
        first = asyncio.create_task(server.optimize())
        await kube.reached.wait()
        second = await server.optimize()
        assert (second.status_code, second.headers["Retry-After"]) == (429, "5")
        kube.released.set()
        assert (await first).status_code == 200


HEAD = b"POST /optimize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n"


@pytest.mark.parametrize(
    ("sent", "limits"),
    [
        (b"", ConnectionLimits(head_seconds=SHORT)),
        (HEAD, ConnectionLimits(head_seconds=SHORT)),
        (HEAD + b"\r\n{", ConnectionLimits(body_seconds=SHORT)),
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET",
            ConnectionLimits(head_seconds=SHORT),
        ),
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + HEAD + b"\r\n{",
            ConnectionLimits(body_seconds=SHORT),
        ),
    ],
    ids=["nothing", "half of the headers", "half of the body", "a second one", "a second body"],
)
async def test_a_request_that_does_not_arrive_in_time_is_a_408(
    sent: bytes, limits: ConnectionLimits
) -> None:
    async with served(EmbeddedHub(), limits) as server:
        response = await (await server.connect(sent)).response()
        assert b"HTTP/1.1 408 " in response
        assert b"application/problem+json" in response
        assert b'"reason":"RequestTimeout"' in response
        assert (await server.get("/healthz")).status_code == 200


async def test_a_slow_request_within_its_time_and_an_idle_connection_are_served() -> None:
    limits = ConnectionLimits(head_seconds=HANGS_SECONDS, body_seconds=HANGS_SECONDS)
    async with served(await hub_of(), limits) as server:
        connection = await server.connect()
        for byte in _post(body()).replace(b"Host: ", b"Connection: close\r\nHost: "):
            await connection.send(bytes([byte]))
        assert b"HTTP/1.1 200 " in await connection.response()


async def test_what_is_not_http_is_a_problem() -> None:
    async with served(EmbeddedHub()) as server:
        response = await (await server.connect(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")).response()
    assert response.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in response


@pytest.mark.parametrize("request_", AMBIGUOUS)
async def test_what_may_be_read_in_two_ways_is_a_400_and_ends_the_connection(
    request_: bytes,
) -> None:
    async with served(EmbeddedHub()) as server:
        response = await (await server.connect(request_ * 2)).response()
    assert response.startswith(b"HTTP/1.1 400 ")
    assert response.count(b"HTTP/1.") == 1
    assert b"application/problem+json" in response
    assert b"connection: close" in response.lower()


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (AMBIGUOUS[0], b"say the length twice"),
        (AMBIGUOUS[2], b"a second line"),
        (AMBIGUOUS[4], b"the Host header is no host"),
        (
            b"POST /optimize HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.0 has no Transfer-Encoding",
        ),
    ],
)
async def test_a_refused_request_is_told_why(request_: bytes, why: bytes) -> None:
    async with served(EmbeddedHub()) as server:
        good = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        response = await (await server.connect(good + request_)).response()
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.count(b"HTTP/1.1 400 ") == 1
    assert why in response


async def test_idle_connections_make_room_for_new_ones() -> None:
    async with served(EmbeddedHub(), ConnectionLimits(connections=8)) as server:
        crowd = [await server.connect(HEAD) for _ in range(40)]
        assert (await server.get("/healthz")).status_code == 200
        gone = [await connection.response() for connection in crowd[:33]]
        assert gone == [b""] * 33
        for connection in crowd[33:]:
            await connection.close()


async def test_while_all_connections_have_a_request_in_work_a_new_one_is_a_503() -> None:
    kube = Held(await hub_of(), "list", kinds.POLICY)
    async with served(kube, ConnectionLimits(connections=1)) as server:
        first = asyncio.create_task(server.optimize())
        await kube.reached.wait()
        response = await (await server.connect()).response()
        assert response.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5" in response
        kube.released.set()
        assert (await first).status_code == 200


async def test_a_client_that_reads_nothing_is_disconnected() -> None:
    gone = asyncio.Event()

    async def endless(_: Scope, receive: Receive, send: Send) -> None:
        async with caller_of(receive) as caller:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while caller.is_connected():
                await send({"type": "http.response.body", "body": bytes(65_536), "more_body": True})
                await asyncio.sleep(0)
        gone.set()

    limits = ConnectionLimits(stalled_seconds=SHORT)
    with listen("127.0.0.1", 0) as listener:
        running = asyncio.create_task(serve(endless, listener, limits=limits))
        connection = await Server(listener).connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(HANGS_SECONDS):
            await gone.wait()
        await connection.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_gone_caller_of_a_stream_of_progress_is_noticed() -> None:
    kube = Held(await hub_of(), "list", kinds.POLICY)
    asked = _post({"objective": {"performance": 1}}, "/plan")
    asked = asked.replace(b"Host:", b"Accept: text/event-stream\r\nHost:")
    async with served(kube) as server:
        connection = await server.connect(asked)
        await kube.reached.wait()
        await connection._reader.readuntil(b"event: progress")
        await connection.close()
        await kube.cancelled.wait()
