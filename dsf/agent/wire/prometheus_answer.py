"""Reads answers of Prometheus' query API as time series in matrix form.

Each series is validated and kept as the bytes that the server sent. Source:
https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dsf.agent.failure import Failure
from dsf.agent.wire.bounded_json import (
    MALFORMED,
    REPEATED,
    decode_labels,
    describe,
    encoded_size,
    json_text,
)
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.agent.wire.foreign_text import CallSecrets
from dsf.agent.wire.http_answer import (
    HttpAnswer,
    display_url,
    invalid_response,
    status_failure,
    status_meaning,
)
from dsf.api.scoring.scoring_api import Sample

SERIES_LIMIT = 200_000
"""Series of the answers of one round: each takes memory besides its samples."""

REMARKS_LIMIT = 10
"""Warnings that are quoted; further ones are counted, because people read them in a Condition."""

SERIES_BYTES = 192
"""Memory of one series until it is scored, besides the answer's own bytes."""

REMARKS_BYTES = 1 << 16
"""Encoded warnings that are decoded: beyond that only their size is reported."""

SAMPLES_BYTES = 1 << 16
"""Samples that are validated at a time: decoded, they take ten times as much."""

_REJECTED = {200, 400, 422}
_OPEN = ord("[")
_NO_TEXT, _NO_LIST = Raw(b'""'), Raw(b"null")


class _QuerySeries(Struct, gc=False):
    metric: Raw = Raw(b"{}")
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


def concatenate(parts: Sequence[FetchedSeries]) -> FetchedSeries:
    """Return the series of several queries in their order; each warning appears once."""
    return FetchedSeries(
        tuple(series for part in parts for series in part.series),
        tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
    )


def series_count(body: bytes | bytearray) -> int:
    """Return an upper bound of the number of series in the body of an answer."""
    return body.count(b"{")


def parse_query_answer(
    url: str, answer: HttpAnswer, max_series: int = SERIES_LIMIT
) -> FetchedSeries | Failure:
    """Return the series of an answer of `url`; those of an instant vector have one sample each.

    If the server reports an error, its message becomes the failure's. Native histograms have no
    plain samples, so they are left out with a warning.
    """
    # Counted before they are decoded: a series is an object, and its labels are another.
    if series_count(answer.body) > 2 * (max_series + 1):
        return _too_many(url)
    try:
        body = _BODY.decode(json_text(answer.body))
        if _text(body.status) == "error":
            return _rejected(url, answer, body)
        found = _fetched(url, answer, body) if answer.ok else None
    except MALFORMED as error:
        return _misfit(url, answer, error) if answer.ok else status_failure("source", url, answer)
    if found is None:
        return status_failure("source", url, answer)
    too_many = isinstance(found, FetchedSeries) and len(found.series) > max_series
    return _too_many(url) if too_many else found


def _too_many(url: str) -> Failure:
    message = (
        f"the answers of {display_url(url)} have more than {SERIES_LIMIT} series: ask for less"
    )
    return Failure("source", "ResponseTooLarge", message)


def _text(encoded: Raw) -> str:
    """Return decoded text, cut to what a message may quote."""
    if encoded_size(encoded) > REMARKS_BYTES:
        return memoryview(encoded)[1:REMARKS_BYTES].tobytes().decode(errors="replace")
    return _TEXT.decode(encoded)


def _misfit(url: str, answer: HttpAnswer, why: str | Exception) -> Failure:
    why = why if isinstance(why, str) else describe(why, answer.secrets)
    return invalid_response("source", url, answer, "a Prometheus query result", why)


def _rejected(url: str, answer: HttpAnswer, body: _QueryAnswer) -> Failure:
    """Statuses 400 and 422 (and 200) mean the query; other statuses mean the server."""
    error_type = answer.secrets.excerpt(_text(body.error_type))
    kind = f" ({error_type})" if error_type else ""
    said = answer.secrets.excerpt(_text(body.error)) or "it did not say why"
    where = display_url(url)
    if answer.status in _REJECTED:
        return Failure("source", "QueryRejected", f"{where} rejected the query{kind}: {said}")
    reason, advice = status_meaning(answer.status)
    message = f"{where} answered {answer.status}{kind}: {said}; {advice}"
    return Failure("source", reason, message, answer.retry_after)


def _fetched(url: str, answer: HttpAnswer, body: _QueryAnswer) -> FetchedSeries | Failure:
    data = body.data
    if data is None:
        return _misfit(url, answer, "it has no data")
    result_type = _text(data.result_type)
    if result_type == "string":
        return _misfit(url, answer, "the query's value is text; write a query for numbers")
    suspected = answer.secrets.suspected_in(answer.body)
    if result_type == "scalar":
        series, histograms = [_instant(Raw(b"{}"), data.result, suspected)], 0
    else:
        series, histograms = _series(data.result, suspected)
    return FetchedSeries(tuple(series), tuple(_remarks(body, histograms, answer.secrets)))


def _series(result: Raw, secrets: CallSecrets) -> tuple[list[EncodedSeries], int]:
    """Return the series that have samples, and the number of series without."""
    encoded = _RESULTS.decode(result)
    encoded.reverse()
    count, series = len(encoded), list[EncodedSeries]()
    while encoded:  # frees each encoded series as soon as it is converted
        found = _one(count - len(encoded), encoded.pop(), secrets)
        if found is not None:
            series.append(found)
    return series, count - len(series)


def _one(index: int, encoded: _QuerySeries, secrets: CallSecrets) -> EncodedSeries | None:
    try:
        decode_labels(encoded.metric, secrets)
        if isinstance(encoded.values, Raw):
            _check_samples(encoded.values, secrets)
            return EncodedSeries(encoded.metric, encoded.values)
        if isinstance(encoded.value, Raw):
            return _instant(encoded.metric, encoded.value, secrets)
    except MALFORMED as error:
        raise msgspec.ValidationError(f"series {index}: {error}") from error
    return None


def _check_samples(values: Raw, secrets: CallSecrets) -> None:
    """Validate samples, in pieces if there are many. Raises one of MALFORMED.

    The samples are valid JSON already, so each `]` outside of text ends a sample.
    """
    view = memoryview(values)
    if len(view) <= SAMPLES_BYTES or view[0] != _OPEN:
        _refuse_repeated(_SAMPLES.decode(values), secrets)
        return
    start = 1
    while start < len(view):
        piece = view[start : start + SAMPLES_BYTES].tobytes()
        end = piece.rfind(b"]") + 1
        if not end:
            raise msgspec.ValidationError(f"a sample of more than {SAMPLES_BYTES} bytes")
        start += end
        closing = b"" if start >= len(view) else b"]"
        encoded = b"[" + piece[:end].lstrip(b", \t\r\n") + closing
        _refuse_repeated(_SAMPLES.decode(encoded), secrets)


def _refuse_repeated(samples: Iterable[Sample], secrets: CallSecrets) -> None:
    if secrets.found_in(value for _, value in samples):
        raise msgspec.ValidationError(f"samples: {REPEATED}")


def _instant(metric: Raw, sample: Raw, secrets: CallSecrets) -> EncodedSeries:
    if encoded_size(sample) > SAMPLES_BYTES:
        raise msgspec.ValidationError(f"a sample of more than {SAMPLES_BYTES} bytes")
    _refuse_repeated([_SAMPLE.decode(sample)], secrets)
    return EncodedSeries(metric, sample, instant=True)


def _remarks(body: _QueryAnswer, histograms: int, secrets: CallSecrets) -> Iterator[str]:
    said = list[str]()
    for name, encoded in (("warnings", body.warnings), ("infos", body.infos)):
        if encoded_size(encoded) > REMARKS_BYTES:
            yield f"{encoded_size(encoded)} bytes of {name}, which are too many to show"
        else:
            said += _REMARKS.decode(encoded) or ()
    yield from (secrets.excerpt(remark) for remark in said[:REMARKS_LIMIT])
    if len(said) > REMARKS_LIMIT:
        yield f"{len(said) - REMARKS_LIMIT} more warnings"
    if body.partial:
        yield "the server could read only a part of the data"
    if histograms:
        yield f"left out {histograms} native histograms: use histogram_quantile() or such"
