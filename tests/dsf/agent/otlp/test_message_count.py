"""Messages are counted before a hostile export is decoded."""

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from dsf.agent.otlp.receiver import more_messages_than
from tests.dsf.agent.otlp.builders import gauge, number, request

FORM = ExportMetricsServiceRequest.DESCRIPTOR
# resource_metrics, scope_metrics, metric and gauge around many empty data points
NESTED = (0x0A, 0x12, 0x12, 0x2A)


def around(tag: int, body: bytes) -> bytes:
    size, length = len(body), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([tag, *length, size]) + body


def hostile(points: int) -> bytes:
    body = b"\x0a\x00" * points
    for tag in reversed(NESTED):
        body = around(tag, body)
    return body


def test_nested_empty_messages_are_counted() -> None:
    body = hostile(1000)
    assert len(ExportMetricsServiceRequest.FromString(body).resource_metrics) == 1
    assert not more_messages_than(1004, body, FORM)
    assert more_messages_than(1003, body, FORM)


def test_text_and_numbers_are_not_counted() -> None:
    body = request(gauge("util", number(0.5, pod="a" * 300))).SerializeToString()
    # resource metrics, scope metrics, metric, gauge, point, and an attribute with its value
    assert not more_messages_than(12, body, FORM)
    assert more_messages_than(5, body, FORM)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_counted(body: bytes) -> None:
    assert not more_messages_than(100, body, FORM)
