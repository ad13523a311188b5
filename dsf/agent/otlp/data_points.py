"""Converts an OTLP export request to data points with Prometheus' names and labels.

| OTLP | becomes |
|---|---|
| gauge, sum | one number; deltas are marked, because they have to be added up |
| histogram | `_bucket{le}` (cumulative, with `+Inf`), `_count`, and `_sum` if it is set |
| exponential histogram | `_count`, `_sum`; its bucket bounds change, so they can't be series |
| summary | `{quantile}`, `_count`, `_sum` |

Labels are the attributes of the resource, overridden by those of the point. Names are sanitized as
Prometheus does, but no unit or `_total` is appended. Source:
https://opentelemetry.io/docs/specs/otel/metrics/data-model/
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dsf.agent.wire.series_buffer import Labels, number_text
from dsf.api.scoring.series_selector import NAME, label_name, metric_name

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import (
        ExponentialHistogramDataPoint,
        HistogramDataPoint,
        Metric,
        NumberDataPoint,
        SummaryDataPoint,
    )

    _Totals = HistogramDataPoint | ExponentialHistogramDataPoint | SummaryDataPoint
    _ProtoPoint = NumberDataPoint | _Totals
    _P = TypeVar("_P", bound=_ProtoPoint)


DELTA, CUMULATIVE = 1, 2
"""OTLP's AggregationTemporality."""

NO_RECORDED_VALUE = 1
"""OTLP's flag of a point without a value."""

DEPTH_LIMIT = 8
"""Levels of nested attribute values that are kept: a label is text for people."""

_NANOSECONDS = 1e9
_SUFFIXES = ("", "_bucket", "_count", "_sum")

EXPONENTIAL = "buckets of exponential histograms are not kept: send explicit buckets"
NO_TEMPORALITY = "sums and histograms need a temporality: delta or cumulative"
BAD_BUCKETS = "a histogram needs one bucket more than bounds"
NO_DATA = "a metric of an unknown kind"


class DataPoint(NamedTuple):
    """One number of a series at a time in unix seconds, 0 if the sender gave no time.

    A delta is the increase since the previous point. If `problem` is set, there is no number, and
    it says why.
    """

    labels: Labels
    seconds: float
    value: float
    delta: bool = False
    problem: str = ""


def points(
    request: "ExportMetricsServiceRequest", selects: Callable[[str], bool] = lambda _: True
) -> Iterator[DataPoint]:
    """Yield the points of a request in its order.

    A metric is skipped unless `selects` accepts the name of one of its series, because senders
    usually send every metric they have.
    """
    for resource_metrics in request.resource_metrics:
        shared = _labels(resource_metrics.resource.attributes)
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                name = metric_name(metric.name)
                if any(selects(name + suffix) for suffix in _SUFFIXES):
                    yield from _metric(metric, name, shared)


def _metric(metric: "Metric", name: str, shared: dict[str, str]) -> Iterator[DataPoint]:
    kind = metric.WhichOneof("data")
    match kind:
        case "gauge":
            yield from _numbers(name, metric.gauge.data_points, shared, delta=False)
        case "summary":
            for summary in _recorded(metric.summary.data_points):
                yield from _summary(name, summary, shared)
        case "sum" | "histogram" | "exponential_histogram":
            yield from _accumulated(name, kind, metric, shared)
        case _:
            yield DataPoint(_key(name, shared), 0.0, 0.0, problem=NO_DATA)


def _accumulated(
    name: str, kind: str, metric: "Metric", shared: dict[str, str]
) -> Iterator[DataPoint]:
    data = getattr(metric, kind)
    if data.aggregation_temporality not in {DELTA, CUMULATIVE}:
        yield DataPoint(_key(name, shared), 0.0, 0.0, problem=NO_TEMPORALITY)
        return
    delta = data.aggregation_temporality == DELTA
    if kind == "sum":
        yield from _numbers(name, data.data_points, shared, delta=delta)
        return
    for point in _recorded(data.data_points):
        yield from _totals(name, point, _merged(shared, point.attributes), delta=delta)
        if kind == "histogram":
            yield from _buckets(name, point, shared, delta=delta)
        else:
            labels = _merged(shared, point.attributes)
            yield DataPoint(_key(f"{name}_bucket", labels), 0.0, 0.0, problem=EXPONENTIAL)


def _numbers(
    name: str, data_points: "Iterable[NumberDataPoint]", shared: dict[str, str], *, delta: bool
) -> Iterator[DataPoint]:
    for point in _recorded(data_points):
        value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
        labels = _key(name, _merged(shared, point.attributes))
        yield DataPoint(labels, _seconds(point), float(value), delta)


def _buckets(
    name: str, point: "HistogramDataPoint", shared: dict[str, str], *, delta: bool
) -> Iterator[DataPoint]:
    if not point.bucket_counts:
        return
    labels = _merged(shared, point.attributes)
    bounds = [*point.explicit_bounds, float("inf")]
    if len(bounds) != len(point.bucket_counts):
        yield DataPoint(_key(f"{name}_bucket", labels), 0.0, 0.0, problem=BAD_BUCKETS)
        return
    for bound, count in zip(bounds, accumulate(point.bucket_counts), strict=True):
        key = _key(f"{name}_bucket", {**labels, "le": number_text(bound)})
        yield DataPoint(key, _seconds(point), float(count), delta)


def _summary(name: str, point: "SummaryDataPoint", shared: dict[str, str]) -> Iterator[DataPoint]:
    labels = _merged(shared, point.attributes)
    yield from _totals(name, point, labels, delta=False)
    for at in point.quantile_values:
        key = _key(name, {**labels, "quantile": number_text(at.quantile)})
        yield DataPoint(key, _seconds(point), at.value)


def _totals(
    name: str, point: "_Totals", labels: dict[str, str], *, delta: bool
) -> Iterator[DataPoint]:
    seconds = _seconds(point)
    yield DataPoint(_key(f"{name}_count", labels), seconds, float(point.count), delta)
    if point.DESCRIPTOR.name == "SummaryDataPoint" or point.HasField("sum"):
        yield DataPoint(_key(f"{name}_sum", labels), seconds, point.sum, delta)


def _recorded(data_points: "Iterable[_P]") -> "Iterator[_P]":
    return (point for point in data_points if not point.flags & NO_RECORDED_VALUE)


def _seconds(point: "_ProtoPoint") -> float:
    return round(point.time_unix_nano / _NANOSECONDS, 3)


def _key(name: str, labels: dict[str, str]) -> Labels:
    return tuple(sorted({**labels, NAME: name}.items()))


def _merged(shared: dict[str, str], attributes: "Iterable[KeyValue]") -> dict[str, str]:
    return {**shared, **_labels(attributes)}


def _labels(attributes: "Iterable[KeyValue]") -> dict[str, str]:
    """Return attributes as labels; values of equal label names are joined by `;`."""
    labels = dict[str, str]()
    for attribute in sorted(attributes, key=lambda one: one.key):
        name, value = label_name(attribute.key), _text(attribute.value)
        labels[name] = f"{labels[name]};{value}" if name in labels else value
    return labels


def _text(value: "AnyValue") -> str:
    if value.HasField("string_value"):
        return value.string_value
    found = _plain(value, DEPTH_LIMIT)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _plain(value: "AnyValue", depth: int) -> object:
    """Return a value for JSON; values nested deeper than `depth` are null."""
    match value.WhichOneof("value") if depth else None:
        case "array_value":
            return [_plain(item, depth - 1) for item in value.array_value.values]
        case "kvlist_value":
            return {one.key: _plain(one.value, depth - 1) for one in value.kvlist_value.values}
        case "bytes_value":
            return b64encode(value.bytes_value).decode("ascii")
        case None:
            return "" if depth else None
        case kind:
            return getattr(value, kind)
