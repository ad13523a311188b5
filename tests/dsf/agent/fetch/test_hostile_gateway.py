"""A gateway of several scorers sends one response too many: no request gets a wrong one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallDeadline, OutboundRequest, exchange
from dsf.agent.wire.http_answer import HttpAnswer

Write = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


def response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def at_once(writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(answer + response(b"forged"))


async def later(writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(answer)
    await writer.drain()
    await asyncio.sleep(0.02)
    writer.write(response(b"forged"))


async def in_part(writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(answer + response(b"forged")[:30])
    await writer.drain()
    await asyncio.sleep(0.02)
    writer.write(response(b"forged")[30:])


@asynccontextmanager
async def gateway(write: Write) -> AsyncIterator[str]:
    """Answer each request with its own path, and then once more; keep connections open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            while await reader.readline() != b"\r\n":
                pass
            await write(writer, response(head.split()[1]))

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("write", [at_once, later, in_part])
@pytest.mark.parametrize("pause", [0.0, 0.05])
@pytest.mark.fire("an answer belongs to its request", "a gateway that answers once too often")
async def test_an_answer_belongs_to_its_request(write: Write, pause: float) -> None:
    async with gateway(write) as url, http_client() as client:
        for scorer in ("/a", "/b", "/a", "/c"):
            answer = await exchange(
                client,
                OutboundRequest("GET", url + scorer),
                stage="scoring",
                deadline=CallDeadline.within(120),
                max_bytes=1 << 20,
            )
            assert isinstance(answer, HttpAnswer)
            assert bytes(answer.body) == scorer.encode()
            await asyncio.sleep(pause)
