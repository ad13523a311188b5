"""From the body of Prometheus' query API to time series in matrix form.

Every series is checked for its form, one at a time so that the memory for it is small, and kept as
the bytes that the server sent. Source:
https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dsf.agent.failure import Failure
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.agent.wire.http_answer import HttpAnswer, excerpt, meaning, misfit, refusal, shown
from dsf.api.scoring.scoring_api import Sample

SERIES_LIMIT = 200_000
"""Each takes several hundred bytes besides its samples."""

REMARKS_LIMIT = 10
"""More warnings than this are only counted: a Condition is read by people."""

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
    """The series of one or several queries, and what the server warned of."""

    series: tuple[EncodedSeries, ...] = ()
    warnings: tuple[str, ...] = ()


def joined(parts: Sequence[FetchedSeries]) -> FetchedSeries:
    """Return the series of several queries one after the other; a remark stands once."""
    return FetchedSeries(
        tuple(series for part in parts for series in part.series),
        tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
    )


def parse(url: str, answer: HttpAnswer) -> FetchedSeries | Failure:
    """Return the series of an answer of `url`; an instant vector or scalar has one sample each.

    The server's own error message becomes the failure's. Series of native histograms, which have
    no plain samples, are left out with a warning.
    """
    # Counted before they are decoded: a series is an object, and its labels are another.
    if answer.body.count(b"{") > 2 * (SERIES_LIMIT + 1):
        message = f"the answer of {shown(url)} has more than {SERIES_LIMIT} series: ask for less"
        return Failure("source", "ResponseTooLarge", message)
    try:
        body = _BODY.decode(answer.body)
    except _MALFORMED as error:
        return _misfit(url, answer, error) if answer.ok else refusal("source", url, answer)
    if body.status == "error":
        return _rejected(url, answer, body)
    if not answer.ok:
        return refusal("source", url, answer)
    if body.data is None:
        return _misfit(url, answer, "it has no data")
    return _fetched(url, answer, body, body.data)


def _misfit(url: str, answer: HttpAnswer, why: str | Exception) -> Failure:
    why = f"malformed JSON: {why}" if isinstance(why, RecursionError) else str(why)
    return misfit("source", url, answer, "a Prometheus query result", excerpt(why))


def _rejected(url: str, answer: HttpAnswer, body: _QueryAnswer) -> Failure:
    """400 and 422 speak of the query; other statuses of the server, and say so themselves."""
    kind = f" ({excerpt(body.error_type)})" if body.error_type else ""
    said = excerpt(body.error) or "it did not say why"
    if answer.status in _REJECTED:
        return Failure("source", "QueryRejected", f"{shown(url)} rejected the query{kind}: {said}")
    reason, advice = meaning(answer.status)
    message = f"{shown(url)} answered {answer.status}{kind}: {said}; {advice}"
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
    """Return the series that have samples, and the number of those that have none."""
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
