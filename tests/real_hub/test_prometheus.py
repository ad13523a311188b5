"""A real Prometheus next to the hub, if one is installed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import httpx
import prometheus_client
import pytest

from tests.eventually import until

from .harness.ports import LOOPBACK, Ports
from .harness.processes import Processes
from .harness.prometheus import NoPrometheus, start_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path / "run")
    yield started
    started.close()


@pytest.fixture
def exported() -> Iterator[str]:
    """Address that serves ``answer 42`` as a metric."""
    port = Ports().free()
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Gauge("answer", "to everything", registry=registry).set(42)
    server, thread = prometheus_client.start_http_server(port, LOOPBACK, registry)
    yield f"{LOOPBACK}:{port}"
    server.shutdown()
    server.server_close()
    thread.join()


def answer_of(url: str) -> list[str]:
    query = {"query": 'answer{job="oracle"}'}
    found = httpx.get(f"{url}/api/v1/query", params=query, trust_env=False)
    return [sample["value"][1] for sample in found.json()["data"]["result"]]


def test_prometheus_scrapes_what_it_is_told_to_or_says_how_to_get_it(
    processes: Processes, exported: str
) -> None:
    if shutil.which("prometheus") is None:
        with pytest.raises(NoPrometheus, match="apt install prometheus"):
            start_prometheus(processes, Ports(), {})
        return
    url = start_prometheus(processes, Ports(), {"oracle": [exported]})
    until("the first sample", lambda: answer_of(url) == ["42"])
