"""Streams of an API server as lines."""

from collections.abc import AsyncGenerator, AsyncIterable

from dsf.kube.errors import Unreachable


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
