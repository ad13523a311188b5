"""Liveness, readiness and metrics, asked over HTTP."""

import socket

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from dsf.runtime.endpoints import CannotListen, serve_endpoints


def ready() -> str | None:
    return None


async def fetched(url: str, **headers: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, response.content_type, await response.text()


async def test_alive_and_ready_are_two_things() -> None:
    missing: list[str] = ["the first list of configmaps"]
    async with serve_endpoints(
        "127.0.0.1:0",
        registry=CollectorRegistry(),
        ready=lambda: missing[0] if missing else None,
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
