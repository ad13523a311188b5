"""A real OpenTelemetry Collector between a program and the agent, where one is installed or built.

Building takes minutes and 50 MB, so the suite does not do it:

    cd tests/real_sources/collector
    go build -o ~/.cache/dynamic-scoring-framework/sources/otelcol .
"""

import asyncio
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.http import Compression

from dsf.agent.otlp.received_metrics import ReceivedMetrics
from dsf.agent.otlp.receiver import receiving
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.api.scoring.scorer_summary import dump_summaries
from tests.dsf.agent.builders import sent
from tests.dsf.agent.otlp.test_received_metrics import wanting
from tests.dsf.agent.otlp.test_receiver import _export
from tests.eventually import eventually, until
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.programs import cache

BUILT = cache(os.environ) / "otelcol"
COLLECTOR = shutil.which("otelcol") or (str(BUILT) if BUILT.exists() else None)

pytestmark = pytest.mark.skipif(
    COLLECTOR is None,
    reason="no otelcol on PATH; to build one: tests/real_sources/test_collector.py",
)


@pytest.fixture
async def memory() -> ReceivedMetrics:
    return ReceivedMetrics(time.time)


@pytest.fixture
async def collector(
    memory: ReceivedMetrics, processes: Processes, ports: Ports, tmp_path: Path
) -> AsyncIterator[str]:
    """The endpoint of a collector that forwards the received metrics."""
    port = ports.free()
    async with receiving(f"{LOOPBACK}:0", memory) as url:
        config = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"{LOOPBACK}:{port}"}}}},
            "exporters": {
                "otlphttp": {"endpoint": url, "retry_on_failure": {"initial_interval": "100ms"}}
            },
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["otlphttp"]}},
            },
        }
        file = tmp_path / "collector.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        processes.start("collector", [str(COLLECTOR), "--config", f"file:{file}"])
        try:
            await asyncio.to_thread(listening, processes, port)
            yield f"http://{LOOPBACK}:{port}/v1/metrics"
        finally:
            await asyncio.to_thread(processes.stop, "collector")


def listening(processes: Processes, port: int) -> None:
    def connects() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, port)) == 0

    until("the collector to listen", connects, check=lambda: processes.check("collector"))


async def test_what_a_collector_sends_on_arrives_even_if_the_agent_was_not_ready(
    collector: str, memory: ReceivedMetrics
) -> None:
    scorer = wanting("requests;duration_bucket", source_range=0)
    await asyncio.to_thread(_export, collector, Compression.Gzip, False)
    memory.configure(dump_summaries([scorer]))

    async def arrived() -> Any:
        found = memory.fetch(scorer, time.time())
        return sent(found) if isinstance(found, FetchedSeries) else None

    got = {
        (one["metric"]["__name__"], one["metric"].get("le")): one["values"][0][1]
        for one in await eventually(arrived)
    }
    assert got == {
        ("requests", None): "7",
        ("duration_bucket", "1"): "1",
        ("duration_bucket", "2"): "1",
        ("duration_bucket", "+Inf"): "2",
    }
