"""The samples of one series that an agent keeps, and the text of numbers in them."""

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field

import msgspec

Labels = tuple[tuple[str, str], ...]
"""Label names and values, ordered by name; the metric's name is the label `__name__`."""


@dataclass(frozen=True, slots=True)
class MemoryBounds:
    """Limits of all samples that are kept; a sample takes 16 bytes, a series about 1 KiB.

    Sending adds 40 bytes for each sample of a scorer: see `benchmarks/agent/otlp.py`.
    """

    series: int = 10_000
    samples: int = 500_000


@dataclass(slots=True)
class SeriesBuffer:
    """The samples of one series, oldest first; `total` is the sum of its deltas."""

    times: "array[float]" = field(default_factory=lambda: array("d"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    total: float = 0.0

    def add(self, seconds: float, value: float, step: float, *, delta: bool = False) -> int | None:
        """Add a sample; return how many that added, None if it is older than the last.

        The last of several samples in a step is kept. A `delta` is added to those before it.
        """
        if self.times and seconds <= self.times[-1]:
            return None
        self.total += value if delta else 0.0
        kept = self.total if delta else value
        if self.times and self.times[-1] // step == seconds // step:
            self.times[-1], self.values[-1] = seconds, kept
            return 0
        self.times.append(seconds)
        self.values.append(kept)
        return 1

    def drop_before(self, seconds: float) -> int:
        """Drop older samples and return how many were dropped."""
        old = bisect_left(self.times, seconds)
        del self.times[:old], self.values[:old]
        return old

    def samples(self, since: int) -> bytes:
        """Return the samples from an index on as JSON in matrix form."""
        pairs = zip(self.times[since:], self.values[since:], strict=True)
        return msgspec.json.encode([sample(time, value) for time, value in pairs])


def sample(seconds: float, value: float) -> tuple[float, str]:
    """Return a sample as Prometheus writes it."""
    return int(seconds) if seconds.is_integer() else seconds, number_text(value)


def number_text(number: float) -> str:
    """Return a number in Prometheus' text form."""
    if number != number:  # noqa: PLR0124 - only NaN differs from itself
        return "NaN"
    if number in {float("inf"), float("-inf")}:
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)  # noqa: PLR2004
