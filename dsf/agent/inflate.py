"""Reading a body from a stranger: inflated where it is gzip, and never more than is allowed."""

import zlib
from collections.abc import AsyncIterable
from typing import Protocol


class UnusableBody(Exception):
    """A body that is broken; the message goes on from its owner's name."""


class TooLarge(UnusableBody):
    """More than is allowed."""


class UnknownEncoding(UnusableBody):
    """Packed in a way that is not understood."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str, max_bytes: int) -> bytearray:
    """Return the body after decompression, at most `max_bytes`. Raises UnusableBody."""
    inflater = _inflater(encoding)
    body = bytearray()
    async for chunk in chunks:
        body += _inflated(inflater, chunk, max_bytes - len(body)) if inflater else chunk
        if len(body) > max_bytes:
            message = f"is larger than {max_bytes} bytes: ask for less"
            raise TooLarge(message)
    if inflater and not inflater.eof:
        raise UnusableBody("ends in the middle of its gzip data")
    return body


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _inflater(encoding: str) -> _Inflater | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    raise UnknownEncoding("has a Content-Encoding other than gzip")


def _inflated(inflater: _Inflater, chunk: bytes, room: int) -> bytes:
    if inflater.eof:  # the inflater would keep what follows its data, however much that is
        return b""
    try:
        return inflater.decompress(chunk, room + 1)
    except zlib.error as error:
        message = "is said to be gzip, but is not"
        raise UnusableBody(message) from error
