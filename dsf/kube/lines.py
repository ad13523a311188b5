"""A stream of bytes cut into lines of any length."""

from collections.abc import AsyncGenerator, AsyncIterable

from dsf.kube.errors import Unreachable


async def lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the lines that are not empty.

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
