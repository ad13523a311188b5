"""The metrics of writes."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from dsf.kube.apply import WriteLimiter
from dsf.kube.errors import FLOW_SCHEMA_UID, PRIORITY_LEVEL_UID, TooManyRequests
from dsf.runtime.metrics import measure_writes


@pytest.mark.virtual_time
async def test_writes_are_measured_and_a_refusal_names_its_priority_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limiter, registry = WriteLimiter(), CollectorRegistry()
    measure_writes(limiter, registry)

    async def write(error: Exception | None = None) -> None:
        async with limiter.turn():
            await asyncio.sleep(0.25)
            assert registry.get_sample_value("dsf_writes_in_flight") == limiter.in_flight
            if error:
                raise error

    for _ in range(8):
        await write()
    details = {FLOW_SCHEMA_UID: "schema", PRIORITY_LEVEL_UID: "level", "retryAfterSeconds": 1}
    with pytest.raises(TooManyRequests):
        await write(TooManyRequests("busy", details=details))
    labels = {"flow_schema": "schema", "priority_level": "level"}
    assert registry.get_sample_value("dsf_writes_refused_total", labels) == 1
    assert registry.get_sample_value("dsf_write_seconds_count") == 9
    assert registry.get_sample_value("dsf_write_floor_seconds") == pytest.approx(0.25)
    assert registry.get_sample_value("dsf_writes_in_flight_limit") == 1
    assert registry.get_sample_value("dsf_writes_in_flight") == 0
    assert caplog.records[-1].__dict__["priority_level"] == "level"
