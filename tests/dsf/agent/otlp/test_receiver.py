"""The receiver over a real socket, also with the OpenTelemetry SDK as the sender."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from dsf.agent.otlp.received_metrics import ReceivedMetrics
from dsf.agent.otlp.receiver import (
    JSON,
    MAX_BYTES,
    MAX_CALLS,
    MAX_JSON_NODES,
    MAX_MESSAGES,
    PROTOBUF,
    more_messages_than,
    receiving,
)
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.api.scoring.scorer_summary import dump_summaries
from dsf.runtime.endpoints import CannotListen
from tests.dsf.agent.builders import sent
from tests.dsf.agent.otlp.builders import NOW, document, gauge, number, request
from tests.dsf.agent.otlp.test_received_metrics import wanting
from tests.eventually import eventually

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


ONE = wanting("util")
EXPORT = (gauge("util", number(0.5, pod="a")),)


@pytest.fixture
async def memory() -> ReceivedMetrics:
    made = ReceivedMetrics(lambda: NOW)
    made.configure(dump_summaries([ONE]))
    return made


@pytest.fixture
async def url(memory: ReceivedMetrics) -> AsyncIterator[str]:
    async with receiving("127.0.0.1:0", memory) as found:
        yield found


async def post(url: str, body: bytes, kind: str = PROTOBUF, **headers: str) -> httpx.Response:
    named = {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        return await client.post(f"{url}/v1/metrics", content=body, headers=named)


def kept(memory: ReceivedMetrics) -> Any:
    found = memory.fetch(ONE, NOW)
    return [s["values"] for s in sent(found)] if isinstance(found, FetchedSeries) else []


async def test_protobuf(url: str, memory: ReceivedMetrics) -> None:
    answer = await post(url, request(*EXPORT).SerializeToString())
    assert (answer.status_code, answer.headers["content-type"]) == (200, PROTOBUF)
    assert not ExportMetricsServiceResponse.FromString(answer.content).HasField("partial_success")
    assert kept(memory) == [[[NOW, "0.5"]]]


async def test_json(url: str, memory: ReceivedMetrics) -> None:
    body = json.dumps({**document(*EXPORT), "new": {"in": "a later version"}}).encode()
    answer = await post(url, body, "application/json; charset=utf-8")
    assert (answer.status_code, answer.json()) == (200, {})
    assert kept(memory) == [[[NOW, "0.5"]]]


async def test_gzip(url: str, memory: ReceivedMetrics) -> None:
    body = gzip.compress(request(*EXPORT).SerializeToString())
    assert (await post(url, body, Content_Encoding="gzip")).status_code == 200
    assert kept(memory) == [[[NOW, "0.5"]]]


async def test_nothing_is_fine(url: str) -> None:
    assert (await post(url, b"")).status_code == 200


async def test_a_partial_success_tells_how_many_points_were_refused(url: str) -> None:
    metrics = (*EXPORT, gauge("util", number(1, NOW + 1000, pod="b")), {"name": "util"})
    answer = await post(url, json.dumps(document(*metrics)).encode(), JSON)
    partial = answer.json()["partialSuccess"]
    assert partial["rejectedDataPoints"] == "2"
    assert "ahead of the agent's clock" in partial["errorMessage"]


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status"),
    [
        (b"\xff\xff\xff", PROTOBUF, {}, 400),
        (b"{", JSON, {}, 400),
        (b"\xff", JSON, {}, 400),
        (b'{"resourceMetrics": 5}', JSON, {}, 400),
        (b"[" * 100_000, JSON, {}, 400),
        (b"x", "text/plain", {}, 415),
        (b"x", PROTOBUF, {"Content_Encoding": "gzip"}, 400),
        (b"x", PROTOBUF, {"Content_Encoding": "zstd"}, 415),
        (bytes(MAX_BYTES + 1), PROTOBUF, {}, 413),
        (b'{"resourceMetrics": [%b]}' % b",".join([b"{}"] * MAX_JSON_NODES), JSON, {}, 413),
        (hostile(MAX_MESSAGES), PROTOBUF, {}, 413),
        (gzip.compress(bytes(64 << 20)), PROTOBUF, {"Content_Encoding": "gzip"}, 413),
    ],
)
async def test_what_cannot_be_taken_is_refused_for_good(
    url: str, body: bytes, kind: str, headers: dict[str, str], status: int
) -> None:
    answer = await post(url, body, kind, **headers)
    assert answer.status_code == status
    assert "retry-after" not in answer.headers
    if kind == JSON:
        assert set(answer.json()) == {"code", "message"}
    else:
        assert answer.content.startswith(b"\x08")
        assert b"the " in answer.content


async def test_before_its_scorers_are_known_the_sender_is_told_to_come_again() -> None:
    async with receiving("127.0.0.1:0", ReceivedMetrics(lambda: NOW)) as url:
        answer = await post(url, request(*EXPORT).SerializeToString())
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


async def test_too_many_exports_at_a_time_and_senders_that_break_off(url: str) -> None:
    head = f"POST /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\n"
    address = url.removeprefix("http://").split(":")
    senders = [await asyncio.open_connection(*address) for _ in range(MAX_CALLS + 1)]
    for _, writer in senders:
        writer.write(f"{head}Content-Length: 100\r\n\r\nx".encode())
    answers = [asyncio.create_task(reader.readuntil(b"\r\n\r\n")) for reader, _ in senders]
    (first,), waiting = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
    assert first.result().startswith(b"HTTP/1.1 429 ")
    assert b"\r\nRetry-After: 5\r\n" in first.result()
    for answer in waiting:
        answer.cancel()
    for _, writer in senders:
        writer.close()

    async def taken() -> bool:
        return (await post(url, b"")).status_code == 200

    await eventually(taken)


async def test_other_paths_and_methods(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{url}/v1/metrics")).status_code == 405
        assert (await client.post(f"{url}/v1/traces")).status_code == 404


async def test_an_address_in_use_is_named_with_its_flag(url: str, memory: ReceivedMetrics) -> None:
    with pytest.raises(CannotListen, match="--otlp-bind-address"):
        async with receiving(url.removeprefix("http://"), memory):
            raise AssertionError("never reached")


@pytest.mark.parametrize("compression", [Compression.Gzip, Compression.NoCompression])
@pytest.mark.parametrize("delta", [True, False])
async def test_the_sdks_own_exporter(compression: Compression, *, delta: bool) -> None:
    names = "requests;util;duration_bucket;duration_count;duration_sum"
    one = wanting(f'{names};open{{service.name="shop"}}', source_range=0)
    memory = ReceivedMetrics(time.time)
    memory.configure(dump_summaries([one]))
    async with receiving("127.0.0.1:0", memory) as url:
        await asyncio.to_thread(_export, f"{url}/v1/metrics", compression, delta)
    found = memory.fetch(one, time.time())
    assert isinstance(found, FetchedSeries)
    got = {
        (s["metric"]["__name__"], s["metric"].get("le"), s["metric"]["pod"]): s["values"][-1][1]
        for s in sent(found)
    }
    assert got == {
        ("requests", None, "a"): "7",
        ("util", None, "a"): "0.25",
        ("open", None, "a"): "3",
        ("duration_bucket", "1", "a"): "1",
        ("duration_bucket", "2", "a"): "1",
        ("duration_bucket", "+Inf", "a"): "2",
        ("duration_count", None, "a"): "2",
        ("duration_sum", None, "a"): "3.5",
    }
    assert sent(found)[0]["metric"]["service_name"] == "shop"


def _export(endpoint: str, compression: Compression, delta: bool) -> None:
    temporality = AggregationTemporality.DELTA if delta else AggregationTemporality.CUMULATIVE
    exporter = OTLPMetricExporter(
        endpoint=endpoint,
        compression=compression,
        preferred_temporality=dict.fromkeys((Histogram,), temporality),
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))
    provider = MeterProvider([reader], Resource.create({"service.name": "shop"}))
    meter = provider.get_meter("tests")
    meter.create_counter("requests").add(7, {"pod": "a"})
    meter.create_gauge("util").set(0.25, {"pod": "a"})
    meter.create_up_down_counter("open").add(3, {"pod": "a"})
    durations = meter.create_histogram("duration", explicit_bucket_boundaries_advisory=[1, 2])
    for seconds in (0.5, 3.0):
        durations.record(seconds, {"pod": "a"})
    provider.force_flush()
    provider.shutdown()


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
