"""Start the real servers; each scrapes every second."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.real_hub.harness.health import wait_healthy
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_hub.harness.prometheus import configured
from tests.real_sources.programs import NODE_EXPORTER, PROMETHEUS, VICTORIA_METRICS

_NUMBERS = itertools.count()


def start_node_exporter(processes: Processes, ports: Ports) -> str:
    """Return the host and port of a node exporter."""
    address = f"{LOOPBACK}:{ports.free()}"
    program = NODE_EXPORTER.find()
    processes.start("node-exporter", [program, f"--web.listen-address={address}"])
    wait_healthy(processes, "node-exporter", f"http://{address}/metrics")
    return address


def start_prometheus(
    processes: Processes,
    ports: Ports,
    targets: Sequence[str],
    *,
    web_config: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    """Return the URL of a Prometheus; `more` goes into its configuration."""
    name, directory = _place(processes, "prometheus")
    config = _written(directory, "prometheus.yml", {**configured({"real": targets}, "1s"), **more})
    web = _written(directory, "web.yml", web_config or {})
    address = f"{LOOPBACK}:{ports.free()}"
    processes.start(
        name,
        [
            PROMETHEUS.find(),
            f"--config.file={config}",
            f"--web.config.file={web}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={address}",
        ],
    )
    if web_config:
        return f"https://{address.replace(LOOPBACK, 'localhost')}"
    wait_healthy(processes, name, f"http://{address}/-/ready")
    return f"http://{address}"


def start_victoria_metrics(processes: Processes, ports: Ports, targets: Sequence[str]) -> str:
    """Return the URL of a VictoriaMetrics without the usual delay of new samples."""
    name, directory = _place(processes, "victoria-metrics")
    config = _written(directory, "scrape.yml", dict(configured({"real": targets}, "1s")))
    address = f"{LOOPBACK}:{ports.free()}"
    processes.start(
        name,
        [
            VICTORIA_METRICS.find(),
            f"-storageDataPath={directory / 'data'}",
            f"-httpListenAddr={address}",
            f"-promscrape.config={config}",
            "-promscrape.config.strictParse=false",
            "-search.latencyOffset=0s",
        ],
    )
    wait_healthy(processes, name, f"http://{address}/health")
    return f"http://{address}"


def _place(processes: Processes, program: str) -> tuple[str, Path]:
    name = f"{program}-{next(_NUMBERS)}"
    directory = processes.directory / name
    directory.mkdir()
    return name, directory


def _written(directory: Path, name: str, document: dict[str, Any]) -> Path:
    path = directory / name
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
