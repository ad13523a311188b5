"""What receiving OTLP costs an agent: resident memory, and seconds per export.

python -m benchmarks.agent_otlp
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from benchmarks.agent_data_path import kubeconfig, labels
from dsf.api.summary import ScorerSummary, dump_summaries

SERIES, POINTS, STEP = 10_000, 60, 60
RECEIVING = re.compile(r'"message": "receiving OTLP", "url": "([^"]+)"')
READY = re.compile(r'"metrics": "([^"]+)"')


def summary() -> ScorerSummary:
    """Return a scorer that wants all of it, and whose API nobody serves."""
    return ScorerSummary(
        name="bench",
        score_name="bench",
        source_type="OpenTelemetry",
        source_query="util",
        source_range=SERIES,
        source_step=STEP,
        scoring_endpoint="http://127.0.0.1:1/scoring",
        scoring_interval=3600,
        score_dimension_format="${pod}",
    )


def export(seconds: float) -> bytes:
    """Return an export of one point of each series."""
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="util")
    for number in range(SERIES):
        point = metric.gauge.data_points.add(
            time_unix_nano=int(seconds * 1e9), as_double=number / 7
        )
        for key, value in labels(number).items():
            point.attributes.add(key=key).value.string_value = value
    return request.SerializeToString()


@contextmanager
def agent(folder: Path, *arguments: str) -> Iterator[tuple[int, str]]:
    """Run an agent and yield its process id and, once it is ready, what it has said."""
    hub = folder / "kubeconfig"
    hub.write_text(kubeconfig("http://127.0.0.1:1"), encoding="utf-8")
    summaries = folder / "summaries.json"
    summaries.write_text(dump_summaries([summary()]), encoding="utf-8")
    command = [sys.executable, "-m", "dsf", "agent", "--cluster-name=cluster1"]
    command += [f"--hub-kubeconfig={hub}", f"--summaries-file={summaries}", "--log-format=json"]
    log = folder / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*command, "--metrics-bind-address=127.0.0.1:0", *arguments], stderr=stderr
        ) as process,
    ):
        while not (ready := READY.search(log.read_text(encoding="utf-8"))):
            time.sleep(0.05)
        with httpx.Client(trust_env=False) as client:
            while not client.get(ready[1].replace("/metrics", "/readyz")).is_success:
                time.sleep(0.05)
        try:
            yield process.pid, log.read_text(encoding="utf-8")
        finally:
            process.terminate()


def resident_mib(pid: int) -> float:
    """Return what a process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def main() -> None:
    """Print the resident memory of three agents, and the time that an export takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with agent(folder) as (pid, _):
            print(f"without --otlp                  {resident_mib(pid):6.1f} MiB")
        with agent(folder, "--otlp", "--otlp-bind-address=127.0.0.1:0") as (pid, log):
            print(f"with --otlp                     {resident_mib(pid):6.1f} MiB")
            found = RECEIVING.search(log)
            if found is None:
                raise RuntimeError(log)
            took = send(found[1])
            print(f"with {SERIES} series of {POINTS} points {resident_mib(pid):6.1f} MiB")
            print(f"export of {SERIES} points         {statistics.median(took):6.3f} s, median")


def send(url: str) -> list[float]:
    """Send all points, one export per step, and return the seconds of each."""
    took = list[float]()
    now = time.time()
    with httpx.Client(trust_env=False, timeout=60) as client:
        for point in range(POINTS):
            body = export(now - STEP * (POINTS - 1 - point))
            began = time.perf_counter()
            answer = client.post(
                f"{url}/v1/metrics",
                content=body,
                headers={"Content-Type": "application/x-protobuf"},
            )
            took.append(time.perf_counter() - began)
            if answer.status_code != httpx.codes.OK or answer.content:
                raise RuntimeError(json.dumps(answer.text))
    return took


if __name__ == "__main__":
    main()
