"""Every error of a hostile host becomes a value with the place and the reason."""

import contextlib
import gzip
import socket
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import HttpClient, http_client
from dsf.agent.fetch.http_exchange import CallDeadline, CallLimits, OutboundRequest, exchange
from dsf.agent.wire.http_answer import HttpAnswer, display_url, is_http_url, status_failure
from tests.dsf.agent.servers import Handler, replying, serving

MAX_BYTES = 1 << 20


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    async with http_client() as opened:
        yield opened


async def get(
    client: HttpClient, url: str, *, seconds: float = 120.0, token: str = ""
) -> HttpAnswer | Failure:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return await exchange(
        client,
        OutboundRequest("GET", url, headers=headers),
        stage="source",
        deadline=CallDeadline.within(seconds),
        max_bytes=MAX_BYTES,
    )


async def got(client: HttpClient, handler: Handler, *, seconds: float = 120.0) -> Failure:
    async with serving(handler) as server:
        found = await get(client, f"{server.url}/x?token=canary", seconds=seconds)
        assert isinstance(found, Failure)
        assert f"{server.url}/x" in found.message
        assert "canary" not in found.message
        return found


async def test_an_answer_is_read_whatever_its_status(client: HttpClient) -> None:
    async with serving(replying(b"no", 418)) as server:
        assert await get(client, server.url) == HttpAnswer(418, "application/json", b"no")


async def test_refused(client: HttpClient) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        found = await get(client, f"http://user:canary@127.0.0.1:{port}/x")
    assert isinstance(found, Failure)
    assert found.reason == "Unreachable"
    assert f"http://127.0.0.1:{port}/x: Connection refused" in found.message
    assert "canary" not in found.message


async def test_a_name_that_does_not_exist(client: HttpClient) -> None:
    found = await get(client, "http://does-not-exist.invalid/x")
    assert isinstance(found, Failure)
    assert found.reason == "Unreachable"
    assert "does-not-exist.invalid" in found.message


async def test_an_address_that_drops_packets_is_unreachable(client: HttpClient) -> None:
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/x"
        found = await get(client, url, seconds=2)
    assert isinstance(found, Failure)
    assert found.reason == "Unreachable"
    assert f"{url}: no connection in time; is the address right" in found.message


async def test_a_gzip_bomb_is_not_unpacked(client: HttpClient) -> None:
    bomb = gzip.compress(bytes(40 * MAX_BYTES))
    assert len(bomb) < MAX_BYTES
    tracemalloc.start()
    found = await got(client, replying(bomb, headers={"Content-Encoding": "gzip"}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.reason == "ResponseTooLarge"
    assert peak < 10 * MAX_BYTES


async def test_what_follows_the_gzip_data_is_not_kept(client: HttpClient) -> None:
    async def followed(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        await response.write(gzip.compress(b"hello"))
        for _ in range(20):
            await response.write(bytes(MAX_BYTES))
        return response

    async with serving(followed) as server:
        tracemalloc.start()
        found = await get(client, server.url)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert isinstance(found, HttpAnswer)
    assert found.body == b"hello"
    assert peak < 10 * MAX_BYTES


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"hello" * 1000, mtime=0)[:-20], "gzip"),
        (b"hello", "gzip"),
        (b"hello", "zstd"),
    ],
)
async def test_a_body_that_cannot_be_unpacked(
    client: HttpClient, body: bytes, encoding: str
) -> None:
    found = await got(client, replying(body, headers={"Content-Encoding": encoding}))
    assert found.reason == "InvalidResponse"


async def test_redirects_are_not_followed(client: HttpClient) -> None:
    async with serving(replying({})) as sentinel:
        async with serving(replying(b"", 302, {"Location": sentinel.url})) as server:
            found = await get(client, server.url)
        assert isinstance(found, HttpAnswer)
        assert found.status == 302
        assert sentinel.calls == []


async def test_cookies_are_not_kept(client: HttpClient) -> None:
    async with serving(replying({}, headers={"Set-Cookie": "a=b; Path=/"})) as server:
        await get(client, server.url)
        await get(client, server.url)
    assert "Cookie" not in server.calls[1].headers


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(replying({})) as proxy, serving(replying({})) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with http_client() as client:
            await get(client, server.url)
        assert (len(proxy.calls), len(server.calls)) == (0, 1)


async def test_a_server_is_quoted_until_it_was_sent_a_token(client: HttpClient) -> None:
    heard: list[str] = []

    async def echo(request: web.Request) -> web.StreamResponse:
        heard.append(request.headers.get("Authorization", "nothing"))
        return web.Response(status=401, text=f"heard {heard}"[::-1])

    async def message(url: str, token: str = "") -> str:
        found = await get(client, url, token=token)
        assert isinstance(found, HttpAnswer)
        assert "canary" not in repr(found.secrets)
        return status_failure("source", url, found).message

    async with serving(echo) as server:
        assert "gnihton" in await message(server.url)
        elsewhere = server.url.replace("127.0.0.1", "localhost")
        for token in ("canary", ""):  # the server may remember it
            found = await message(f"{server.url}/other", token)
            assert found.endswith(
                "answered 401 (text/plain); its words are not repeated, because it was sent a"
                " credential; check the scorer's auth, and what its Secret has"
            )
        assert "yranac" in await message(elsewhere)


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://h/", "http://", "http://[::1", "http://h:99999/", "file:///etc/passwd", "//h"],
)
async def test_what_is_no_http_url(client: HttpClient, url: str) -> None:
    assert not is_http_url(url)
    found = await get(client, url)
    assert isinstance(found, Failure)
    assert found.reason == "InvalidURL"


@pytest.mark.parametrize(
    "url", ["http://a\nb/", "http://h/\x00", "http://☃.\u2060/", "http://h h/"]
)
async def test_a_strange_url_is_a_failure_and_no_crash(client: HttpClient, url: str) -> None:
    assert isinstance(await get(client, url, seconds=5), Failure)


def test_a_url_is_shown_without_secrets() -> None:
    assert display_url("https://me:pw@host:8443/path?token=x#y") == "https://host:8443/path"
    assert display_url("http://[::1]:80/") == "http://[::1]:80/"
    assert display_url("http://[::1") == "(not a URL)"


def test_the_deadline_follows_the_interval_within_bounds() -> None:
    limits = CallLimits()
    assert [limits.deadline(seconds) for seconds in (1, 30, 3600)] == [10, 30, 120]
