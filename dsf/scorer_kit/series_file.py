"""Series of samples: read from a file, told apart by their labels, and at equal steps."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.prometheus_answer import FetchedSeries, parse_query_answer
from dsf.api.untrusted_text import listed

MOST_BYTES = 32 << 20
"""The largest answer that an agent reads from a source."""

_TABLES = frozenset({".csv", ".parquet"})
"""How the names of tables end."""


def is_table(path: Path) -> bool:
    """Return whether the name of a file is that of a table."""
    return path.suffix.lower() in _TABLES


class UnusableFile(Exception):
    """A file is no document with series; the message says why."""


def prometheus_answer(path: Path) -> dict[str, Any]:
    """Return the content of a file as an answer of Prometheus. Raises UnusableFile."""
    try:
        document = json.loads(_content(path))
    except (ValueError, RecursionError) as error:
        raise UnusableFile(
            f"{path} is not JSON: {error}; write a scoring request or an answer of Prometheus'"
            " query_range (dsf scorer try and backtest take .csv and .parquet tables too)"
        ) from error
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        data = {"resultType": "matrix", "result": document["data"]}
        return {"status": "success", "data": data}
    if isinstance(document, dict) and document.get("status") == "success":
        return document
    raise UnusableFile(
        f'{path} has no series: write {{"data": [{{"metric": {{}}, "values": []}}]}}, or save an'
        " answer of Prometheus' query_range"
    )


def read_series(path: Path) -> FetchedSeries:
    """Return the series in a file. Raises UnusableFile."""
    body = json.dumps(prometheus_answer(path)).encode()
    found = parse_query_answer("http://file", HttpAnswer(200, "application/json", body))
    if isinstance(found, Failure):
        raise UnusableFile(f"{path}: {found.message.partition('but not ')[2] or found.message}")
    return found


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnusableFile(f"{path} can't be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise UnusableFile(f"{path} is larger than {MOST_BYTES >> 20} MiB")
    return content


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
