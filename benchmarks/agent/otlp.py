"""The agent's resident memory and its seconds for each export when it receives OTLP.

python -m benchmarks.agent.otlp

The agent is filled up to its bounds. All samples are sent to a scoring API round after round, and
then as many exports come at once as the agent reads at a time. The benchmark fails if the peak is
above the chart's memory limit.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from benchmarks.agent.data_path import kubeconfig, labels
from dsf.agent.otlp.receiver import MAX_BYTES, MAX_CALLS
from dsf.agent.wire.series_buffer import MemoryBounds
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries

SERIES, STEP = MemoryBounds().series, 60
POINTS = MemoryBounds().samples // SERIES
ROUNDS = 3
VALUES = Path("charts/dynamic-scoring-framework/values.yaml")
RECEIVING = re.compile(r'"message": "receiving OTLP", "url": "([^"]+)"')
READY = re.compile(r'"metrics": "([^"]+)"')


class Scorer(BaseHTTPRequestHandler):
    """A scoring API that returns no scores; `rounds` counts its calls."""

    rounds = threading.Semaphore(0)

    def do_POST(self) -> None:
        """Read the series in pieces, so that this process needs little memory."""
        left = int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, 1 << 16)))
        body = b'{"results": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.rounds.release()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def summary(url: str) -> ScorerSummary:
    """Return a scorer whose selector matches every series."""
    return ScorerSummary(
        name="bench",
        score_name="bench",
        source_type="OpenTelemetry",
        source_query="util",
        source_range=SERIES,
        source_step=STEP,
        scoring_endpoint=f"{url}/scoring",
        scoring_interval=1,
        score_destination="None",
        score_dimension_format="${pod}",
    )


def export(seconds: float, name: str = "util", series: int = SERIES) -> bytes:
    """Return an export of one point of each series."""
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    for number in range(series):
        point = metric.gauge.data_points.add(
            time_unix_nano=int(seconds * 1e9), as_double=number / 7
        )
        for key, value in labels(number).items():
            point.attributes.add(key=key).value.string_value = value
    return request.SerializeToString()


@contextmanager
def agent(folder: Path, scorer: str, *arguments: str) -> Iterator[tuple[int, str]]:
    """Run an agent; yield its process id and its log, once it is ready."""
    hub = folder / "kubeconfig"
    hub.write_text(kubeconfig("http://127.0.0.1:1"), encoding="utf-8")
    summaries = folder / "summaries.json"
    summaries.write_text(dump_summaries([summary(scorer)]), encoding="utf-8")
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
            if process.poll() is not None:
                raise SystemExit(log.read_text(encoding="utf-8"))
            time.sleep(0.05)
        with httpx.Client(trust_env=False) as client:
            while not client.get(ready[1].replace("/metrics", "/readyz")).is_success:
                time.sleep(0.05)
        try:
            yield process.pid, log.read_text(encoding="utf-8")
        finally:
            process.terminate()


def resident_mib(pid: int, field: str = "VmRSS") -> float:
    """Return the resident memory of a process, or its peak (`VmHWM`)."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.partition(f"{field}:")[2].split()[0]) / 1024


def limit_mib() -> float:
    """Return the memory limit that the chart gives an agent."""
    values = yaml.safe_load(VALUES.read_text(encoding="utf-8"))
    limit = values["spokeSetting"]["agent"]["resources"]["limits"]["memory"]
    return float(limit.removesuffix("Mi"))


def main() -> None:
    """Print the resident memory of two agents, and the time that an export takes."""
    with (
        tempfile.TemporaryDirectory() as name,
        ThreadingHTTPServer(("127.0.0.1", 0), Scorer) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            measure(Path(name), f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()


def measure(folder: Path, scorer: str) -> None:
    """Print the figures; exit with an error if the peak is above the limit."""
    with agent(folder, scorer) as (pid, _):
        print(f"without --otlp                  {resident_mib(pid):6.1f} MiB")
    with agent(folder, scorer, "--otlp", "--otlp-bind-address=127.0.0.1:0") as (pid, log):
        print(f"with --otlp                     {resident_mib(pid):6.1f} MiB")
        found = RECEIVING.search(log)
        if found is None:
            raise RuntimeError(log)
        took = send(found[1])
        print(f"with {SERIES} series of {POINTS} points {resident_mib(pid):6.1f} MiB")
        for _ in range(ROUNDS):
            Scorer.rounds.acquire()
        print(f"peak, with rounds               {resident_mib(pid, 'VmHWM'):6.1f} MiB")
        flood(found[1])
        peak, limit = resident_mib(pid, "VmHWM"), limit_mib()
        print(f"peak, with {MAX_CALLS} exports at once    {peak:6.1f} MiB")
        print(f"the chart's limit               {limit:6.1f} MiB")
        print(f"export of {SERIES} points         {statistics.median(took):6.3f} s, median")
    if peak > limit:
        sys.exit("an agent needs more memory than the chart gives it")


def flood(url: str) -> None:
    """Send many exports at once, each nearly of the largest size, that no scorer selects."""
    now = time.time()
    body = export(now, "other", int(0.9 * MAX_BYTES / len(export(now)) * SERIES))
    with ThreadPoolExecutor(MAX_CALLS) as senders:
        list(senders.map(lambda _: post(url, body), range(MAX_CALLS)))


def post(url: str, body: bytes) -> None:
    """Send one export. Raises RuntimeError unless the agent accepts all of it."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        answer = client.post(
            f"{url}/v1/metrics", content=body, headers={"Content-Type": "application/x-protobuf"}
        )
    if answer.status_code != httpx.codes.OK or answer.content:
        raise RuntimeError(json.dumps(answer.text))


def send(url: str) -> list[float]:
    """Send all points, one export per step, and return the seconds of each."""
    took = list[float]()
    now = time.time()
    for point in range(POINTS):
        body = export(now - STEP * (POINTS - 1 - point))
        began = time.perf_counter()
        post(url, body)
        took.append(time.perf_counter() - began)
    return took


if __name__ == "__main__":
    main()
