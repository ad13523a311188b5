"""The optimizer reads the history of a score from real servers that scrape an agent's gauge."""

import time
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from optimizer.service.hub.score_history import HistoryQuestion, PrometheusHistory, ScoreHistory
from tests.eventually import eventually
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_prometheus, start_victoria_metrics

LABELS = ("ds_cluster", "ds_score_name", "ds_app", "ds_device")


@pytest.fixture(scope="module")
def agent(ports: Ports) -> Iterator[str]:
    """Address of the score My_Speed of worker01 for two apps, and of other scores and clusters."""
    registry, port = CollectorRegistry(), ports.free()
    gauge = Gauge("dynamic_score", "of an agent", LABELS, registry=registry)
    gauge.labels("worker01", "My_Speed", "app01", "3g.48gb").set(60)
    gauge.labels("worker01", "My_Speed", "app02", "").set(float("nan"))
    gauge.labels("worker02", "My_Speed", "app01", "3g.48gb").set(10)
    gauge.labels("worker01", "My_Speed2", "app01", "3g.48gb").set(20)
    server, thread = start_http_server(port, LOOPBACK, registry)
    yield f"{LOOPBACK}:{port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("start", [start_prometheus, start_victoria_metrics])
async def test_a_score_is_found_by_the_name_of_its_object(
    processes: Processes, ports: Ports, agent: str, start: Callable[..., str]
) -> None:
    history = PrometheusHistory(start(processes, ports, [agent]))

    async def values() -> dict[str, float]:
        question = HistoryQuestion("my-speed", "worker01", hours=1, now=time.time())
        found = await history.read(question)
        assert isinstance(found, ScoreHistory), found
        ends = {item.name: [value for _, value in item.points if value] for item in found.series}
        return {name: known[-1] for name, known in ends.items() if known}

    assert await eventually(values) == {"app01;3g.48gb": 60}
