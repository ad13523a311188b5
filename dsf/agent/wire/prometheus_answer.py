"""Reads answers of Prometheus' query API as time series in matrix form.

Each series is validated and kept as the bytes that the server sent. Source:
https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dsf.agent.failure import Failure
from dsf.agent.wire import foreign_text
from dsf.agent.wire.http_answer import (
    HttpAnswer,
    display_url,
    invalid_response,
    status_failure,
    status_meaning,
)
from dsf.agent.wire.scoring_request import EncodedSeries, of_source
from dsf.api.json_input import json_text, object_count
from dsf.api.scoring.scoring_api import Sample
from dsf.api.untrusted_text import counted
from dsf.kube.redaction import Spellings

SERIES_LIMIT = 200_000
"""Series of the answers of one round: each takes memory besides its samples."""

REMARKS_LIMIT = 10
"""Warnings that are quoted; further ones are counted, because people read them in a Condition."""

SERIES_BYTES = 200
"""Memory of one series until it is scored, besides the answer's own bytes."""

REMARKS_BYTES = 1 << 16
"""Encoded warnings that are decoded: beyond that only their size is reported."""

SAMPLES_BYTES = 1 << 16
"""Samples that are validated at a time: decoded, they take ten times as much."""

FUTURE_SECONDS = 60.0
"""Of a sample ahead of the clock of the agent without a warning: clocks differ by seconds."""

_ERROR_TYPES = {
    *("timeout", "canceled", "execution", "bad_data", "internal", "unavailable"),
    *("not_found", "not_acceptable"),
}
"""Source: Prometheus, web/api/v1/api.go."""
_NUMBERS = {"matrix", "vector", "scalar"}
_REJECTED = {200, 400, 422}
_OPEN = ord("[")
_NO_TEXT, _NO_LIST = Raw(b'""'), Raw(b"null")


class _QuerySeries(Struct, gc=False):
    metric: Raw = Raw(b"{}")
    histograms: Raw | UnsetType = UNSET
    histogram: Raw | UnsetType = UNSET
    values: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET


class _QueryData(Struct):
    result_type: Raw = msgspec.field(name="resultType")
    result: Raw


class _QueryAnswer(Struct):
    status: Raw
    data: _QueryData | None = None
    error_type: Raw = msgspec.field(default=_NO_TEXT, name="errorType")
    error: Raw = _NO_TEXT
    warnings: Raw = _NO_LIST
    infos: Raw = _NO_LIST
    partial: bool = msgspec.field(default=False, name="isPartial")


_BODY = msgspec.json.Decoder(_QueryAnswer)
_RESULTS = msgspec.json.Decoder(list[_QuerySeries])
_REMARKS = msgspec.json.Decoder(list[str] | None)
_TEXT = msgspec.json.Decoder(str)
_SAMPLES = msgspec.json.Decoder(list[Sample])
_SAMPLE = msgspec.json.Decoder(Sample)


@dataclass(frozen=True, slots=True)
class FetchedSeries:
    """The series of one or several queries, and the server's warnings."""

    series: tuple[EncodedSeries, ...] = ()
    warnings: tuple[str, ...] = ()

    def of_source(self, name: str) -> "FetchedSeries":
        """Return them with the name of the source: in a label of each series, in each warning."""
        return FetchedSeries(
            tuple(of_source(self.series, name)),
            tuple(f"source {name}: {warning}" for warning in self.warnings),
        )


def concatenate(parts: Sequence[FetchedSeries]) -> FetchedSeries:
    """Return the series of several queries in their order; each warning appears once."""
    return FetchedSeries(
        tuple(series for part in parts for series in part.series),
        tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
    )


@dataclass(frozen=True, slots=True)
class AskedSamples:
    """What samples a query asked for: those until `until` (unix seconds), of a range or of then."""

    until: float = math.inf
    ranged: bool = False


ANY_SAMPLES = AskedSamples()
"""For answers that were recorded: nobody knows when they were asked for."""


def parse_query_answer(
    url: str, answer: HttpAnswer, max_series: int = SERIES_LIMIT, asked: AskedSamples = ANY_SAMPLES
) -> FetchedSeries | Failure:
    """Return the series of an answer of `url`; those of an instant vector have one sample each.

    If the server reports an error, its message becomes the failure's. Series without plain samples,
    such as native histograms, are left out with a warning. A vector in answer to a range query, and
    samples of the future, are accepted with a warning. A matrix in answer to an instant query is
    what a range selector asks for.
    """
    # Counted before they are decoded: a series is an object, and its labels are another.
    if object_count(answer.body) > 2 * (max_series + 1):
        return _too_many(url, max_series)
    try:
        body = _BODY.decode(json_text(answer.body))
        if _text(body.status) == "error":
            return _rejected(url, answer, body)
        found = _fetched(url, answer, body, asked) if answer.ok else None
    except foreign_text.MALFORMED as error:
        return _misfit(url, answer, error) if answer.ok else status_failure("source", url, answer)
    if found is None:
        return status_failure("source", url, answer)
    too_many = isinstance(found, FetchedSeries) and len(found.series) > max_series
    return _too_many(url, max_series) if too_many else found


def _too_many(url: str, max_series: int) -> Failure:
    message = f"the answers of {display_url(url)} have more than {max_series} series: ask for less"
    return Failure("source", "ResponseTooLarge", message)


def _text(encoded: Raw) -> str:
    """Return decoded text, cut to what a message may quote."""
    if foreign_text.encoded_size(encoded) > REMARKS_BYTES:
        return memoryview(encoded)[1:REMARKS_BYTES].tobytes().decode(errors="replace")
    return _TEXT.decode(encoded)


def _misfit(url: str, answer: HttpAnswer, why: str | Exception) -> Failure:
    why = why if isinstance(why, str) else foreign_text.describe(why)
    return invalid_response("source", url, answer, "a Prometheus query result", why)


def _rejected(url: str, answer: HttpAnswer, body: _QueryAnswer) -> Failure:
    """Statuses 400 and 422 (and 200) mean the query; other statuses mean the server."""
    error_type = answer.secrets.word(_text(body.error_type), _ERROR_TYPES)
    kind = f" ({error_type})" if error_type else ""
    said = answer.secrets.said(_text(body.error)) or ": it did not say why"
    where = display_url(url)
    if answer.status in _REJECTED:
        return Failure("source", "QueryRejected", f"{where} rejected the query{kind}{said}")
    reason, advice = status_meaning(answer.status)
    message = f"{where} answered {answer.status}{kind}{said}; {advice}"
    return Failure("source", reason, message, answer.retry_after)


def _fetched(
    url: str, answer: HttpAnswer, body: _QueryAnswer, asked: AskedSamples
) -> FetchedSeries | Failure:
    data = body.data
    if data is None:
        return _misfit(url, answer, "it has no data")
    result_type = _text(data.result_type)
    if result_type == "string":
        return _misfit(url, answer, "the query's value is text; write a query for numbers")
    if result_type not in _NUMBERS:
        shown = answer.secrets.excerpt(result_type)
        named = f"its resultType is {shown}, not" if shown else "its resultType is not"
        return _misfit(url, answer, f"{named} matrix, vector or scalar")
    found = _SeriesReader(answer.secrets.spelled_in(answer.body))
    if result_type == "scalar":
        found.series.append(found.instant(Raw(b"{}"), data.result))
    else:
        found.read(data.result)
    remarks = (*_remarks(body, answer.secrets), *found.remarks(asked, result_type))
    return FetchedSeries(tuple(found.series), remarks)


class _SeriesReader:
    """Converts series, and remembers what people should know about them."""

    def __init__(self, secrets: Spellings) -> None:
        self.series: list[EncodedSeries] = []
        self._secrets = secrets
        self._histograms = self._empty = 0
        self._latest = -math.inf

    def read(self, result: Raw) -> None:
        """Add the series that have samples. Raises one of MALFORMED."""
        encoded = _RESULTS.decode(result)
        encoded.reverse()
        count = len(encoded)
        while encoded:  # frees each encoded series as soon as it is converted
            index = count - len(encoded)
            try:
                self._add(encoded.pop())
            except foreign_text.MALFORMED as error:
                raise msgspec.ValidationError(f"series {index}: {error}") from error

    def instant(self, metric: Raw, sample: Raw) -> EncodedSeries:
        """Return a series of one sample. Raises one of MALFORMED."""
        if foreign_text.encoded_size(sample) > SAMPLES_BYTES:
            raise msgspec.ValidationError(f"a sample of more than {SAMPLES_BYTES} bytes")
        self._check([_SAMPLE.decode(sample)])
        return EncodedSeries(metric, sample, instant=True)

    def remarks(self, asked: AskedSamples, result_type: str) -> Iterator[str]:
        """Yield what is unusual about the series."""
        if self._histograms:
            yield f"left out {self._histograms} native histograms: use histogram_quantile() or such"
        if self._empty:
            yield f"left out {self._empty} series that have neither values nor histograms"
        if asked.ranged and result_type != "matrix":
            yield f"answered a {result_type} to a range query: each series has one sample"
        ahead = self._latest - asked.until
        if ahead > FUTURE_SECONDS:
            yield f"its latest sample is {ahead:.0f} s in the future: compare the clocks"

    def _add(self, encoded: _QuerySeries) -> None:
        foreign_text.decode_labels(encoded.metric, self._secrets)
        if isinstance(encoded.values, Raw):
            self._check_all(encoded.values)
            self.series.append(EncodedSeries(encoded.metric, encoded.values))
        elif isinstance(encoded.value, Raw):
            self.series.append(self.instant(encoded.metric, encoded.value))
        elif isinstance(encoded.histograms, Raw) or isinstance(encoded.histogram, Raw):
            self._histograms += 1
        else:
            self._empty += 1

    def _check_all(self, values: Raw) -> None:
        """Validate samples, in pieces if there are many. Raises one of MALFORMED.

        The samples are valid JSON already, so each `]` outside of text ends a sample.
        """
        view = memoryview(values)
        if len(view) <= SAMPLES_BYTES or view[0] != _OPEN:
            self._check(_SAMPLES.decode(values))
            return
        start = 1
        while start < len(view):
            piece = view[start : start + SAMPLES_BYTES].tobytes()
            end = piece.rfind(b"]") + 1
            if not end:
                raise msgspec.ValidationError(f"a sample of more than {SAMPLES_BYTES} bytes")
            start += end
            closing = b"" if start >= len(view) else b"]"
            self._check(_SAMPLES.decode(b"[" + piece[:end].lstrip(b", \t\r\n") + closing))

    def _check(self, samples: Sequence[Sample]) -> None:
        if samples:
            self._latest = max(self._latest, samples[-1][0])
        if self._secrets and any(self._secrets.found_in(value) for _, value in samples):
            raise msgspec.ValidationError(f"samples: {foreign_text.REPEATED}")


def _remarks(body: _QueryAnswer, secrets: foreign_text.CallSecrets) -> Iterator[str]:
    said = list[str]()
    for name, encoded in (("warnings", body.warnings), ("infos", body.infos)):
        if (size := foreign_text.encoded_size(encoded)) > REMARKS_BYTES:
            yield f"{size} bytes of {name}, which are too many to show"
        else:
            said += _REMARKS.decode(encoded) or ()
    if said and secrets.withheld:
        yield f"{counted(len(said), 'warning')} of the server: {foreign_text.WITHHELD}"
        said = []
    yield from (str(secrets.excerpt(remark)) for remark in said[:REMARKS_LIMIT])
    if len(said) > REMARKS_LIMIT:
        yield f"{len(said) - REMARKS_LIMIT} more warnings"
    if body.partial:
        yield "the server could read only a part of the data"
