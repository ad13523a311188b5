"""Export requests as senders write them."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

NOW = 1_700_000_000.0


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}


def number(value: float, seconds: float = NOW, **labels: Any) -> dict[str, Any]:
    kind = {"asInt": str(value)} if isinstance(value, int) else {"asDouble": value}
    return {**kind, **at(seconds), "attributes": attributes(labels)}


def at(seconds: float) -> dict[str, str]:
    return {"timeUnixNano": str(int(seconds * 1000) * 1_000_000)}


def gauge(name: str, *points: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "gauge": {"dataPoints": list(points)}}


def total(
    name: str, *points: dict[str, Any], delta: bool = False, monotonic: bool = True
) -> dict[str, Any]:
    temporality = 1 if delta else 2
    sum_ = {"aggregationTemporality": temporality, "isMonotonic": monotonic}
    return {"name": name, "sum": {**sum_, "dataPoints": list(points)}}


def histogram(name: str, *points: dict[str, Any], delta: bool = False) -> dict[str, Any]:
    data = {"aggregationTemporality": 1 if delta else 2, "dataPoints": list(points)}
    return {"name": name, "histogram": data}


def document(*metrics: dict[str, Any], **resource: Any) -> dict[str, Any]:
    """An export as JSON; the keywords are the resource's attributes, `__` for a dot."""
    named = {key.replace("__", "."): value for key, value in resource.items()}
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": attributes(named)},
                "scopeMetrics": [{"scope": {"name": "tests"}, "metrics": list(metrics)}],
            }
        ]
    }


def request(*metrics: dict[str, Any], **resource: Any) -> ExportMetricsServiceRequest:
    made = ExportMetricsServiceRequest()
    json_format.ParseDict(document(*metrics, **resource), made)
    return made
