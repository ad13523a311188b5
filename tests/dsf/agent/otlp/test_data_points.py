import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.otlp.data_points import BAD_BUCKETS, EXPONENTIAL, NO_DATA, NO_TEMPORALITY, points
from dsf.agent.wire.series_buffer import number_text
from tests.dsf.agent.otlp.builders import NOW, at, gauge, histogram, number, request, total


def read(*metrics: dict[str, Any], **resource: Any) -> list[tuple[dict[str, str], float]]:
    found = list(points(request(*metrics, **resource)))
    assert all(point.labels == tuple(sorted(point.labels)) for point in found)
    assert not any(point.problem for point in found)
    return [(dict(point.labels), point.value) for point in found]


def problems(*metrics: dict[str, Any]) -> list[str]:
    return [point.problem for point in points(request(*metrics)) if point.problem]


def test_labels_are_those_of_the_resource_and_over_them_of_the_point() -> None:
    (found,) = read(
        gauge("gpu.util", number(0.5, device="0", **{"service.name": "point"})),
        service__name="resource",
        k8s__node__name="n1",
    )
    labels = {"device": "0", "service_name": "point", "k8s_node_name": "n1"}
    assert found == ({"__name__": "gpu_util", **labels}, 0.5)


def test_values_of_every_type_become_text() -> None:
    values = {"a": True, "b": 7, "c": 1.5, "d": ["x", 1], "9e": "é", "f.g": "1", "f-g": "2"}
    ((labels, _),) = read(gauge("m", number(1, **values)))
    assert labels == {
        "__name__": "m",
        "a": "true",
        "b": "7",
        "c": "1.5",
        "d": '["x", 1]',
        "key_9e": "é",
        "f_g": "2;1",
    }


def test_gauges_and_sums() -> None:
    point = number(3, NOW + 0.25)
    for metric, delta in ((gauge("m", point), False), (total("m", point, delta=True), True)):
        (found,) = points(request(metric))
        assert (found.value, found.seconds, found.delta) == (3.0, NOW + 0.25, delta)


def test_a_histogram_is_what_prometheus_users_know() -> None:
    point = {
        **at(NOW),
        "count": "6",
        "sum": 7.5,
        "explicitBounds": [0.5, 1, 2.5],
        "bucketCounts": ["1", "2", "0", "3"],
    }
    assert read(histogram("http.duration", point)) == [
        ({"__name__": "http_duration_count"}, 6),
        ({"__name__": "http_duration_sum"}, 7.5),
        ({"__name__": "http_duration_bucket", "le": "0.5"}, 1),
        ({"__name__": "http_duration_bucket", "le": "1"}, 3),
        ({"__name__": "http_duration_bucket", "le": "2.5"}, 3),
        ({"__name__": "http_duration_bucket", "le": "+Inf"}, 6),
    ]


def test_a_histogram_may_lack_sum_and_buckets() -> None:
    assert read(histogram("h", {**at(NOW), "count": "6"})) == [({"__name__": "h_count"}, 6)]


def test_a_summary_has_quantiles() -> None:
    point = {
        **at(NOW),
        "count": "2",
        "sum": 3,
        "quantileValues": [{"quantile": 0.99, "value": 2}, {"quantile": 1, "value": 2.5}],
    }
    summary = {"name": "s", "summary": {"dataPoints": [point]}}
    assert not any(found.delta for found in points(request(summary)))
    assert read(summary) == [
        ({"__name__": "s_count"}, 2),
        ({"__name__": "s_sum"}, 3),
        ({"__name__": "s", "quantile": "0.99"}, 2),
        ({"__name__": "s", "quantile": "1"}, 2.5),
    ]


def test_an_exponential_histogram_keeps_count_and_sum() -> None:
    data = {
        "aggregationTemporality": 2,
        "dataPoints": [{**at(NOW), "count": "4", "sum": 9, "scale": 3}],
    }
    found = list(points(request({"name": "h", "exponentialHistogram": data})))
    assert [point.value for point in found[:2]] == [4, 9]
    assert [point.problem for point in found[2:]] == [EXPONENTIAL]


def test_a_point_without_a_value_is_passed_over() -> None:
    assert read(gauge("m", {**number(1), "flags": 1}, number(2))) == [({"__name__": "m"}, 2)]


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ({"name": "m", "sum": {"dataPoints": [number(1)]}}, NO_TEMPORALITY),
        ({"name": "m"}, NO_DATA),
        (histogram("m", {"count": "1", "bucketCounts": ["1"], "explicitBounds": [1]}), BAD_BUCKETS),
    ],
)
def test_what_makes_no_number_is_named(metric: dict[str, Any], problem: str) -> None:
    assert problems(metric) == [problem]


@given(st.floats())
def test_numbers_are_read_back_as_they_were(number: float) -> None:
    back = float(number_text(number))
    assert back == number or (math.isnan(back) and math.isnan(number))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1.0, "1"),
        (-0.5, "-0.5"),
        (1e300, "1e+300"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_prometheus_does(number: float, expected: str) -> None:
    assert number_text(number) == expected
