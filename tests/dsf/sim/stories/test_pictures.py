"""The pictures of the stories show what the runs measured, and their page says the same in words.

Every line is measured in the SVG: its pixels must be the recorded values, on one scale in a panel.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from dsf.sim.stories import airan, inference
from dsf.sim.stories.story import Results, moves
from tests.dsf.sim.stories.test_stories import PAGE, for_each_story, results
from tests.repository import ROOT

SVG = "{http://www.w3.org/2000/svg}"
LINE = re.compile(r"[ML] (\S+) (\S+)")

Line = Sequence[tuple[float, float]]
"""Pixels to the right and down."""


def picture(name: str) -> ET.Element:
    return ET.parse(ROOT / f"docs/images/story-{name}.svg").getroot()  # noqa: S314 - our own file


def lines(name: str) -> Mapping[str, Line]:
    """Return what is drawn with an id."""
    return {
        group.get("id", ""): [(float(x), float(y)) for x, y in LINE.findall(path.get("d", ""))]
        for group in picture(name).iter(f"{SVG}g")
        for path in group.findall(f"{SVG}path")
    }


def level(line: Line, right: float) -> float | None:
    """Return where a line is at a place to the right, unless it is nowhere."""
    return next((y for (x, y), (end, _) in pairwise(line) if x < right < end), None)


def measured(name: str) -> Iterator[tuple[str, dict[str, list[float]], dict[str, list[bool]]]]:
    """Yield panels: an id, the values of lines, and when what has an id with a prefix is there."""
    found = results(name)
    if name == "airan":
        for site in airan.RADIO_SITES:
            yield (
                f"{site}-bound",
                {
                    f"{site}-bound": [airan.bounds(one)[site] for one in found],
                    f"{site}-load": [airan.truth(site, one.time) for one in found],
                    f"{site}-busy": [airan.BUSY_PERCENT for _ in found],
                },
                {f"{site}-{one}-": ran(found, one, site) for one in airan.WORKLOADS},
            )
    else:
        clusters = inference.MORNING
        for app in inference.APPS:
            scores = [one.scores[f"{app};all"] for one in found]
            yield (
                f"{app}-{next(iter(clusters))}",
                {f"{app}-{cluster}": [one[cluster] for one in scores] for cluster in clusters},
                {f"{app}-on-{cluster}-": ran(found, app, cluster) for cluster in clusters},
            )


def ran(found: Results, workload: str, cluster: str) -> list[bool]:
    return [cluster in one.running[workload] for one in found]


@for_each_story
def test_lines_are_the_recorded_values_and_bars_where_workloads_ran(name: str) -> None:
    drawn = lines(name)
    for longest, values, running in measured(name):
        left, right = drawn[longest][0][0], drawn[longest][-1][0]
        count = len(values[longest])
        middles = [left + (at + 0.5) * (right - left) / count for at in range(count)]
        shown = [
            (value, level(drawn[line], middle))
            for line, of_line in values.items()
            for value, middle in zip(of_line, middles, strict=True)
        ]
        (low, bottom), (high, top) = min(shown), max(shown)
        assert bottom is not None
        assert top is not None
        assert top < bottom
        expected = [bottom + (value - low) * (top - bottom) / (high - low) for value, _ in shown]
        assert [pixel for _, pixel in shown] == pytest.approx(expected, abs=0.01)
        for prefix, there in running.items():
            bars = [line for gid, line in drawn.items() if gid.startswith(prefix)]
            assert there == [
                any(level(bar, middle) is not None for bar in bars) for middle in middles
            ]


@for_each_story
def test_picture_and_page_tell_every_move(name: str) -> None:
    texts = " ".join("".join(text.itertext()).strip() for text in picture(name).iter(f"{SVG}text"))
    (said,) = re.findall(rf"!\[([^\]]*)\]\(\.\./images/story-{name}\.svg\)", PAGE.read_text())
    words, found = " ".join(said.split()), results(name)
    told = [(one.time, *move) for at, one in enumerate(found, 1) for move in moves(found[:at])]
    assert told
    for time, workload, source, target in told:
        move = f"{workload}: {source} → {target}"
        assert re.search(rf"{time} (?:(?!\d\d:\d\d).)*{move}", texts)
        assert re.search(rf"At {time} [^.]*{workload} moves from {source} to {target}", words)
    assert words.count(" moves from ") == texts.count("→") == len(told)


@for_each_story
def test_a_picture_follows_the_readers_screen_and_asks_nobody(name: str) -> None:
    text = (ROOT / f"docs/images/story-{name}.svg").read_text()
    (dark,) = re.findall(r"<style>@media \(prefers-color-scheme: dark\)\{(.*)\}</style>", text)
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text.replace(dark, "")))
    assert used == set(re.findall(r"\"fill: (#[0-9a-f]{6})\"", dark))
    assert not re.search(r"(href|src)=\"(?!#)|url\((?!#)|<script", text)
    assert len(text) < 50_000
