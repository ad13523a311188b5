"""From the body of Prometheus' query API to time series in matrix form.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from dsf.agent.answer import Answer, excerpt, misfit, refusal, shown
from dsf.agent.failure import Failure
from dsf.api.scoring_api import Sample, Series


class _Result(BaseModel):
    metric: dict[str, str] = Field(default_factory=dict)
    values: list[Sample] | None = None
    value: Sample | None = None

    @property
    def samples(self) -> list[Sample] | None:
        return [self.value] if self.values is None and self.value is not None else self.values


class _Data(BaseModel):
    result_type: Annotated[str, Field(alias="resultType")]
    result: Annotated[list[_Result] | Sample, Field(union_mode="left_to_right")]


class _Body(BaseModel):
    status: str
    data: _Data | None = None
    error_type: Annotated[str, Field(alias="errorType")] = ""
    error: str = ""
    warnings: list[str] | None = None
    partial: Annotated[bool, Field(alias="isPartial")] = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """The series of one or several queries, and what the server warned of."""

    series: tuple[Series, ...] = ()
    warnings: tuple[str, ...] = ()


def parse(url: str, answer: Answer) -> Fetched | Failure:
    """Return the series of an answer of `url`; an instant vector or scalar has one sample each.

    The server's own error message becomes the failure's. Series of native histograms, which have
    no plain samples, are left out with a warning.
    """
    try:
        body = _Body.model_validate_json(answer.body)
    except ValidationError as error:
        return _misfit(url, answer, error) if answer.ok else refusal("source", url, answer)
    if body.status == "error":
        return _rejected(url, body)
    if not answer.ok:
        return refusal("source", url, answer)
    if body.data is None:
        return _misfit(url, answer, "it has no data")
    return _fetched(url, answer, body, body.data)


def _misfit(url: str, answer: Answer, why: str | ValidationError) -> Failure:
    return misfit("source", url, answer, "a Prometheus query result", why)


def _rejected(url: str, body: _Body) -> Failure:
    kind = f" ({excerpt(body.error_type)})" if body.error_type else ""
    said = excerpt(body.error) or "it did not say why"
    return Failure("source", "QueryRejected", f"{shown(url)} rejected the query{kind}: {said}")


def _fetched(url: str, answer: Answer, body: _Body, data: _Data) -> Fetched | Failure:
    if data.result_type == "string":
        return _misfit(url, answer, "the query's value is text; write a query for numbers")
    series, histograms = _series(data.result)
    return Fetched(tuple(series), tuple(_warnings(body, histograms)))


def _series(result: list[_Result] | Sample) -> tuple[list[Series], int]:
    """Return the series that have samples, and the number of those that have none."""
    if isinstance(result, tuple):
        return [Series(metric={}, values=[result])], 0
    series = [
        Series.model_construct(metric=one.metric, values=one.samples)
        for one in result
        if one.samples is not None
    ]
    return series, len(result) - len(series)


def _warnings(body: _Body, histograms: int) -> Iterator[str]:
    yield from (excerpt(warning) for warning in body.warnings or ())
    if body.partial:
        yield "the server could read only a part of the data"
    if histograms:
        yield f"left out {histograms} native histograms: use histogram_quantile() or such"
