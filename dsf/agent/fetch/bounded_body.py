"""Reads the body of a request or answer, inflates gzip, and enforces a limit on its size."""

import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator

PIECE_BYTES = 1 << 18
"""Bytes that are inflated at a time: 256 KiB, small against any limit, with few calls."""

MAX_MEMBERS = 1000
"""Members of one gzip body: each costs time even if it is empty."""

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
        for piece in inflater.pieces(chunk) if inflater else (chunk,):
            if len(body) + len(piece) > max_bytes:
                message = f"is larger than {max_bytes} bytes: ask for less"
                raise TooLarge(message)
            if room:
                await room(len(body) + len(piece))
            body += piece
    if inflater and not inflater.complete:
        raise UnusableBody("ends in the middle of its gzip data")
    return body


class _Gzip:
    """Inflates gzip: one member, or several after each other. Source: RFC 1952, 2.2."""

    def __init__(self) -> None:
        self._members = 1
        self._member = _member()

    @property
    def complete(self) -> bool:
        """Whether the data so far end with a member."""
        return self._member.eof

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the inflated chunk in pieces of at most `PIECE_BYTES`."""
        while True:
            if self._member.eof:
                chunk = chunk.lstrip(b"\0")  # padding, as gzip itself allows
                if not chunk:
                    return
                self._next()
            try:
                piece = self._member.decompress(chunk, PIECE_BYTES)
            except zlib.error as error:
                message = "is declared as gzip, but is not"
                if self._members > 1:
                    message = "has other data after its gzip data"
                raise UnusableBody(message) from error
            yield piece
            eof = self._member.eof
            chunk = self._member.unused_data if eof else self._member.unconsumed_tail
            if not chunk and not eof and len(piece) < PIECE_BYTES:
                return

    def _next(self) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise UnusableBody(f"has more than {MAX_MEMBERS} gzip members")
        self._member = _member()


def _member() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def _inflater(encoding: str) -> _Gzip | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return _Gzip()
    raise UnknownEncoding("has a Content-Encoding other than gzip")
