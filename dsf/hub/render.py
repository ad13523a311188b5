"""From summaries and a cluster's share of them to the bytes that it is sent."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from dsf.api.summary import ScorerSummary, dump_summaries
from dsf.hub.distribution import Share
from dsf.hub.rules import Override

_OPENING, _CLOSING, _BETWEEN = "[\n", "\n]", ",\n"
_SEAM = "\n  },\n  {\n"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The value of `data.summaries`, its parts by scorer, and its size inside the ManifestWork."""

    text: str
    parts: Mapping[str, str] = field(default_factory=dict)
    bytes: int = 0


class Renderer:
    """Renders shares; as long as the summaries stay, each share is rendered once.

    The bytes are those of `dump_summaries`.
    """

    def __init__(self) -> None:
        self._summaries: tuple[ScorerSummary, ...] = ()
        self._rendered: dict[Share, Rendered] = {}
        self._parts: dict[tuple[int, str], str] = {}

    def render(
        self, summaries: Iterable[ScorerSummary], shares: Mapping[str, Share]
    ) -> dict[str, Rendered]:
        """Return what each managed cluster is sent."""
        ordered = tuple(sorted(summaries, key=lambda each: (each.name, each.score_name)))
        if ordered != self._summaries:
            self._summaries, self._rendered, self._parts = ordered, {}, {}
        used = {share: self._rendered.get(share) for share in set(shares.values())}
        self._rendered = {share: done or self._render(share) for share, done in used.items()}
        return {cluster: self._rendered[share] for cluster, share in shares.items()}

    def _render(self, share: Share) -> Rendered:
        parts = {
            summary.name: self._part(place, _host(summary, share.overrides))
            for place, summary in enumerate(self._summaries)
            if summary.score_name not in share.hidden
        }
        body = _BETWEEN.join(parts.values())
        text = sys.intern(f"{_OPENING}{body}{_CLOSING}" if parts else "[]")
        return Rendered(text, parts, len(json.dumps(text, ensure_ascii=False).encode()))

    def _part(self, place: int, host: str) -> str:
        if (place, host) not in self._parts:
            summary = _moved(self._summaries[place], host)
            self._parts[place, host] = dump_summaries([summary])[len(_OPENING) : -len(_CLOSING)]
        return self._parts[place, host]


def parts_of(text: str) -> frozenset[str]:
    """Return the parts of a text that was rendered here; of any other text, what is no part."""
    inner = text[len(_OPENING) : -len(_CLOSING)]
    pieces = inner.split(_SEAM)
    last = len(pieces) - 1
    return frozenset(
        ("" if place == 0 else "  {\n") + piece + ("" if place == last else "\n  }")
        for place, piece in enumerate(pieces)
    )


def _host(summary: ScorerSummary, overrides: Iterable[Override]) -> str:
    """Return the host of the first override that means a score; empty where none does."""
    if not summary.source_endpoint:
        return ""
    return next((o.host for o in overrides if o.score in (None, summary.score_name)), "")


def _moved(summary: ScorerSummary, host: str) -> ScorerSummary:
    if not host:
        return summary
    parts = urlsplit(summary.source_endpoint)
    query = f"?{parts.query}" if parts.query else ""
    return summary.model_copy(update={"source_endpoint": f"{host}{parts.path}{query}"})
