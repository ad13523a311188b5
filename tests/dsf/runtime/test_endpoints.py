"""Liveness, readiness and metrics, asked over HTTP."""

import asyncio
import socket

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from dsf.runtime.endpoints import CannotListen, serve_endpoints

HANGS_SECONDS = 60.0


async def ready() -> str | None:
    return None


async def fetched(url: str, **headers: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, response.content_type, await response.text()


async def test_alive_and_ready_are_two_things() -> None:
    missing: list[str] = ["the first list of configmaps"]

    async def unready_reason() -> str | None:
        return missing[0] if missing else None

    async with serve_endpoints(
        "127.0.0.1:0", registry=CollectorRegistry(), ready=unready_reason
    ) as url:
        assert await fetched(f"{url}/healthz") == (200, "text/plain", "ok\n")
        expected = (503, "text/plain", "the first list of configmaps\n")
        assert await fetched(f"{url}/readyz") == expected
        missing.clear()
        assert (await fetched(f"{url}/readyz"))[0] == 200


@pytest.mark.parametrize(
    ("accept", "content_type", "last_line"),
    [
        ("*/*", "text/plain", "hits_total 1.0"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", "# EOF"),
    ],
)
async def test_metrics_come_in_the_format_that_is_asked_for(
    accept: str, content_type: str, last_line: str
) -> None:
    registry = CollectorRegistry()
    Counter("hits", "Hits.", registry=registry).inc()
    async with serve_endpoints("127.0.0.1:0", registry=registry, ready=ready) as url:
        status, type_, text = await fetched(f"{url}/metrics", Accept=accept)
    assert (status, type_) == (200, content_type)
    assert "hits_total 1.0" in text
    assert any(line.startswith(last_line) for line in text.splitlines())


async def test_other_paths_and_methods_are_refused() -> None:
    async with serve_endpoints("[::1]:0", registry=CollectorRegistry(), ready=ready) as url:
        assert url.startswith("http://[::1]:")
        assert (await fetched(f"{url}/"))[0] == 404
        async with aiohttp.ClientSession() as session, session.post(f"{url}/healthz") as response:
            assert response.status == 405


async def test_a_used_port_is_named_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen) as raised:
            async with serve_endpoints(bind, registry=CollectorRegistry(), ready=ready):
                pass
    message = f"cannot listen on {bind}: the address is in use; choose another with --bind-address"
    assert str(raised.value) == message


@pytest.mark.parametrize("bind", ["", "8080", "localhost", "127.0.0.1:", "a:65536", "a:-1", "a:x"])
async def test_a_bad_address_is_explained(bind: str) -> None:
    with pytest.raises(CannotListen, match="write host:port"):
        async with serve_endpoints(bind, registry=CollectorRegistry(), ready=ready):
            pass


async def test_the_port_is_free_again_afterwards() -> None:
    async with serve_endpoints("127.0.0.1:0", registry=CollectorRegistry(), ready=ready) as url:
        pass
    bind = url.removeprefix("http://")
    async with serve_endpoints(bind, registry=CollectorRegistry(), ready=ready) as again:
        assert again == url


AMBIGUOUS = [
    (
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    (
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Length: 5\r\n\r\n0\r\n\r\n"
    ),
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n\tc\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: [::1]evil\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost:80@evil.com\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost:80:80\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: local host\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: [:::::]\r\n\r\n",
    b"HEAD /healthz HTTP/1.1\r\nHost: localhost/x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    (
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
        b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"
    ),
]
"""Requests that two servers may read differently. Sources: RFC 9112 3.2, 5.2, 6.1; RFC 9110 7.2."""


async def whole_response(url: str, sent: bytes) -> bytes:
    """Return what a server sends until it closes the connection, which this side does not."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.write(sent)
    async with asyncio.timeout(HANGS_SECONDS):
        found = await reader.read()
    writer.close()
    return found


@pytest.mark.parametrize("request_", AMBIGUOUS)
async def test_what_may_be_read_in_two_ways_is_a_400_and_ends_the_connection(
    request_: bytes,
) -> None:
    async with serve_endpoints("127.0.0.1:0", registry=CollectorRegistry(), ready=ready) as url:
        answer = await whole_response(url, request_ * 2)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert answer.count(b"HTTP/1.") == 1


@pytest.mark.parametrize("host", ["localhost", "[::1]:80", "10.0.0.1:", "hub.example:443"])
async def test_any_well_formed_host_is_answered(host: str) -> None:
    """A probe or Prometheus names a Pod's address."""
    async with serve_endpoints("127.0.0.1:0", registry=CollectorRegistry(), ready=ready) as url:
        sent = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert b" 200 OK" in await whole_response(url, sent.encode())
