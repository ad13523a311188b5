"""Servers that do not speak HTTP, or not TLS: each has its own reason."""

import asyncio

import httpx
import pytest

from dsf.outbound.pinned_connections import broken_http

TWO_LENGTHS = b"HTTP/1.1 200 x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"
CASES = [
    (b"\x15\x03\x03\x00\x02\x02\x46", "http", "NotHTTP"),
    (b"hello\r\n\r\n", "http", "NotHTTP"),
    (TWO_LENGTHS, "http", "InvalidHTTP"),
    (b"HTTP/1.1 200 x\r\nno colon\r\n\r\n", "http", "InvalidHTTP"),
    (b"HTTP/1.1 400 x\r\nContent-Length: 0\r\n\r\n", "https", "NotTLS"),
    (b"HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n{}", "http", None),
    (b"", "http", None),
]


@pytest.mark.parametrize(("sent", "scheme", "reason"), CASES)
async def test_each_fault_has_its_reason(sent: bytes, scheme: str, reason: str | None) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(sent)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, httpx.AsyncClient(trust_env=False) as client:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(httpx.HTTPError) as raised:
            await client.get(f"{scheme}://127.0.0.1:{port}/")
    found = broken_http(raised.value)
    assert (found and found[0]) == reason
