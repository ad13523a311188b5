"""Receives OTLP over HTTP, and counts it: `POST /v1/metrics`, protobuf or JSON, plain or gzip.

Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache

from aiohttp import web
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dsf.agent.fetch.bounded_body import TooLarge, UnknownEncoding, UnusableBody, read_body
from dsf.agent.otlp.received_metrics import ReceivedMetrics
from dsf.runtime.endpoints import serving

log = logging.getLogger(__name__)

MAX_BYTES = 4 << 20
"""Bytes of a body after decompression."""

MAX_JSON_NODES = 150_000
"""Objects and lists of a JSON body: each takes a hundred times its bytes while it is decoded."""

MAX_MESSAGES = 300_000
"""Messages of a protobuf body: each takes up to 140 bytes decoded, so all take at most 40 MiB."""

MAX_CALLS = 4
"""Bodies that are read at the same time."""

BODY_SECONDS = 30.0
"""Time for a body to arrive: a slow sender must not occupy one of `MAX_CALLS` for longer."""

RETRY_SECONDS = 5
"""The Retry-After of an answer that asks the sender to repeat the export."""

PROTOBUF, JSON = "application/x-protobuf", "application/json"

_STATUS = {TooLarge: 413, UnknownEncoding: 415}
_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED, _UNAVAILABLE = 3, 8, 14


class ExportRefused(Exception):
    """An export that is refused; `code` is the gRPC code of its `google.rpc.Status`."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@asynccontextmanager
async def receiving(bind: str, memory: ReceivedMetrics) -> AsyncIterator[str]:
    """Receive on `host:port` while the context lasts, and yield the base URL.

    A body has at most `MAX_BYTES` after decompression. At most `MAX_CALLS` bodies are read at a
    time, and one is decoded, so that senders can't exhaust the agent's memory; further senders are
    asked to retry. Raises CannotListen.
    """
    receiver = _Receiver(memory)
    app = web.Application()
    app.router.add_post("/v1/metrics", receiver.handle)
    # aiohttp inflates chunks without a limit; read_body() has one.
    async with serving(app, bind, flag="--otlp-bind-address", auto_decompress=False) as url:
        log.info("receiving OTLP", extra={"url": url})
        yield url


class _Receiver:
    def __init__(self, memory: ReceivedMetrics) -> None:
        self._memory = memory
        self._calls = 0
        self._decoding = asyncio.Lock()

    async def handle(self, request: web.Request) -> web.Response:
        kind = JSON if request.content_type == JSON else PROTOBUF
        self._calls += 1
        try:
            body = await self._read(request)
            async with self._decoding:
                refused = await self._add(body, request.content_type)
        except ExportRefused as refusal:
            return _refusal(refusal, kind)
        finally:
            self._calls -= 1
        return _accepted(refused, kind)

    async def _add(self, body: bytearray, kind: str) -> Counter[str]:
        # Decoding JSON takes long enough to delay rounds.
        export = await asyncio.to_thread(_decoded, bytes(body), kind)
        refused = Counter[str]()
        for part in self._memory.adding(export):
            refused += part
            await asyncio.sleep(0)
        return refused

    async def _read(self, request: web.Request) -> bytearray:
        if request.content_type not in {PROTOBUF, JSON}:
            message = f"the content type has to be {PROTOBUF} or {JSON}"
            raise ExportRefused(415, _INVALID_ARGUMENT, message)
        if not self._memory.configured:
            raise ExportRefused(503, _UNAVAILABLE, "the agent does not know its scorers yet")
        if self._calls > MAX_CALLS:
            raise ExportRefused(
                429, _RESOURCE_EXHAUSTED, f"{MAX_CALLS} exports are being read already"
            )
        return await _body(request)


async def _body(request: web.Request) -> bytearray:
    encoding = request.headers.get("Content-Encoding", "")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await read_body(request.content.iter_any(), encoding, MAX_BYTES)
    except TimeoutError:
        message = f"the body was not complete after {BODY_SECONDS:g} s"
        raise ExportRefused(408, _UNAVAILABLE, message) from None
    except UnusableBody as error:
        status = _STATUS.get(type(error), 400)
        raise ExportRefused(status, _INVALID_ARGUMENT, f"the body {error}") from error


def _decoded(body: bytes, kind: str) -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    if kind == JSON and body.count(b"{") + body.count(b"[") > MAX_JSON_NODES:
        message = f"the body has more than {MAX_JSON_NODES} JSON objects and lists: send less"
        raise ExportRefused(413, _INVALID_ARGUMENT, message)
    if kind != JSON and more_messages_than(MAX_MESSAGES, body, request.DESCRIPTOR):
        message = f"the body has more than {MAX_MESSAGES} protobuf messages: send smaller batches"
        raise ExportRefused(413, _INVALID_ARGUMENT, message)
    try:
        if kind == JSON:
            json_format.Parse(body, request, ignore_unknown_fields=True)
        else:
            request.ParseFromString(body)
    except (DecodeError, json_format.ParseError, ValueError, RecursionError) as error:
        message = "the body is not an ExportMetricsServiceRequest"
        raise ExportRefused(400, _INVALID_ARGUMENT, message) from error
    return request


def _accepted(refused: Mapping[str, int], kind: str) -> web.Response:
    response = ExportMetricsServiceResponse()
    if refused:
        response.partial_success.rejected_data_points = sum(refused.values())
        reasons = "; ".join(f"{count} {reason}" for reason, count in sorted(refused.items()))
        response.partial_success.error_message = reasons
        log.warning("data points refused", extra={"reasons": reasons})
    if kind == JSON:
        return web.Response(text=json_format.MessageToJson(response), content_type=JSON)
    return web.Response(body=response.SerializeToString(), content_type=PROTOBUF)


def _refusal(refusal: ExportRefused, kind: str) -> web.Response:
    """Return the error answer: a `google.rpc.Status` in the encoding of the request."""
    retry = {"Retry-After": str(RETRY_SECONDS)} if refusal.status in {429, 503} else {}
    if kind == JSON:
        body = json.dumps({"code": refusal.code, "message": str(refusal)}).encode()
    else:
        body = _status(refusal.code, str(refusal).encode())
    return web.Response(body=body, status=refusal.status, content_type=kind, headers=retry)


def _status(code: int, message: bytes) -> bytes:
    """Return a `google.rpc.Status` as protobuf; the message must be shorter than 16 KiB."""
    high, low = divmod(len(message), 1 << 7)
    length = bytes([low | 1 << 7, high]) if high else bytes([low])
    return b"\x08%c\x12%b%b" % (code, length, message)


MAX_DEPTH = 101
"""Messages within each other, the outermost included: protobuf's parser refuses more."""

_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_CONTINUES = 0x80


def more_messages_than(limit: int, encoded: bytes, form: Descriptor) -> bool:
    """Tell whether an encoded message of a form contains more than `limit` messages.

    Takes time for at most `limit` messages, and little memory. Stops at data that no parser
    accepts.
    """
    count, nested = 0, [_messages(encoded, 0, len(encoded), _fields(form))]
    try:
        while nested and len(nested) <= MAX_DEPTH:
            inner = next(nested[-1], None)
            if inner is None:
                nested.pop()
                continue
            count += 1
            if count > limit:
                return True
            start, end, current = inner
            nested.append(_messages(encoded, start, end, _fields(current)))
    except IndexError:
        return False
    return False


@cache
def _fields(form: Descriptor) -> Mapping[int, Descriptor]:
    """Return the forms of a form's fields that are messages, by field number."""
    return {
        field.number: field.message_type for field in form.fields if field.message_type is not None
    }


def _messages(
    encoded: bytes, at: int, end: int, fields: Mapping[int, Descriptor]
) -> Iterator[tuple[int, int, Descriptor]]:
    """Yield start, end and form of each message that is a field of the message at `at`."""
    while at < end:
        tag, at = _varint(encoded, at)
        kind = tag & 7
        if kind == _LENGTH:
            size, at = _varint(encoded, at)
            if tag >> 3 in fields:
                yield at, min(at + size, end), fields[tag >> 3]
            at += size
        elif kind == _VARINT:
            _, at = _varint(encoded, at)
        elif kind == _FIXED_64:
            at += 8
        elif kind == _FIXED_32:
            at += 4


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    """Return the number at an index, and the index after it. Raises IndexError at the end."""
    value, shift = encoded[at], 7
    at += 1
    if value < _CONTINUES:
        return value, at
    value &= 0x7F
    while True:
        byte = encoded[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            return value, at
        shift += 7


class OtlpMetrics(Collector):
    """Reads the counts of received metrics at each scrape."""

    def __init__(self, memory: ReceivedMetrics) -> None:
        self._memory = memory

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families."""
        points = CounterMetricFamily(
            "dynamic_scoring_otlp_points",
            "With --otlp: points that a query selects: taken, or why they were refused.",
            labels=["outcome"],
        )
        for outcome, count in sorted(self._memory.outcomes.items()):
            points.add_metric([outcome], count)
        yield points
        series, samples = self._memory.held
        yield GaugeMetricFamily(
            "dynamic_scoring_otlp_series", "With --otlp: series in memory.", value=series
        )
        yield GaugeMetricFamily(
            "dynamic_scoring_otlp_samples", "With --otlp: samples in memory.", value=samples
        )
