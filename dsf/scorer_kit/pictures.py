"""Draws series with the scores that came back, and forecasts with what came true: text or SVG."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.cli.output import TextTable
from dsf.cli.terminal_drawing import line
from dsf.scorer_kit.backtest.history import Judged

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


MOST_SERIES = 6
"""Series that are drawn, those with the largest mean truth."""

_WIDTH, _HEIGHT, _MARGIN = 900, 180, 40
"""Pixels of one series in the picture."""

_TRUTH, _SCORE, _BAND = "#333333", "#0b6bcb", "#cfe3f7"
_LEGEND = (
    f'<tspan fill="{_TRUTH}">truth</tspan>, <tspan fill="{_SCORE}">score</tspan>, interval shaded'
)
_SVG = "http://www.w3.org/2000/svg"


def terminal_plot(outcomes: Sequence[Judged], levels: str) -> str:
    """Return a table: each series as a line of what came true and a line of what was said.

    Both lines have their own scale.
    """
    rows = []
    for name, found in _series(outcomes):
        truth, said = [one.truth for one in found], [one.said.score for one in found]
        for what, values in (("truth", truth), ("score", said)):
            range_of = [f"{min(values):.4g}", f"{max(values):.4g}"]
            rows.append([name if what == "truth" else "", what, line(values, levels), *range_of])
    return str(TextTable(["series", "", "oldest first", "lowest", "highest"], rows))


def svg(outcomes: Sequence[Judged], title: str) -> str:
    """Return an SVG picture: for each series the truth, the score and the widest interval."""
    drawn = _series(outcomes)
    height = _HEIGHT * len(drawn) + _MARGIN
    parts = [
        f'<svg xmlns="{_SVG}" viewBox="0 0 {_WIDTH} {height}" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_MARGIN}" y="20">{escape(title)}: {_LEGEND}</text>',
    ]
    for index, (name, found) in enumerate(drawn):
        parts += _panel(name, found, _MARGIN + index * _HEIGHT)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(name: str, found: Sequence[Judged], top: int) -> list[str]:
    bounds = [one.said.quantiles or ((0.5, one.said.score),) for one in found]
    lows, highs = [each[0][1] for each in bounds], [each[-1][1] for each in bounds]
    truth, said = [one.truth for one in found], [one.said.score for one in found]
    everything = [value for value in (*lows, *highs, *truth, *said) if math.isfinite(value)]
    low, high = min(everything), max(everything)
    ends = [one.end for one in found]

    def points(values: Sequence[float], steps: Sequence[int]) -> str:
        return " ".join(
            f"{_across(step, ends):.1f},{_up(value, low, high, top):.1f}"
            for step, value in zip(steps, values, strict=True)
            if math.isfinite(value)
        )

    band = f"{points(lows, ends)} {points(highs[::-1], ends[::-1])}"
    label = f"{name}   {low:.4g} to {high:.4g}"
    return [
        f'<text x="{_MARGIN}" y="{top + 12}" fill="#666666">{escape(label)}</text>',
        f'<polygon points="{band}" fill="{_BAND}"/>',
        f'<polyline points="{points(truth, ends)}" fill="none" stroke="{_TRUTH}"/>',
        f'<polyline points="{points(said, ends)}" fill="none" stroke="{_SCORE}"/>',
    ]


def _across(step: int, ends: Sequence[int]) -> float:
    span = max(ends[-1] - ends[0], 1)
    return _MARGIN + (step - ends[0]) / span * (_WIDTH - 2 * _MARGIN)


def _up(value: float, low: float, high: float, top: int) -> float:
    room = _HEIGHT - 2 * 18
    return top + 18 + room * (1 - (value - low) / (high - low if high > low else 1))


def _series(outcomes: Sequence[Judged]) -> list[tuple[str, list[Judged]]]:
    """Return the series with the largest truths, each with its name and its steps in order."""
    found = defaultdict[str, list[Judged]](list)
    for one in outcomes:
        name = ",".join(f"{label}={value}" for label, value in sorted(one.series.labels)) or "-"
        found[name].append(one)
    largest = sorted(found.items(), key=lambda item: -sum(map(_truth, item[1])) / len(item[1]))
    return largest[:MOST_SERIES]


def _truth(one: Judged) -> float:
    return one.truth
