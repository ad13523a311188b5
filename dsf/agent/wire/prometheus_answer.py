"""Reads answers of Prometheus' query API as time series in matrix form.

Each series is validated and kept as the bytes that the server sent. Source:
https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dsf.agent.failure import Failure
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.agent.wire.http_answer import (
    HttpAnswer,
    display_url,
    excerpt,
    invalid_response,
    status_failure,
    status_meaning,
)
from dsf.api.scoring.scoring_api import Sample

SERIES_LIMIT = 200_000
"""Series of one answer: each takes several hundred bytes besides its samples."""

REMARKS_LIMIT = 10
"""Warnings that are quoted; further ones are counted, because people read them in a Condition."""

_REJECTED = {200, 400, 422}


class _QueryResult(Struct):
    metric: dict[str, str] = {}
    values: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET


class _QueryData(Struct):
    result_type: str = msgspec.field(name="resultType")
    result: Raw


class _QueryAnswer(Struct):
    status: str
    data: _QueryData | None = None
    error_type: str = msgspec.field(default="", name="errorType")
    error: str = ""
    warnings: list[str] | None = None
    infos: list[str] | None = None
    partial: bool = msgspec.field(default=False, name="isPartial")


_BODY = msgspec.json.Decoder(_QueryAnswer)
_RESULTS = msgspec.json.Decoder(list[Raw])
_RESULT = msgspec.json.Decoder(_QueryResult)
_SAMPLES = msgspec.json.Decoder(list[Sample])
_SAMPLE = msgspec.json.Decoder(Sample)
_ENCODER = msgspec.json.Encoder()
_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


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


def parse_query_answer(url: str, answer: HttpAnswer) -> FetchedSeries | Failure:
    """Return the series of an answer of `url`; those of an instant vector have one sample each.

    If the server reports an error, its message becomes the failure's. Native histograms have no
    plain samples, so they are left out with a warning.
    """
    # Counted before they are decoded: a series is an object, and its labels are another.
    if answer.body.count(b"{") > 2 * (SERIES_LIMIT + 1):
        message = (
            f"the answer of {display_url(url)} has more than {SERIES_LIMIT} series: ask for less"
        )
        return Failure("source", "ResponseTooLarge", message)
    try:
        body = _BODY.decode(answer.body)
    except _MALFORMED as error:
        return _misfit(url, answer, error) if answer.ok else status_failure("source", url, answer)
    if body.status == "error":
        return _rejected(url, answer, body)
    if not answer.ok:
        return status_failure("source", url, answer)
    if body.data is None:
        return _misfit(url, answer, "it has no data")
    return _fetched(url, answer, body, body.data)


def _misfit(url: str, answer: HttpAnswer, why: str | Exception) -> Failure:
    why = f"malformed JSON: {why}" if isinstance(why, RecursionError) else str(why)
    return invalid_response("source", url, answer, "a Prometheus query result", excerpt(why))


def _rejected(url: str, answer: HttpAnswer, body: _QueryAnswer) -> Failure:
    """Statuses 400 and 422 (and 200) mean the query; other statuses mean the server."""
    kind = f" ({excerpt(body.error_type)})" if body.error_type else ""
    said = excerpt(body.error) or "it did not say why"
    if answer.status in _REJECTED:
        return Failure(
            "source", "QueryRejected", f"{display_url(url)} rejected the query{kind}: {said}"
        )
    reason, advice = status_meaning(answer.status)
    message = f"{display_url(url)} answered {answer.status}{kind}: {said}; {advice}"
    return Failure("source", reason, message, answer.retry_after)


def _fetched(
    url: str, answer: HttpAnswer, body: _QueryAnswer, data: _QueryData
) -> FetchedSeries | Failure:
    if data.result_type == "string":
        return _misfit(url, answer, "the query's value is text; write a query for numbers")
    try:
        series, histograms = _series(data)
    except _MALFORMED as error:
        return _misfit(url, answer, error)
    return FetchedSeries(tuple(series), tuple(_remarks(body, histograms)))


def _series(data: _QueryData) -> tuple[list[EncodedSeries], int]:
    """Return the series that have samples, and the number of series without."""
    if data.result_type == "scalar":
        return [EncodedSeries(b"{}", _one_sample(data.result))], 0
    results = _RESULTS.decode(data.result)
    series = [found for index, raw in enumerate(results) if (found := _one(index, raw)) is not None]
    return series, len(results) - len(series)


def _one(index: int, raw: Raw) -> EncodedSeries | None:
    try:
        result = _RESULT.decode(raw)
        metric = _ENCODER.encode(result.metric)
        if isinstance(result.values, Raw):
            _SAMPLES.decode(result.values)
            return EncodedSeries(metric, result.values)
        if isinstance(result.value, Raw):
            return EncodedSeries(metric, _one_sample(result.value))
    except _MALFORMED as error:
        raise msgspec.ValidationError(f"series {index}: {error}") from error
    return None


def _one_sample(raw: Raw) -> bytes:
    _SAMPLE.decode(raw)
    return b"[%b]" % bytes(raw)


def _remarks(body: _QueryAnswer, histograms: int) -> Iterator[str]:
    said = [*(body.warnings or ()), *(body.infos or ())]
    yield from (excerpt(remark) for remark in said[:REMARKS_LIMIT])
    if len(said) > REMARKS_LIMIT:
        yield f"{len(said) - REMARKS_LIMIT} more warnings"
    if body.partial:
        yield "the server could read only a part of the data"
    if histograms:
        yield f"left out {histograms} native histograms: use histogram_quantile() or such"
