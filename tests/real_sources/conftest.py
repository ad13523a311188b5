"""Real servers that scrape a real exporter and one with known values."""

from collections.abc import Iterator

import httpx
import prometheus_client
import pytest

from tests.dsf.agent.conftest import hub, managed
from tests.eventually import until
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_node_exporter, start_prometheus, start_victoria_metrics

__all__ = ["hub", "managed"]

SCRAPED_SECONDS = 4
"""How long the known values have been scraped when the tests begin."""


@pytest.fixture(scope="session")
def ports() -> Ports:
    return Ports()


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(tmp_path_factory.mktemp("sources") / "run")
    yield started
    started.close()


@pytest.fixture(scope="session")
def known(ports: Ports) -> Iterator[str]:
    """Address of an exporter: util{pod="a"} 12.5, util{pod="b"} NaN, util{pod="<é>"} -3."""
    port = ports.free()
    registry = prometheus_client.CollectorRegistry()
    gauge = prometheus_client.Gauge("util", "of a pod", ["pod"], registry=registry)
    for pod, value in (("a", 12.5), ("b", float("nan")), ("<é>", -3.0)):
        gauge.labels(pod).set(value)
    server, thread = prometheus_client.start_http_server(port, LOOPBACK, registry)
    yield f"{LOOPBACK}:{port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def targets(processes: Processes, ports: Ports, known: str) -> list[str]:
    return [known, start_node_exporter(processes, ports)]


@pytest.fixture(scope="session")
def prometheus(processes: Processes, ports: Ports, targets: list[str]) -> str:
    return scraped(start_prometheus(processes, ports, targets))


@pytest.fixture(scope="session")
def victoria_metrics(processes: Processes, ports: Ports, targets: list[str]) -> str:
    return scraped(start_victoria_metrics(processes, ports, targets))


@pytest.fixture(params=["prometheus", "victoria_metrics"])
def source(request: pytest.FixtureRequest) -> str:
    """URL of each of the servers in turn."""
    return str(request.getfixturevalue(request.param))


def scraped(url: str) -> str:
    def seconds() -> bool:
        query = "count_over_time(util{pod='a'}[1h]) and on() node_load1"
        found = httpx.get(f"{url}/api/v1/query", params={"query": query}, trust_env=False)
        result = found.json()["data"]["result"]
        return bool(result) and int(result[0]["value"][1]) > SCRAPED_SECONDS

    until("some seconds of samples", seconds)
    return url
