"""Bodies after decompression."""

import gzip
from collections.abc import AsyncIterator

import pytest

from dsf.agent.fetch.bounded_body import MAX_MEMBERS, PIECE_BYTES, UnusableBody, read_body

PARTS = (b"a" * 3 * PIECE_BYTES, b"", b"b" * 10)
MEMBERS = b"".join(map(gzip.compress, PARTS))


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(data: bytes, size: int = 1 << 16) -> bytes:
    return bytes(await read_body(chunks(data, size), "gzip", 1 << 20))


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
async def test_all_members_of_gzip_are_read(size: int) -> None:
    assert await read(MEMBERS, size) == b"".join(PARTS)


async def test_padding_after_gzip_is_ignored() -> None:
    assert await read(MEMBERS + b"\0" * 512, 100) == b"".join(PARTS)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (MEMBERS + b"<html>", "other data after its gzip data"),
        (MEMBERS[:-3], "ends in the middle"),
        (gzip.compress(b"") * (MAX_MEMBERS + 1), "members"),
    ],
)
async def test_what_follows_gzip_is_gzip(data: bytes, why: str) -> None:
    with pytest.raises(UnusableBody, match=why):
        await read(data)
