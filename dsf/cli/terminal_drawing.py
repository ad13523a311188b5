"""Draws values as characters: lines over time and bars on a scale, and both for scores."""

import math
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from dsf.api.crd.score_meaning import PublishedMeaning, in_words
from dsf.api.names import score_object_name
from dsf.api.scoring.placement_scores import ByDimension
from dsf.cli.output import TextTable

if TYPE_CHECKING:
    from dsf.cli.prometheus import PastValues


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


MOST_BARS = 40
"""Bars of one score: more do not fit on a screen; the others are counted."""

HISTORY_QUERY = "avg by (ds_cluster, ds_score_name) (dynamic_score)"
"""What agents export: the mean over the entries of a score on each managed cluster."""


def bars(
    name: str,
    entries: ByDimension,
    expired: Container[tuple[str, str]],
    levels: str,
    *,
    meaning: PublishedMeaning | None = None,
) -> TextTable:
    """Return a table with a bar for each entry on each cluster, on the scale of all scores.

    The scale is 0 to 100, or -100 to 100 where a score is negative.
    """
    values = [
        (entry, cluster, value)
        for entry, by_cluster in entries.items()
        for cluster, value in by_cluster.items()
    ]
    low = -100 if any(value < 0 for *_, value in values) else 0
    rows = [
        (entry, cluster, str(value), bar(value, low, 100, levels))
        if (name, cluster) not in expired
        else (entry, cluster, f"{value} (expired)", "")
        for entry, cluster, value in values[:MOST_BARS]
    ]
    if left := len(values) - len(rows):
        rows.append((f"({left} more)", "", "", ""))
    words = in_words(meaning) if meaning else ""
    title = f"{name} ({words})" if words else name
    return TextTable(("dimension", "cluster", "value", f"{low} to 100"), rows, title)


def history(found: "Iterable[PastValues]", names: Iterable[str], levels: str) -> TextTable:
    """Return a table with a line for each of these scores on each cluster, each on its own scale.

    A score is named by agents as its scorer names it, which may differ from its object's name.
    """
    shown = frozenset(names)
    series = {_key(one): one.values for one in found}
    rows = [
        (*key, line(values, levels), *_numbers(values))
        for key, values in sorted(series.items())
        if key[0] in shown
    ]
    columns = ("score", "cluster", "oldest first", "lowest", "highest", "latest")
    return TextTable(columns, rows[:MOST_BARS], "History")


def _key(one: "PastValues") -> tuple[str, str]:
    name = score_object_name(one.labels.get("ds_score_name", ""))
    return name, one.labels.get("ds_cluster", "")


def _numbers(values: Sequence[float]) -> tuple[str, str, str]:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ("-", "-", "-")
    return (f"{min(finite):g}", f"{max(finite):g}", f"{finite[-1]:g}")
