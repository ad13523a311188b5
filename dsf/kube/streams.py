"""Streams of an API server: lines of bytes, and watches that must be closed."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager

from dsf.kube.errors import Unreachable
from dsf.kube.port import WatchEvent


async def lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the non-empty lines of a stream; a line may have any length.

    Raises Unreachable if the stream ends within a line, because a truncated line is not JSON.
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
    """Yield a watch and close it at the end of the context, if it has `aclose`."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
