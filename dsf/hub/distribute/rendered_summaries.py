"""Renders the text of `data.summaries` for each managed cluster."""

import json
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from dsf.api.crd.scoring_params import AskedContext
from dsf.api.scoring.scorer_summary import ScorerSummary, SummarySource, dump_summaries, field_text
from dsf.hub.distribute.audience import ClusterShare, ClusterValues
from dsf.hub.snapshot.distribution_rules import Hosts

_OPENING, _CLOSING, _BETWEEN = "[\n", "\n]", ",\n"
_SEAM = "\n  },\n  {\n"
_END = "\n  }"


@dataclass(frozen=True, slots=True)
class RenderedSummaries:
    """The value of `data.summaries`: one part for each scorer in `names`, in that order.

    `bytes` is its size as a JSON string inside the ManifestWork. `secrets` are the names of the
    Secrets that the scorers reference, sorted.
    """

    text: str
    names: tuple[str, ...] = ()
    bytes: int = 0
    secrets: tuple[str, ...] = ()

    def parts(self) -> dict[str, str]:
        """Return the part of each scorer."""
        return dict(zip(self.names, _split(self.text), strict=True)) if self.names else {}


@dataclass(frozen=True, slots=True)
class _RenderedPart:
    """The text of one summary; `around` is the text before and after the URL of its source.

    A summary with several sources is rendered anew where an override changes one of them.
    """

    summary: ScorerSummary
    whole: str
    around: tuple[str, str]
    context: AskedContext
    secrets: frozenset[str]

    def given(self, share: ClusterShare) -> str:
        """Return the text for a share: its host of the source, its labels and claims."""
        text = self._overridden(share.hosts)
        values = {
            "contextLabels": _chosen(share.labels, self.context.labels),
            "contextClaims": _chosen(share.claims, self.context.claims),
        }
        added = "".join(f",\n{field_text(*item)}" for item in values.items() if item[1])
        return text.removesuffix(_END) + added + _END if added else text

    def _overridden(self, hosts: Hosts) -> str:
        """Return the text with the hosts of overrides for the sources."""
        if self.summary.sources:
            moved = tuple(self._moved(one, hosts) for one in self.summary.sources)
            if moved == self.summary.sources:
                return self.whole
            return _body(self.summary.model_copy(update={"sources": moved}))
        host = self._host("", hosts)
        source = self.summary.source_endpoint
        if not (host and source):
            return self.whole
        return json.dumps(_on_host(source, host), ensure_ascii=False).join(self.around)

    def _moved(self, source: SummarySource, hosts: Hosts) -> SummarySource:
        host = self._host(source.name, hosts)
        if not (host and source.endpoint):
            return source
        return source.model_copy(update={"endpoint": _on_host(source.endpoint, host)})

    def _host(self, source: str, hosts: Hosts) -> str:
        """Return the first host for a source; empty if there is none."""
        fitting = (each.host for each in hosts if each.fits(self.summary.score_name, source))
        return next(fitting, "")


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
        shown = [part for part in self._parts if part.summary.score_name not in share.masked]
        if not shown:
            return RenderedSummaries("[]", (), len("[]"))
        body = _BETWEEN.join(part.given(share) for part in shown)
        text = sys.intern(f"{_OPENING}{body}{_CLOSING}")
        names = self._names.setdefault(share.masked, tuple(part.summary.name for part in shown))
        size = len(json.dumps(text, ensure_ascii=False).encode())
        secrets = frozenset[str]().union(*(part.secrets for part in shown))
        return RenderedSummaries(text, names, size, tuple(sorted(secrets)))


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
    whole = _body(summary)
    source = summary.source_endpoint
    key = '"sourceEndpoint": '
    before, _, after = whole.partition(key + json.dumps(source, ensure_ascii=False))
    context = summary.context or AskedContext()
    secrets = frozenset(each.name for each in summary.secret_references)
    return _RenderedPart(summary, whole, (before + key, after), context, secrets)


def _body(summary: ScorerSummary) -> str:
    return dump_summaries([summary])[len(_OPENING) : -len(_CLOSING)]


def _on_host(endpoint: str, host: str) -> str:
    parts = urlsplit(endpoint)
    return f"{host}{parts.path}?{parts.query}" if parts.query else f"{host}{parts.path}"


def _chosen(values: ClusterValues, asked: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in values if key in asked}
