"""Time series between a source and a scoring API: JSON that is already validated.

Samples are not encoded again: a scorer gets the bytes that the source sent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import Raw

PIECE_BYTES = 1 << 18
"""Bytes written to the socket at a time: the transport copies what it can't send at once."""

_HEAD, _CONTEXT, _TAIL = b'{"data":[', b'],"context":', b"}"


@dataclass(frozen=True, slots=True)
class EncodedSeries:
    """One time series in Prometheus matrix form.

    `metric` is the JSON object of the labels, `values` the JSON list of samples, each
    `[unix_seconds, "number"]`; if `instant`, `values` is one sample alone.
    """

    metric: bytes | Raw
    values: bytes | Raw
    instant: bool = False


@dataclass(frozen=True, slots=True)
class ScoringRequestBody:
    """The body of a scoring call, `{"data": [series, …]}`, in pieces; `len` is its bytes.

    `context` is the JSON of its context, empty for none.
    """

    series: Sequence[EncodedSeries]
    context: bytes = b""

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts())

    def __iter__(self) -> Iterator[bytes]:
        piece, size = list[bytes | memoryview](), 0
        for part in self._parts():
            for start in range(0, len(part), PIECE_BYTES):
                piece.append(part[start : start + PIECE_BYTES])
                size += len(piece[-1])
                if size >= PIECE_BYTES:
                    yield b"".join(piece)
                    piece, size = [], 0
        yield b"".join(piece)

    def _parts(self) -> Iterator[bytes | memoryview]:
        yield _HEAD
        for index, series in enumerate(self.series):
            yield b',{"metric":' if index else b'{"metric":'
            yield memoryview(series.metric)
            yield b',"values":[' if series.instant else b',"values":'
            yield memoryview(series.values)
            yield b"]}" if series.instant else b"}"
        if self.context:
            yield _CONTEXT
            yield memoryview(self.context)
            yield _TAIL
        else:
            yield b"]" + _TAIL
