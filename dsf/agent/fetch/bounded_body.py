"""Reading a body from a stranger: inflated where it is gzip, and never more than is allowed."""

import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from typing import Protocol

PIECE_BYTES = 1 << 18

Room = Callable[[int], Awaitable[None]]


class UnusableBody(Exception):
    """A body that is broken; the message goes on from its owner's name."""


class TooLarge(UnusableBody):
    """More than is allowed."""


class UnknownEncoding(UnusableBody):
    """Packed in a way that is not understood."""


async def read_body(
    chunks: AsyncIterable[bytes], encoding: str, max_bytes: int, room: Room | None = None
) -> bytearray:
    """Return the body after decompression, at most `max_bytes`. Raises UnusableBody.

    `room` is awaited with the size that the body is going to have, before it has.
    """
    inflater = _inflater(encoding)
    body = bytearray()
    async for chunk in chunks:
        for piece in _inflated(inflater, chunk) if inflater else (chunk,):
            if len(body) + len(piece) > max_bytes:
                message = f"is larger than {max_bytes} bytes: ask for less"
                raise TooLarge(message)
            if room:
                await room(len(body) + len(piece))
            body += piece
    if inflater and not inflater.eof:
        raise UnusableBody("ends in the middle of its gzip data")
    return body


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _inflater(encoding: str) -> _Inflater | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    raise UnknownEncoding("has a Content-Encoding other than gzip")


def _inflated(inflater: _Inflater, chunk: bytes) -> Iterator[bytes]:
    """Yield a chunk inflated, a piece at a time, however much that becomes."""
    while not inflater.eof:  # the inflater would keep what follows its data, however much that is
        try:
            piece = inflater.decompress(chunk, PIECE_BYTES)
        except zlib.error as error:
            message = "is said to be gzip, but is not"
            raise UnusableBody(message) from error
        chunk = inflater.unconsumed_tail
        yield piece
        if not chunk and len(piece) < PIECE_BYTES:
            return
