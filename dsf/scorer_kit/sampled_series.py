"""Series of samples at any time: which are the same by their labels, and values at equal steps."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dsf.api.untrusted_text import listed

Labels = frozenset[tuple[str, str]]
"""The labels of a series, without `meta`, which scorers add."""

Samples = Sequence[tuple[Mapping[str, str], Sequence[tuple[float, float]]]]
"""The labels of each series, and its samples: unix seconds and a number."""

MOST_VALUES = 5_000_000
"""Values of all series at equal steps: what a few hundred megabytes hold."""


def labels_of(metric: Mapping[str, str]) -> Labels:
    """Return labels without `meta`, which says something about a score."""
    return frozenset((name, value) for name, value in metric.items() if name != "meta")


def why_not_apart(metrics: Iterable[Mapping[str, str]]) -> str:
    """Return which series have the same labels; empty if no two have."""
    counts = Counter(map(labels_of, metrics))
    twice = next((labels for labels, count in counts.items() if count > 1), None)
    if twice is None:
        return ""
    named = listed(f"{name}={value}" for name, value in sorted(twice))
    return (
        f"{counts[twice]} series have the same labels ({named or 'none'}), so a score could be of"
        " each of them: give them different labels, or add them up in the query"
    )


def span(series: Samples, step: int) -> tuple[float, int] | str:
    """Return the first time of any sample and the number of steps to the last, or why not.

    Numbers that are not finite are no samples.
    """
    times = [time for _, samples in series for time, _ in _finite(samples)]
    if not times:
        return "there is no finite sample"
    start = min(times)
    length = round((max(times) - start) / step) + 1
    if length * len(series) > MOST_VALUES:
        return (
            f"there are {len(series)} series of {length} steps, more than {MOST_VALUES} values:"
            " choose a longer step or fewer series"
        )
    return start, length


def at_steps(
    samples: Iterable[tuple[float, float]], step: int, start: float, length: int
) -> list[float | None]:
    """Return the values of a series, each at the nearest of the steps from `start` on."""
    values: list[float | None] = [None] * length
    for time, value in _finite(samples):
        index = round((time - start) / step)
        if 0 <= index < length:
            values[index] = value
    return values


def _finite(samples: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    return (pair for pair in samples if all(map(math.isfinite, pair)))
