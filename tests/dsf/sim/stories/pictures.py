"""Draws the pictures of the stories from what runs of them recorded: `make story-pictures`.

What shows something measured has an id, by which `test_pictures.py` finds it in the SVG.
"""

import io
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import TypeAdapter

from dsf.sim.stories import airan, inference
from dsf.sim.stories.story import MomentResult, Results, moves
from tests.repository import ROOT

TEXT, QUIET, GRID, GROUND = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
COLORS = ("#0550ae", "#953800", "#116329")
DASHES = ("solid", "dashed", "dashdot")
"""Of the managed clusters, in their order."""
DARK = {
    TEXT: "#f0f6fc",
    QUIET: "#9198a1",
    GRID: "#3d444d",
    GROUND: "#0d1117",
    **dict(zip(COLORS, ("#79c0ff", "#ffa657", "#7ee787"), strict=True)),
}
"""What takes the place of each color on a dark screen."""
STYLE = {
    "font.size": 11,
    "svg.fonttype": "none",
    "svg.hashsalt": "stories",
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": GRID,
    "axes.facecolor": GROUND,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": GROUND,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
}
BAR = -20
"""Where a panel has the bar of a workload: below a load of 0%."""


def main() -> None:
    """Draw both pictures."""
    for name, draw in (("inference", draw_inference), ("airan", draw_airan)):
        recorded = Path(__file__).parent / "results" / f"{name}.json"
        results = TypeAdapter(list[MomentResult]).validate_json(recorded.read_bytes())
        with mpl.rc_context(STYLE):
            svg = _svg(draw(results))
        (ROOT / f"docs/images/story-{name}.svg").write_text(svg)


def draw_inference(results: Results) -> Figure:
    """Return a figure with a panel for each app: its score on each cluster, and where it ran."""
    figure, panels = _panels(len(inference.APPS), top=0.74)
    for app, panel in zip(inference.APPS, panels, strict=True):
        scores = [result.scores[f"{app};all"] for result in results]
        for (cluster, one), color, dashes in zip(
            inference.MORNING.items(), COLORS, DASHES, strict=True
        ):
            values = [by_cluster[cluster] for by_cluster in scores]
            line = {"baseline": None, "color": color}
            name, gid = f"{cluster} ({one.model})", f"{app}-{cluster}"
            panel.stairs(values, **line, linewidth=1.5, linestyle=dashes, gid=gid, label=name)
            for first, end in _stays(results, app, cluster):
                there, edges = values[first:end], range(first, end + 1)
                gid = f"{app}-on-{cluster}-{results[first].time}"
                panel.stairs(there, edges, **line, linewidth=9, alpha=0.35, gid=gid)
                for at, value in zip(edges, there, strict=False):
                    place = {"xytext": (4, 6), "textcoords": "offset points"}
                    panel.annotate(str(value), (at, value), **place, color=color)
        panel.set_ylabel(f"{app}\nscore")
        panel.margins(x=0, y=0.35)
        panel.set_xticks(range(len(results)), [result.time for result in results])
    days = [inference.DAY[result.time] for result in results]
    for at, result in enumerate(results):
        causes = inference.changes(days[at - 1], days[at]) if at else ()
        told = _moves(results[: at + 1]) or ["nothing moves" if at else "the first plan"]
        _mark(panels, at, result.time, [*(one.partition(";")[0] for one in causes), *told], 24)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower right", ncols=3, frameon=False)
    _caption(figure, "line: score of the app on a cluster; broad: the app ran there")
    return figure


def draw_airan(results: Results) -> Figure:
    """Return a figure with a panel for each site: its load, the bound of it, and the AI on it."""
    hours = [int(result.time[:2]) for result in results]
    edges = [*hours, hours[-1] + 1]
    figure, panels = _panels(len(airan.RADIO_SITES), top=0.83)
    for site, panel, color in zip(airan.RADIO_SITES, panels, COLORS, strict=True):
        for what, width, values in (
            ("bound", 1, [airan.bounds(result)[site] for result in results]),
            ("load", 2.5, [airan.truth(site, result.time) for result in results]),
        ):
            gid = f"{site}-{what}"
            panel.stairs(values, edges, baseline=None, color=color, linewidth=width, gid=gid)
        busy = [airan.BUSY_PERCENT] * 2
        panel.plot((edges[0], edges[-1]), busy, color=QUIET, dashes=(4, 3), gid=f"{site}-busy")
        for workload in airan.WORKLOADS:
            for first, end in _stays(results, workload, site):
                gid = f"{site}-{workload}-{results[first].time}"
                ends = (edges[first], edges[end])
                panel.plot(ends, [BAR] * 2, color=color, linewidth=14, gid=gid)
                panel.lines[-1].set_solid_capstyle("butt")
                name = {"color": GROUND, "va": "center_baseline", "fontweight": "bold"}
                panel.text(ends[0] + 0.15, BAR, workload, **name)
        panel.set_ylabel(f"{site}\nRAN load, %")
        panel.set_ylim(BAR - 15, 100)
        panel.set_yticks((0, airan.BUSY_PERCENT, 100))
        panel.set_xticks(edges[::2], [f"{hour:02d}:00" for hour in edges[::2]])
        panel.margins(x=0)
    for at, result in enumerate(results):
        if told := _moves(results[: at + 1]):
            _mark(panels, hours[at], result.time, told, 10)
    _caption(
        figure,
        "thin line: the bound forecast for the hour; broad line: the load that came;"
        f" dashed: {airan.BUSY_PERCENT:g}%, above it AI is in the way; bar: AI on the site's GPU",
    )
    return figure


def _panels(count: int, *, top: float) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(10, 6.6))
    panels = figure.subplots(count, 1, sharex=True)
    figure.subplots_adjust(left=0.1, right=0.98, bottom=0.12, top=top, hspace=0.15)
    return figure, panels


def _stays(results: Results, workload: str, cluster: str) -> Iterator[tuple[int, int]]:
    """Yield the first moment and the one after the last of each time that a workload ran there."""
    ran = [cluster in result.running[workload] for result in results]
    for there, moments in groupby(range(len(ran)), key=ran.__getitem__):
        if there:
            found = list(moments)
            yield found[0], found[-1] + 1


def _moves(results: Results) -> list[str]:
    return [f"{workload}: {source} → {target}" for workload, source, target in moves(results)]


def _mark(panels: Sequence[Axes], at: int, time: str, told: Sequence[str], width: int) -> None:
    """Draw a line through all panels at a moment, and what happened then, in `width` characters."""
    for panel in panels:
        panel.axvline(at, color=QUIET, dashes=(1, 3), linewidth=1)
    lines = [time, *(line for one in told for line in textwrap.wrap(one, width))]
    place: dict[str, Any] = {"xy": (at, 1.04), "xycoords": ("data", "axes fraction")}
    panels[0].annotate("\n".join(lines), **place, va="bottom")


def _caption(figure: Figure, text: str) -> None:
    figure.text(0.01, 0.02, text, color=QUIET, fontsize=10)


def _svg(figure: Figure) -> str:
    """Return a figure as SVG whose colors follow the reader's screen."""
    file = io.StringIO()
    figure.savefig(
        file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
    )
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark){{{escape(rules)}}}</style>"
    head, start, body = file.getvalue().partition(" <defs>\n")
    lines = f"{head}{style}\n{start}{body}".splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


if __name__ == "__main__":
    main()
