"""Draws runs as an SVG picture: what ran was worth over time, each move, and lost clusters."""

from collections.abc import Iterable, Iterator, Sequence
from xml.sax.saxutils import escape

from dsf.api.untrusted_text import cleaned, plain
from optimizer.twin.evaluation.report import HINDSIGHT, NAMES, Run
from optimizer.twin.scenario import Scenario

MOST_RUNS = 6
"""Runs that are drawn: more lines than that nobody tells apart."""

_WIDTH, _LEFT, _RIGHT = 960, 60, 20
_TOP, _HEIGHT, _ROW = 70, 260, 30
"""Pixels above the values, of the values, and of the moves of a run."""
_TEXT_CHARACTERS = 110
_LINES = ("#0b6bcb", "#c4501b", "#1a7f37", "#8250df", "#9a6700", "#bf3989")
_SVG = "http://www.w3.org/2000/svg"
_STYLE = """
svg { font: 13px system-ui, sans-serif; background: #fff; }
text { fill: #1f2328; } .quiet { fill: #59636e; } .axis { stroke: #d1d9e0; }
.best { stroke: #59636e; stroke-dasharray: 6 4; fill: none; } .lost { fill: #ffc9c4; opacity: 0.5; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; } text { fill: #f0f6fc; } .quiet { fill: #9198a1; }
.axis { stroke: #3d444d; } .best { stroke: #9198a1; } .lost { fill: #7d2520; }
}
"""

_Points = Sequence[tuple[float, float]]


def svg(runs: Sequence[Run], scenario: Scenario) -> str:
    """Return an SVG picture of the first runs: values as lines, moves as ticks below."""
    drawn = runs[:MOST_RUNS]
    lines = {_name(run): [(one.at, one.value) for one in run.played.samples] for run in drawn}
    best = drawn[0].hindsight
    moments = [(one.begins, one.value) for one in best.moments] if best else []
    values = [value for points in (*lines.values(), moments) for _, value in points]
    low, high = min(values, default=0.0), max(values, default=1.0)
    span = high - low or 1.0
    end = scenario.duration

    def across(time: float) -> float:
        return _LEFT + time / end * (_WIDTH - _LEFT - _RIGHT)

    def up(value: float) -> float:
        return _TOP + _HEIGHT * (1 - (value - low) / span)

    def path(points: _Points, last: float) -> str:
        """Return a line that keeps each value until the next one."""
        steps = [f"M{across(points[0][0]):.1f},{up(points[0][1]):.1f}"]
        steps += [f"H{across(time):.1f}V{up(value):.1f}" for time, value in points[1:]]
        return "".join([*steps, f"H{across(last):.1f}"])

    left_out = f"; {len(runs) - MOST_RUNS} more runs are not drawn" if runs[MOST_RUNS:] else ""
    title = f"{scenario.description or 'Simulation'}: value over {end / 3600:g} h{left_out}"
    bottom = _TOP + _HEIGHT
    height = bottom + 40 + _ROW * len(drawn)
    parts = [
        f'<svg xmlns="{_SVG}" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<text x="{_LEFT}" y="24" font-weight="600">{_text(title)}</text>',
        *_legend([*lines, *([HINDSIGHT] if moments else [])]),
        *(
            f'<rect class="lost" x="{across(one.at):.1f}" y="{_TOP}" height="{_HEIGHT}"'
            f' width="{across(min(one.until or end, end)) - across(one.at):.1f}">'
            f"<title>{_text(' '.join((one.type, *one.clusters)))}</title></rect>"
            for one in scenario.failures
            if one.at < end
        ),
        *_axes(low, high, bottom),
        *((f'<path class="best" d="{path(moments, end)}"/>',) if moments else ()),
        *(
            f'<path d="{path(points, end)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            for points, colour in zip(lines.values(), _LINES, strict=False)
            if points
        ),
    ]
    for row, (run, colour) in enumerate(zip(drawn, _LINES, strict=False)):
        top = bottom + 40 + _ROW * row
        moves = run.played.moves
        parts.append(
            f'<text class="quiet" x="{_LEFT}" y="{top}">{_text(_name(run))}:'
            f" {len(moves)} moves</text>"
        )
        parts += [
            f'<path d="M{across(one.at):.1f},{top + 4}v10" stroke="{colour}"><title>'
            f"{_text(f'{one.workload}: {one.source} to {one.target}')}</title></path>"
            for one in moves
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _name(run: Run) -> str:
    setting = ", ".join(f"{name} {value}" for name, value in run.setting.items())
    name = NAMES.get(run.played.controller, run.played.controller)
    return f"{name}, {setting}" if setting else name


def _legend(names: Iterable[str]) -> Iterator[str]:
    left = float(_LEFT)
    for name, colour in zip(names, (*_LINES, ""), strict=False):
        style = ' class="best"' if name == HINDSIGHT else f' stroke="{colour}" stroke-width="2"'
        yield f'<path d="M{left:.0f},46h20"{style}/>'
        yield f'<text x="{left + 26:.0f}" y="50">{_text(name)}</text>'
        left += 50 + 7 * len(name)


def _axes(low: float, high: float, bottom: int) -> Iterator[str]:
    for value, at in ((high, _TOP), ((low + high) / 2, (_TOP + bottom) / 2), (low, bottom)):
        yield f'<path class="axis" d="M{_LEFT},{at:.0f}H{_WIDTH - _RIGHT}"/>'
        yield (
            f'<text class="quiet" text-anchor="end" x="{_LEFT - 6}" y="{at + 4:.0f}">'
            f"{value:.4g}</text>"
        )


def _text(text: str) -> str:
    return escape(cleaned(plain(text), _TEXT_CHARACTERS))
