"""Lines and bars of characters: values over time, and one value on a scale."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TextIO

WIDTH = 40
"""Characters of one line or bar."""

LEVELS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = "_.-:=+*#"
"""Heights from the lowest to the highest, for terminals with and without Unicode."""


def levels_for(stream: TextIO) -> str:
    """Return the heights that a stream can show."""
    return LEVELS if "utf" in (stream.encoding or "").lower() else ASCII_LEVELS


def line(values: Sequence[float], levels: str, width: int = WIDTH) -> str:
    """Return values as at most `width` levels between their lowest and highest finite one.

    Each character is the mean of its share of the values; a share without a finite one is a space.
    """
    count = min(width, len(values))
    edges = [len(values) * index // count for index in range(count + 1)] if count else []
    means = [_mean(values[start:end]) for start, end in pairwise(edges)]
    finite = [mean for mean in means if mean is not None]
    low, span = min(finite, default=0.0), max(finite, default=0.0) - min(finite, default=0.0)
    return "".join(" " if mean is None else _level(mean - low, span, levels) for mean in means)


def bar(value: float, low: float, high: float, levels: str, width: int = WIDTH) -> str:
    """Return a bar from `low` to a value on a scale to `high`; at least one character wide."""
    share = (min(max(value, low), high) - low) / (high - low)
    return levels[-1] * max(round(share * width), 1)


def _level(above: float, span: float, levels: str) -> str:
    return levels[min(int(above / span * len(levels)), len(levels) - 1)] if span else levels[0]


def _mean(values: Iterable[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else None
