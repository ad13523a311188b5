"""Draws the series that were sent and the scores that came back, for a terminal."""

import json
import math
from collections.abc import Iterable, Sequence

from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.cli.terminal_drawing import line
from dsf.cli.text_table import TextTable

MOST_ROWS = 20
"""Rows drawn; the others are counted."""

Labels = tuple[tuple[str, str], ...]


def plot(series: Sequence[EncodedSeries], results: Sequence[ScoringResult], levels: str) -> str:
    """Return a table: each series as a line of levels with its range, and the scores of its labels.

    Each series has a scale of its own. Results that belong to no series are rows without a line.
    """
    drawn = [(_labels(json.loads(one.labels)), _values(one)) for one in series]
    scores = _scores(results)
    rows = [_row(labels, values, scores.pop(labels, []), levels) for labels, values in drawn]
    rows += [_row(labels, [], found, levels) for labels, found in scores.items()]
    if len(rows) > MOST_ROWS:
        rows = [*rows[:MOST_ROWS], [f"({len(rows) - MOST_ROWS} more)"]]
    columns = ["labels", "series, oldest first", "lowest", "highest", "latest", "score"]
    return str(TextTable(columns, [[*row, *[""] * (len(columns) - len(row))] for row in rows]))


def _row(
    labels: Labels, values: Sequence[float], scores: Iterable[float], levels: str
) -> list[str]:
    finite = [value for value in values if math.isfinite(value)]
    numbers = [min(finite), max(finite), finite[-1]] if finite else []
    return [
        ",".join(f"{name}={value}" for name, value in labels) or "-",
        line(values, levels) or "-",
        *([f"{number:g}" for number in numbers] or ["-"] * 3),
        " ".join(f"{score:g}" for score in scores) or "-",
    ]


def _scores(results: Iterable[ScoringResult]) -> dict[Labels, list[float]]:
    found: dict[Labels, list[float]] = {}
    for result in results:
        found.setdefault(_labels(result.metric), []).append(result.score)
    return found


def _labels(metric: dict[str, str]) -> Labels:
    """Return the labels that name an entry, without `meta`, which scorers add."""
    return tuple((name, metric[name]) for name in PLACEHOLDERS if name != "meta" and name in metric)


def _values(series: EncodedSeries) -> list[float]:
    samples = json.loads(bytes(series.values))
    return [_number(value) for _, value in ([samples] if series.instant else samples)]


def _number(text: str) -> float:
    """Return a sample's number; NaN, which is a space, where it is none."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan
