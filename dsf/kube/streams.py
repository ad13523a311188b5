"""Streams of bytes and of events."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager

from dsf.kube.errors import Unreachable
from dsf.kube.port import WatchEvent


async def lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a stream, of any length, that are not empty.

    Raises Unreachable where the stream ends within a line: what is cut off is not understood.
    """
    rest = bytearray()
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest += first
        for other in others:
            if rest.strip():
                yield bytes(rest)
            rest = bytearray(other)
    if rest.strip():
        raise Unreachable("the API server's answer ended within a line")


@asynccontextmanager
async def closing(events: AsyncIterator[WatchEvent]) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    """Close a watch at the end of the context, where it can be closed."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
