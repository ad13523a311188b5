"""The queries of the samples, on a Prometheus that scrapes what vLLM and the exporters expose."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
import yaml

from dsf.cli.root import root
from optimizer.follow.overview.capacity import capacities
from sample_scorers.ai_workload.app import create_app as ai_workload_app
from sample_scorers.scoring_service.testing import served
from tests.command_line import invoked
from tests.eventually import until
from tests.optimizer.build import NOW
from tests.optimizer.follow.overview.test_capacity import group, idle_score, inventory
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_prometheus
from tests.sample_scorers.applications import APPS, NO_MODEL

TOKENS_PER_SECOND = 1000
GPU = 'gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA H100",Hostname="gpu-node-1"'
MIG = ('GPU_I_PROFILE="3g.48gb",GPU_I_ID="1"', 'GPU_I_PROFILE="3g.48gb",GPU_I_ID="2"')
POD = 'container="vllm",namespace="inference",pod="app01-6bd9f7c84-x2kzm"'
EXPOSED = {
    "/vllm": """\
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} 3
""",
    "/dcgm": f"""\
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{{{GPU},{MIG[0]},{POD}}}}} 0.9
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{{{GPU},{MIG[1]}}}}} 0
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{{{{{GPU},{MIG[0]},{POD}}}}} 330
DCGM_FI_DEV_POWER_USAGE{{{{{GPU},{MIG[1]}}}}} 330
""",
    "/opencost": """\
# TYPE node_gpu_hourly_cost gauge
node_gpu_hourly_cost{{instance="gpu-node-1",node="gpu-node-1",provider_id="metal"}} 1
# TYPE energy_price_per_kwh gauge
energy_price_per_kwh 0.2
""",
    "/probe": """\
# TYPE probe_duration_seconds gauge
probe_duration_seconds 0.05
# TYPE probe_success gauge
probe_success 1
""",
}
"""Expositions by path; issue 257 of dcgm-exporter shows that each instance has the GPU's power."""
TARGETS = {
    "/vllm": {"namespace": "inference", "pod": "app01-6bd9f7c84-x2kzm"},
    "/dcgm": {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-x2kzm"},
    "/opencost": {"namespace": "opencost", "pod": "opencost-x2kzm"},
    "/probe": {"app": "app01"},
}
"""Labels that Prometheus gives the target, as it does in Kubernetes."""


class Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = EXPOSED[self.path].format(tokens=TOKENS_PER_SECOND * time.monotonic()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def prometheus(processes: Processes, ports: Ports) -> Iterator[str]:
    with ThreadingHTTPServer((LOOPBACK, 0), Exporter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"{LOOPBACK}:{server.server_port}"
        scraped = [
            {
                "job_name": path[1:],
                "metrics_path": path,
                "static_configs": [{"targets": [address], "labels": labels}],
            }
            for path, labels in TARGETS.items()
        ]
        url = start_prometheus(processes, ports, [address], scrape_configs=scraped)
        until("a rate of each counter", lambda: rated(url))
        yield url
        server.shutdown()


def rated(url: str) -> bool:
    query = "rate(vllm:generation_tokens_total[2m]) > 0 and on() count(probe_success) and on() "
    query += "count(DCGM_FI_PROF_GR_ENGINE_ACTIVE) == 2 and on() count(energy_price_per_kwh)"
    found = httpx.get(f"{url}/api/v1/query", params={"query": query}, trust_env=False)
    return bool(found.json()["data"]["result"])


def published(config_url: str, prometheus: str, dimensions: str) -> dict[str, int]:
    """Return the entries that an agent would publish."""
    asked = ("--prometheus", prometheus, "--dimension-format", dimensions, "-o", "yaml")
    code, out, err = invoked(root, "scorer", "try", config_url, *asked)
    assert code == 0, out + err
    return {each["name"]: each["value"] for each in yaml.safe_load(out)["status"]["scores"]}


def test_tokens_per_second_are_those_of_the_device(prometheus: str) -> None:
    with served(ai_workload_app()) as url:
        found = published(f"{url}/performance/config", prometheus, "${app};${device}")
    assert found.keys() == {"app01;3g.48gb"}
    assert found["app01;3g.48gb"] == pytest.approx(100 * TOKENS_PER_SECOND / 2000, rel=0.3)


def test_watts_are_shared_between_the_instances_of_a_gpu(prometheus: str) -> None:
    """Of 330 W, 1.0 of 1.1 are those of the busy instance: 300 W of at most 700."""
    with served(ai_workload_app()) as url:
        found = published(f"{url}/power/config", prometheus, "${app};${device}")
    assert found == {"app01;3g.48gb": 57}


def test_tokens_for_money_are_those_of_the_share_of_the_gpu(prometheus: str) -> None:
    """3.6 million tokens in an hour, for half of the GPU (0.5) and 300 Wh at 0.2: 6.4 for 1."""
    with served(ai_workload_app()) as url:
        found = published(f"{url}/efficiency/config", prometheus, "${app};${device}")
    assert found.keys() == {"app01;3g.48gb"}
    assert found["app01;3g.48gb"] == pytest.approx(64, rel=0.3)


def test_the_idle_share_of_the_devices_that_pods_have(prometheus: str) -> None:
    """The instance of the pod is idle for a tenth of the time; the other one is nobody's."""
    with served(ai_workload_app()) as url:
        found = published(f"{url}/idle/config", prometheus, "${device}")
    assert found in ({"3g.48gb": 9}, {"3g.48gb": 10})  # scores are rounded down, and 1 - 0.9 < 0.1
    mig = "nvidia.com/mig-3g.48gb"
    nodes = inventory("a", group({mig: "2"}, {mig: "1"}))
    share = idle_score("a", **{"3g_48gb": found["3g.48gb"]})
    (shown,) = capacities(["a"], [nodes], [share], NOW)["a"].resources
    assert shown.idle == pytest.approx(0.24 * found["3g.48gb"], abs=0.05)


def test_the_latency_of_probes(prometheus: str) -> None:
    with served(APPS["latency"](NO_MODEL)) as url:
        found = published(f"{url}/config", prometheus, "${app}")
    assert found == {"app01": 95, "cluster": 95}
