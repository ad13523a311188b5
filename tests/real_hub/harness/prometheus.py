"""A real Prometheus, where one is installed (Debian package ``prometheus``)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import yaml

from .health import wait_healthy
from .ports import LOOPBACK, Ports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .processes import Processes


class NoPrometheus(Exception):
    """There is no ``prometheus`` on PATH; the message says how to get it."""


def start_prometheus(
    processes: Processes, ports: Ports, jobs: Mapping[str, Sequence[str]], *, interval: str = "1s"
) -> str:
    """Start Prometheus and return its URL once it is ready.

    ``jobs`` maps a job's name to the ``host:port`` addresses whose ``/metrics`` it scrapes. Raises
    NoPrometheus.
    """
    program = shutil.which("prometheus")
    if program is None:
        raise NoPrometheus("no prometheus on PATH; on Debian: apt install prometheus")
    directory = processes.directory / "prometheus"
    directory.mkdir()
    configuration = directory / "prometheus.yml"
    configuration.write_text(yaml.safe_dump(configured(jobs, interval)))
    url = f"http://{LOOPBACK}:{ports.free()}"
    processes.start(
        "prometheus",
        [
            program,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={url.removeprefix('http://')}",
        ],
    )
    wait_healthy(processes, "prometheus", f"{url}/-/ready")
    return url


def configured(jobs: Mapping[str, Sequence[str]], interval: str) -> dict[str, object]:
    """Prometheus's configuration file as data."""
    return {
        "global": {"scrape_interval": interval, "evaluation_interval": interval},
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": list(targets)}]}
            for name, targets in jobs.items()
        ],
    }
