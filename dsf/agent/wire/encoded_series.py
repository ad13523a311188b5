"""Time series as they travel from a source to a scoring API: JSON that was checked once.

Numbers are never decoded and encoded again: the bytes that a source sent are what a scorer gets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import Raw

PIECE_BYTES = 1 << 18
"""About how much is handed to the socket at once: large writes are copied by the transport."""

_HEAD, _TAIL = b'{"data":[', b"]}"


@dataclass(frozen=True, slots=True)
class EncodedSeries:
    """One time series in Prometheus matrix form.

    `metric` is the JSON object of its labels, `values` the JSON list of its samples, each
    `[unix_seconds, "number"]`.
    """

    metric: bytes
    values: bytes | Raw


@dataclass(frozen=True, slots=True)
class ScoringRequestBody:
    """The body of a scoring call, `{"data": [series, …]}`, in pieces; its length is in bytes."""

    series: Sequence[EncodedSeries]

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts())

    def __iter__(self) -> Iterator[bytes]:
        piece, size = list[bytes | memoryview](), 0
        for part in self._parts():
            piece.append(part)
            size += len(part)
            if size >= PIECE_BYTES:
                yield b"".join(piece)
                piece, size = [], 0
        yield b"".join(piece)

    def _parts(self) -> Iterator[bytes | memoryview]:
        yield _HEAD
        for index, series in enumerate(self.series):
            yield b',{"metric":' if index else b'{"metric":'
            yield series.metric
            yield b',"values":'
            yield memoryview(series.values)
            yield b"}"
        yield _TAIL
