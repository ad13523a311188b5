"""Scoring calls: their headers, and their body of series, context and parameters.

Series are JSON that is already validated. Samples are not encoded again: a scorer gets the bytes
that the source sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

import msgspec
from msgspec import Raw

from dsf.api.crd.scorer_source import SOURCE_LABEL
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import CLUSTER_HEADER, SCORE_HEADER, SCORER_HEADER, RequestContext

PIECE_BYTES = 1 << 18
"""Bytes written to the socket at a time: the transport copies what it can't send at once."""

_HEAD = b'{"data":['
_OWN_LABEL, _ESCAPE = SOURCE_LABEL.encode(), b"\\u"
_LABELS = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True)
class EncodedSeries:
    """One time series in Prometheus matrix form.

    `metric` is the JSON object of the labels, `values` the JSON list of samples, each
    `[unix_seconds, "number"]`; if `instant`, `values` is one sample alone. `closing` ends the
    labels instead of the brace of `metric`: the series of a source share the label of its name.
    """

    metric: bytes | Raw
    values: bytes | Raw
    instant: bool = False
    closing: bytes = b""

    @property
    def source(self) -> str:
        """The name of its source; empty if that is the only one of the scorer."""
        return (
            _LABELS.decode(b"{" + self.closing.lstrip(b","))[SOURCE_LABEL] if self.closing else ""
        )

    @property
    def labels(self) -> bytes:
        """The JSON object of all labels."""
        metric = bytes(self.metric)
        return metric[:-1] + self.closing if self.closing else metric


def of_source(series: Iterable[EncodedSeries], name: str) -> Iterator[EncodedSeries]:
    """Yield series with the label that names their source, instead of any such label they have."""
    alone = msgspec.json.encode({SOURCE_LABEL: name})[1:]
    after_others = b"," + alone
    for one in series:
        metric = _without_own_label(one.metric)
        others = bytes(metric)[1:-1].strip()
        yield replace(one, metric=metric, closing=after_others if others else alone)


def _without_own_label(metric: bytes | Raw) -> bytes | Raw:
    """Return labels without the one that names a source; the same object if it is not there."""
    text = bytes(metric)
    if _OWN_LABEL not in text and _ESCAPE not in text:
        return metric
    labels = _LABELS.decode(text)
    labels.pop(SOURCE_LABEL, None)
    return msgspec.json.encode(labels)


@dataclass(frozen=True, slots=True)
class ScoringRequestBody:
    """The body of a scoring call, `{"data": [series, …]}`, in pieces; `len` is its bytes.

    `context` and `params` are the JSON of these members, empty for none.
    """

    series: Sequence[EncodedSeries]
    context: bytes = b""
    params: bytes = b""

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts())

    def __iter__(self) -> Iterator[bytes]:
        piece, size = list[bytes | memoryview](), 0
        for part in self._parts():
            for start in range(0, len(part), PIECE_BYTES):
                piece.append(part[start : start + PIECE_BYTES])
                size += len(piece[-1])
                if size >= PIECE_BYTES:
                    yield b"".join(piece)
                    piece, size = [], 0
        yield b"".join(piece)

    def _parts(self) -> Iterator[bytes | memoryview]:
        yield _HEAD
        for index, series in enumerate(self.series):
            yield b',{"metric":' if index else b'{"metric":'
            metric = memoryview(series.metric)
            if series.closing:
                yield metric[:-1]
                yield series.closing
            else:
                yield metric
            yield b',"values":[' if series.instant else b',"values":'
            yield memoryview(series.values)
            yield b"]}" if series.instant else b"}"
        yield b"]"
        for name, member in ((b"context", self.context), (b"params", self.params)):
            if member:
                yield b',"' + name + b'":'
                yield memoryview(member)
        yield b"}"


def caller_headers(cluster: str, summary: ScorerSummary) -> dict[str, str]:
    """Return the headers that say who asks.

    Their values are percent-encoded, so a name can't end its header or begin another one.
    """
    named = {CLUSTER_HEADER: cluster, SCORE_HEADER: summary.score_name, SCORER_HEADER: summary.name}
    return {header: quote(name, safe="") for header, name in named.items()}


def encoded_context(cluster: str, summary: ScorerSummary) -> bytes:
    """Return the JSON of the context that a scorer asks for; empty if it asks for none."""
    asked = summary.context
    if asked is None:
        return b""
    named = {"cluster": cluster, "score": summary.score_name, "scorer": summary.name}
    context = RequestContext(
        **(named if asked.cluster else {}),
        labels=summary.context_labels if asked.labels else None,
        claims=summary.context_claims if asked.claims else None,
        workloads=list(summary.context_workloads) if asked.workloads else None,
        devices=list(summary.context_devices) if asked.devices else None,
    )
    return context.model_dump_json(by_alias=True).encode()


def encoded_params(summary: ScorerSummary) -> bytes:
    """Return the JSON of the further parameters of a scorer; empty if it has none."""
    return msgspec.json.encode(summary.scoring_params) if summary.scoring_params else b""
