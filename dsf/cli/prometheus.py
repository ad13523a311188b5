"""Asks the Prometheus that a user names for a range of a query: for pictures in a terminal."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx

from dsf.api.json_input import value_count
from dsf.api.untrusted_text import UntrustedText
from dsf.kube.redaction import Spellings, redact, sent_credentials

SECONDS = 10.0
"""Time limit of a query."""
MAX_BYTES = 16 * 1024 * 1024
"""Bytes of an answer that are read; a range of 60 points has about 1,500 per series."""
MAX_VALUES = 2_500_000
"""JSON values of an answer: 180 for each series of a range of 60 points."""


class PastValues(NamedTuple):
    """A series: its labels, its values from the oldest to the newest, and their Unix times."""

    labels: Mapping[str, str]
    values: tuple[float, ...]
    times: tuple[float, ...] = ()


class PrometheusRefused(Exception):
    """A Prometheus gave no usable answer; the message says where and why."""


async def reachable(url: str) -> str:
    """Return why a Prometheus does not answer a query; empty if it does."""
    try:
        await _asked(url, "query", {"query": "vector(1)"})
    except PrometheusRefused as error:
        return str(error)
    return ""


async def past_values(
    url: str, query: str, *, start: float, end: float, step: float
) -> list[PastValues]:
    """Return the series of a query between two Unix times; raises PrometheusRefused.

    A server whose URL has a password is not quoted, and its series may not spell the password.
    """
    params = {"query": query, "start": f"{start}", "end": f"{end}", "step": f"{step}"}
    return series_of(await _asked(url, "query_range", params), redact(url))


def series_of(data: Any, where: str) -> list[PastValues]:
    """Return the series of the `data` of an answer; raises PrometheusRefused."""
    try:
        return [
            PastValues(
                {str(name): str(text) for name, text in item["metric"].items()},
                tuple(float(value) for _, value in item["values"]),
                tuple(float(time) for time, _ in item["values"]),
            )
            for item in data["result"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PrometheusRefused(f"{where}: the answer is not one of a Prometheus") from error


async def _asked(url: str, call: str, params: Mapping[str, str]) -> Any:
    address = f"{url.rstrip('/')}/api/v1/{call}"
    where, secrets = redact(address), sent_credentials(url)
    try:
        async with (
            httpx.AsyncClient(timeout=SECONDS) as client,
            client.stream("GET", address, params=params) as response,
        ):
            body = await _read(response, where)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        said = "" if secrets else str(error) and UntrustedText(error)
        raise PrometheusRefused(f"{where}: {said or type(error).__name__}") from error
    if Spellings(secrets).found_in_body(body):
        raise PrometheusRefused(f"{where}: the answer repeats the password that was sent")
    return _data(body, where, response.status_code, quoted=not secrets)


async def _read(response: httpx.Response, where: str) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_BYTES:
            raise PrometheusRefused(f"{where}: the answer has more than {MAX_BYTES} bytes")
    return bytes(body)


def _data(body: bytes, where: str, status: int, *, quoted: bool) -> Any:
    if value_count(body) > MAX_VALUES:
        raise PrometheusRefused(f"{where}: the answer has more than {MAX_VALUES} values")
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or answer.get("status") != "success":
        said = f"{UntrustedText(answer.get('error'))}" if isinstance(answer, dict) else '"no JSON"'
        raise PrometheusRefused(f"{where}: HTTP {status}" + (f": {said}" if quoted else ""))
    return answer.get("data")
