"""Renders the text of `data.summaries` for each managed cluster."""

import json
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from dsf.api.crd.asked_context import AskedContext
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries, field_text
from dsf.hub.distribute.audience import ClusterShare, ClusterValues
from dsf.hub.snapshot.source_overrides import Hosts

_OPENING, _CLOSING, _BETWEEN = "[\n", "\n]", ",\n"
_SEAM = "\n  },\n  {\n"
_END = "\n  }"


@dataclass(frozen=True, slots=True)
class RenderedSummaries:
    """The value of `data.summaries`: one part for each scorer in `names`, in that order.

    `bytes` is its size as a JSON string inside the ManifestWork.
    """

    text: str
    names: tuple[str, ...] = ()
    bytes: int = 0

    def parts(self) -> dict[str, str]:
        """Return the part of each scorer."""
        return dict(zip(self.names, _split(self.text), strict=True)) if self.names else {}


@dataclass(frozen=True, slots=True)
class _RenderedPart:
    """The text of one summary; `around` is the text before and after the URL of its source."""

    name: str
    score_name: str
    whole: str
    around: tuple[str, str]
    source: str
    context: AskedContext

    def given(self, share: ClusterShare) -> str:
        """Return the text for a share: its host of the source, its labels and claims."""
        text = self._at(_host(self, share.hosts))
        values = {
            "contextLabels": _chosen(share.labels, self.context.labels),
            "contextClaims": _chosen(share.claims, self.context.claims),
        }
        added = "".join(f",\n{field_text(*item)}" for item in values.items() if item[1])
        return text.removesuffix(_END) + added + _END if added else text

    def _at(self, host: str) -> str:
        """Return the text with another host for the source; unchanged if `host` is empty."""
        if not host:
            return self.whole
        parts = urlsplit(self.source)
        query = f"?{parts.query}" if parts.query else ""
        moved = json.dumps(f"{host}{parts.path}{query}", ensure_ascii=False)
        return moved.join(self.around)


class SummariesRenderer:
    """Renders shares, each once until the summaries change.

    The text equals that of `dump_summaries`.
    """

    def __init__(self) -> None:
        self._summaries: tuple[ScorerSummary, ...] = ()
        self._parts: tuple[_RenderedPart, ...] = ()
        self._rendered: dict[ClusterShare, RenderedSummaries] = {}
        self._names: dict[frozenset[str], tuple[str, ...]] = {}

    def render(
        self, summaries: Iterable[ScorerSummary], shares: Mapping[str, ClusterShare]
    ) -> dict[str, RenderedSummaries]:
        """Return the text for each managed cluster."""
        ordered = tuple(sorted(summaries, key=lambda each: (each.name, each.score_name)))
        if ordered != self._summaries:
            self._summaries, self._parts = ordered, tuple(_part(each) for each in ordered)
            self._rendered, self._names = {}, {}
        used = {share: self._rendered.get(share) for share in set(shares.values())}
        self._rendered = {share: done or self._render(share) for share, done in used.items()}
        return {cluster: self._rendered[share] for cluster, share in shares.items()}

    def _render(self, share: ClusterShare) -> RenderedSummaries:
        shown = [part for part in self._parts if part.score_name not in share.masked]
        if not shown:
            return RenderedSummaries("[]", (), len("[]"))
        body = _BETWEEN.join(part.given(share) for part in shown)
        text = sys.intern(f"{_OPENING}{body}{_CLOSING}")
        names = self._names.setdefault(share.masked, tuple(part.name for part in shown))
        return RenderedSummaries(text, names, len(json.dumps(text, ensure_ascii=False).encode()))


def parts_of(text: str) -> frozenset[str]:
    """Return the parts of a rendered text; those of any other text equal no part."""
    return frozenset(_split(text))


def _split(text: str) -> list[str]:
    pieces = text[len(_OPENING) : -len(_CLOSING)].split(_SEAM)
    last = len(pieces) - 1
    return [
        ("" if place == 0 else "  {\n") + piece + ("" if place == last else "\n  }")
        for place, piece in enumerate(pieces)
    ]


def _part(summary: ScorerSummary) -> _RenderedPart:
    whole = dump_summaries([summary])[len(_OPENING) : -len(_CLOSING)]
    source = summary.source_endpoint
    key = '"sourceEndpoint": '
    before, _, after = whole.partition(key + json.dumps(source, ensure_ascii=False))
    return _RenderedPart(
        summary.name,
        summary.score_name,
        whole,
        (before + key, after),
        source,
        summary.context or AskedContext(),
    )


def _chosen(values: ClusterValues, asked: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in values if key in asked}


def _host(part: _RenderedPart, hosts: Hosts) -> str:
    """Return the first host for a score; empty if there is none."""
    if not part.source:
        return ""
    return next((host for score, host in hosts if score in (None, part.score_name)), "")
