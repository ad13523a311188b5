"""Draws a plan as an SVG picture: what runs where before it, and after it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from dsf.api.plural import counted
from dsf.api.untrusted_text import cleaned, escaped, plain
from optimizer.domain.arrays import members_by_key
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import verdict
from optimizer.wire.result import MoveAction, WorkloadMove, WorkloadPlace

MOST_CLUSTERS = 60
"""Managed clusters that are drawn, those that change first: more make no picture."""

_WIDTH, _COLUMN, _MARGIN = 960, 450, 20
"""Pixels of the picture, of a column and around it."""
_TOP, _HEAD, _LINE, _GAP = 124, 30, 24, 12
"""Pixels above the first cluster, of a cluster's name, of a workload, and between clusters."""
_NAME_CHARACTERS = 44
"""Characters of a name that fit into a column; the tooltip has all of them."""
_SVG = "http://www.w3.org/2000/svg"

_STYLE = """
svg { font: 14px system-ui, sans-serif; background: #fff; }
text { fill: #1f2328; } .head { font-weight: 600; } .quiet { fill: #59636e; }
.cluster { fill: #f6f8fa; stroke: #d1d9e0; }
.stays { fill: #e6eaef; } .starts { fill: #b6e3c0; } .moves { fill: #b6d7ff; }
.shrinks { fill: #ffe2a8; } .stops { fill: #ffc9c4; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; } text { fill: #f0f6fc; } .quiet { fill: #9198a1; }
.cluster { fill: #151b23; stroke: #3d444d; }
.stays { fill: #2a313c; } .starts { fill: #1c5a2c; } .moves { fill: #174c85; }
.shrinks { fill: #6b4a05; } .stops { fill: #7d2520; }
}
"""
_LEGEND: Sequence[tuple[MoveAction, str]] = (
    ("starts", "starts"),
    ("moves", "moves"),
    ("shrinks", "loses places"),
    ("stops", "stops"),
    ("stays", "stays"),
)


class _DrawnWorkload(NamedTuple):
    """A workload on a device of a cluster, and what becomes of it."""

    name: str
    device: str
    action: MoveAction


class _DrawnCluster(NamedTuple):
    name: str
    before: Sequence[_DrawnWorkload]
    after: Sequence[_DrawnWorkload]

    @property
    def changes(self) -> bool:
        """Whether anything else runs there after the plan."""
        return sorted(self.before) != sorted(self.after)

    @property
    def height(self) -> int:
        """Pixels of its boxes."""
        return _HEAD + _LINE * max(len(self.before), len(self.after), 1) + _GAP


def svg(plan: Plan) -> str:
    """Return an SVG picture of a plan: each cluster with its workloads before and after."""
    clusters = _clusters(plan.moves)
    drawn = clusters[:MOST_CLUSTERS]
    notes = [*_unplaced(plan), *_left_out(len(clusters) - len(drawn))]
    height = _TOP + sum(item.height + _GAP for item in drawn) + _LINE * len(notes) + _MARGIN
    title = f"Plan {plan.digest[:12]} for namespace {plan.request.namespace}"
    parts = [
        f'<svg xmlns="{_SVG}" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<desc>{_text(verdict(plan))}</desc>",
        f"<style>{_STYLE}</style>",
        _label(_MARGIN, 28, title, "head"),
        _label(_MARGIN, 50, verdict(plan), "quiet"),
        *_legend(),
        _label(_MARGIN, _TOP - 8, "before", "head"),
        _label(_MARGIN + _COLUMN + _MARGIN, _TOP - 8, "after", "head"),
        *_boxes(drawn),
        *(
            _label(_MARGIN, height - _MARGIN - _LINE * (len(notes) - 1 - index), note)
            for index, note in enumerate(notes)
        ),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _clusters(moves: Iterable[WorkloadMove]) -> list[_DrawnCluster]:
    """Return the clusters with workloads before or after, those that change first."""
    found = list(moves)
    before = members_by_key(_drawn(found, {item.workload: item.before for item in found}))
    after = members_by_key(_drawn(found, {item.workload: item.after for item in found}))
    clusters = [
        _DrawnCluster(name, before.get(name, ()), after.get(name, ()))
        for name in sorted(before.keys() | after.keys())
    ]
    return sorted(clusters, key=lambda item: not item.changes)


def _drawn(
    moves: Iterable[WorkloadMove], places: Mapping[str, Sequence[WorkloadPlace]]
) -> Iterator[tuple[str, _DrawnWorkload]]:
    for move in moves:
        for place in places[move.workload]:
            yield place.cluster, _DrawnWorkload(move.workload, place.device, move.action)


def _boxes(clusters: Iterable[_DrawnCluster]) -> Iterator[str]:
    top = _TOP
    for cluster in clusters:
        for column, workloads in enumerate((cluster.before, cluster.after)):
            left = _MARGIN + column * (_COLUMN + _MARGIN)
            yield (
                f'<rect class="cluster" x="{left}" y="{top}" width="{_COLUMN}"'
                f' height="{cluster.height}" rx="6"/>'
            )
            yield _label(left + 12, top + 20, cluster.name, "head")
            yield from _workloads(workloads, left + 12, top + _HEAD)
        top += cluster.height + _GAP


def _workloads(workloads: Sequence[_DrawnWorkload], left: int, top: int) -> Iterator[str]:
    if not workloads:
        yield _label(left, top + 16, "nothing", "quiet")
    for index, item in enumerate(workloads):
        y = top + index * _LINE
        yield (
            f'<rect class="{item.action}" x="{left}" y="{y}" width="{_COLUMN - 24}"'
            f' height="{_LINE - 4}" rx="4"/>'
        )
        device = f" on {plain(item.device)}" if item.device else ""
        yield _label(left + 8, y + 15, f"{plain(item.name)}{device}")
        if item.action != "stays":
            right = left + _COLUMN - 32
            said = dict(_LEGEND).get(item.action, item.action)
            yield f'<text class="quiet" text-anchor="end" x="{right}" y="{y + 15}">{said}</text>'


def _legend() -> Iterator[str]:
    for index, (action, meaning) in enumerate(_LEGEND):
        left = _MARGIN + 120 * index
        yield f'<rect class="{action}" x="{left}" y="66" width="14" height="14" rx="3"/>'
        yield _label(left + 20, 78, meaning, "quiet")


def _unplaced(plan: Plan) -> Iterator[str]:
    if plan.unplaced:
        yield f"{counted(len(plan.unplaced), 'workload')} with fewer places than asked for:"
    for item in plan.unplaced[:MOST_CLUSTERS]:
        yield f"{plain(item.workload)}: {item.message}"


def _left_out(count: int) -> Iterator[str]:
    if count > 0:
        yield f"{counted(count, 'cluster')} more are not drawn."


def _label(left: int, baseline: int, text: str, kind: str = "") -> str:
    shown = plain(text)
    limit = _NAME_CHARACTERS if kind != "quiet" else 2 * _NAME_CHARACTERS
    whole = f"<title>{_text(shown)}</title>" if len(shown) > limit else ""
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{left}" y="{baseline}">{whole}{_text(cleaned(shown, limit))}</text>'


def _text(text: str) -> str:
    """Return text for XML: markup escaped, and characters that XML forbids as escapes."""
    return escape(escaped(plain(text)))
