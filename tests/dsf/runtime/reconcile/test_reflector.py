"""The reflector over real HTTP: after any fault of a watch, the local copy converges.

The rows are observed faults of watches by Python clients.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from dsf.kube.changes import without_managed_fields
from dsf.kube.client.connect import Transport
from dsf.kube.client.credentials import find_source
from dsf.kube.client.kube_client import Client
from dsf.kube.kinds import CONFIG_MAP
from dsf.kube.port import Object
from dsf.runtime.backoff import Backoff
from dsf.runtime.reconcile.reflector import Key, View
from tests.dsf.kube.client.api_server import Answer, ApiServer, send, serving, status, stream
from tests.dsf.kube.client.kubeconfigs import kubeconfig, written

PATIENCE = 60


@asynccontextmanager
async def reflecting(
    server: ApiServer, directory: Path, watch_seconds: int = 240, answer_bytes: int = 0
) -> AsyncIterator["Watched"]:
    config = written(directory / "config", kubeconfig(server.url))
    transport = Transport(find_source(config))
    client = Client(transport, call_seconds=5, watch_grace_seconds=0.2, answer_bytes=answer_bytes)
    reflector = View(
        client,
        CONFIG_MAP,
        "ns",
        read=without_managed_fields,
        backoff=Backoff(0.01, 0.05),
        watch_seconds=(watch_seconds, watch_seconds),
    )
    watched = Watched(reflector)
    task = asyncio.create_task(reflector.run())
    try:
        yield watched
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()


class Watched:
    """A reflector and what it told."""

    def __init__(self, reflector: View[Object]) -> None:
        self.reflector = reflector
        self.changes: list[Key] = []
        self.names: list[set[str]] = []
        self._changed = asyncio.Event()
        reflector.on_change(self._take)

    @property
    def data(self) -> dict[Key, object]:
        return {key: obj["data"] for key, obj in self.reflector.items.items()}

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def catches_up(self, server: ApiServer) -> None:
        """Wait until the copy shows all of what happened meanwhile."""
        await self.until(lambda: "comes" in server.objects and self.data == server.data)

    def _take(self, key: Key) -> None:
        self.changes.append(key)
        self.names.append({name for _, name in self.reflector.items})
        self._changed.set()


def meanwhile(server: ApiServer) -> None:
    """What happens while nobody watches."""
    server.delete("goes")
    server.put("changes", n="2")
    server.put("comes")


async def error_event_410(server: ApiServer, request: web.Request) -> web.StreamResponse:
    meanwhile(server)
    server.compact()
    response = await stream(request)
    await send(response, "ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
    return response


async def http_410(server: ApiServer, request: web.Request) -> web.StreamResponse:
    meanwhile(server)
    server.compact()
    return await status(410, "Expired")(server, request)


async def dropped(server: ApiServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request)
    meanwhile(server)
    assert request.transport
    request.transport.abort()
    return response


async def dropped_within_a_line(server: ApiServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request)
    meanwhile(server)
    await response.write(b'{"type": "DELETED", "object": {"metadata": {"name": "stays"')
    return response


async def closed_cleanly(server: ApiServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request)
    meanwhile(server)
    return response


async def garbage(server: ApiServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request)
    meanwhile(server)
    await response.write(b"<html>\n")
    return response


async def refused_500_as_html(server: ApiServer, request: web.Request) -> web.StreamResponse:
    meanwhile(server)
    return web.Response(status=500, text="<html>gateway</html>")


async def redirected(server: ApiServer, request: web.Request) -> web.StreamResponse:
    meanwhile(server)
    return web.Response(status=302, headers={"Location": f"{server.url}/elsewhere"})


def refused(code: int, **headers: str) -> Answer:
    async def answer(server: ApiServer, request: web.Request) -> web.StreamResponse:
        meanwhile(server)
        return await status(code, **headers)(server, request)

    return answer


FAULTS: dict[str, Answer] = {
    "410 as an event": error_event_410,
    "410 as a status": http_410,
    "connection dropped": dropped,
    "dropped within a line": dropped_within_a_line,
    "clean close": closed_cleanly,
    "garbage": garbage,
    "500": refused(500),
    "500 as HTML": refused_500_as_html,
    "401": refused(401),
    "403": refused(403),
    "429": refused(429, **{"Retry-After": "0"}),
    "503": refused(503),
    "302": redirected,
}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with serving() as server:
        server.put("stays")
        server.put("changes", n="1")
        server.put("goes")
        yield server


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_after_a_fault_the_copy_converges_and_deletes_only_what_is_gone(
    server: ApiServer, tmp_path: Path, fault: Answer
) -> None:
    server.watches.append(fault)
    async with reflecting(server, tmp_path) as watched:
        await watched.catches_up(server)
        told = Counter(name for _, name in watched.changes)
        assert told == {"stays": 1, "goes": 2, "changes": 2, "comes": 1}
        assert all("stays" in names for names in watched.names)
        server.put("later")
        await watched.until(lambda: watched.data == server.data)


async def test_a_connection_whose_other_end_is_gone_is_noticed(
    server: ApiServer, tmp_path: Path
) -> None:
    async def half_open(server: ApiServer, request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        meanwhile(server)
        await server.stopped.wait()
        return response

    server.watches.append(half_open)
    async with reflecting(server, tmp_path, watch_seconds=1) as watched:
        await watched.catches_up(server)


async def test_an_api_server_that_was_away_is_found_again(
    server: ApiServer, tmp_path: Path
) -> None:
    async with reflecting(server, tmp_path) as watched:
        await watched.until(lambda: watched.data == server.data)
        await server.stop()
        meanwhile(server)
        await asyncio.sleep(0.2)
        assert ("ns", "goes") in watched.reflector.items
        await server.start(port=int(server.url.rpartition(":")[2]))
        await watched.until(lambda: watched.data == server.data)
        assert all("stays" in names for names in watched.names)


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503])
async def test_a_list_that_fails_deletes_nothing_and_is_tried_again(
    server: ApiServer, tmp_path: Path, code: int
) -> None:
    server.lists.extend([ApiServer.list, status(code), status(code)])
    server.watches.append(http_410)
    async with reflecting(server, tmp_path) as watched:
        await watched.catches_up(server)
        assert all("stays" in names for names in watched.names)


async def test_pages_are_followed_and_counted_as_one_list(tmp_path: Path) -> None:
    async with serving() as server:
        for number in range(1201):
            server.put(f"n{number}")
        async with reflecting(server, tmp_path) as watched:
            await watched.reflector.synced.wait()
            assert watched.data == server.data
    assert [request.query.get("continue") for request in server.requests[:3]] == [
        None,
        "500",
        "1000",
    ]


async def test_pages_that_expire_are_read_again_as_one(tmp_path: Path) -> None:
    async with serving() as server:
        for number in range(700):
            server.put(f"n{number}")
        server.lists.extend([ApiServer.list, status(410, "Expired")])
        async with reflecting(server, tmp_path) as watched:
            await watched.reflector.synced.wait()
            assert watched.data == server.data
    assert [request.query.get("limit") for request in server.requests[:3]] == ["500", "500", None]


async def test_pages_that_are_too_large_are_read_again_as_smaller_ones(tmp_path: Path) -> None:
    async with serving() as server:
        for number in range(20):
            server.put(f"n{number}", text="x" * 100_000)
        async with reflecting(server, tmp_path, answer_bytes=1 << 20) as watched:
            await watched.until(lambda: watched.data == server.data)
    limits = [request.query.get("limit") for request in server.requests[:7]]
    assert limits == ["500", "125", "31", "7", "7", "7", None]


async def test_objects_of_more_than_a_megabyte_come_whole(
    server: ApiServer, tmp_path: Path
) -> None:
    async with reflecting(server, tmp_path) as watched:
        await watched.until(lambda: watched.data == server.data)
        server.put("big", text="x" * 1_200_000)
        await watched.until(lambda: watched.data == server.data)


async def test_a_bookmark_moves_the_version_and_changes_nothing(
    server: ApiServer, tmp_path: Path
) -> None:
    sent = asyncio.Event()

    async def bookmarked(server: ApiServer, request: web.Request) -> web.StreamResponse:
        server.version += 100
        server.compact()
        response = await stream(request)
        bookmark = {"kind": "ConfigMap", "metadata": {"resourceVersion": str(server.version)}}
        await send(response, "BOOKMARK", bookmark)
        sent.set()
        return response

    server.watches.append(bookmarked)
    async with reflecting(server, tmp_path) as watched:
        await sent.wait()
        server.put("later")
        await watched.until(lambda: watched.data == server.data)
    watches = [r.query["resourceVersion"] for r in server.requests if "watch" in r.query]
    assert watches == ["4", "104"]
    assert len(server.requests) == 3
    assert watched.changes.count(("ns", "stays")) == 1


async def test_objects_are_kept_without_what_only_the_server_needs(
    server: ApiServer, tmp_path: Path
) -> None:
    async with reflecting(server, tmp_path) as watched:
        await watched.until(lambda: watched.data == server.data)
        obj = watched.reflector.items["ns", "stays"]
    assert "managedFields" not in obj["metadata"]
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "ConfigMap")


async def test_a_refresh_shows_what_a_silent_watch_does_not(
    server: ApiServer, tmp_path: Path
) -> None:
    async def silent(server: ApiServer, request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        meanwhile(server)
        heard.set()
        await server.stopped.wait()
        return response

    heard = asyncio.Event()
    server.watches.append(silent)
    server.lists.extend([ApiServer.list, status(503)])
    async with reflecting(server, tmp_path) as watched, asyncio.timeout(PATIENCE):
        await heard.wait()
        assert watched.data != server.data
        await watched.reflector.refresh()
        assert watched.data == server.data
        server.put("later")
        await watched.until(lambda: watched.data == server.data)
