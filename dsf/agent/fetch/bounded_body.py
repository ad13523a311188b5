"""Reads the body of a request or answer, inflates gzip, and enforces a limit on its size."""

import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from typing import Protocol

PIECE_BYTES = 1 << 18
"""Bytes that are inflated at a time: 256 KiB is little beside any limit, and few calls."""

Room = Callable[[int], Awaitable[None]]
"""Waits until a body may have this many bytes."""


class UnusableBody(Exception):
    """A malformed body; the message completes a sentence whose subject is the body."""


class TooLarge(UnusableBody):
    """The body is larger than allowed."""


class UnknownEncoding(UnusableBody):
    """The Content-Encoding is not supported."""


async def read_body(
    chunks: AsyncIterable[bytes], encoding: str, max_bytes: int, room: Room | None = None
) -> bytearray:
    """Return the body after decompression, at most `max_bytes` long. Raises UnusableBody.

    `room` is awaited before the body grows, with its next size.
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
    """Yield the inflated chunk in pieces of at most `PIECE_BYTES`."""
    while not inflater.eof:  # the inflater would store all data after its end
        try:
            piece = inflater.decompress(chunk, PIECE_BYTES)
        except zlib.error as error:
            message = "is declared as gzip, but is not"
            raise UnusableBody(message) from error
        chunk = inflater.unconsumed_tail
        yield piece
        if not chunk and len(piece) < PIECE_BYTES:
            return
