"""The optimizer reads histories of scores and scorers from real servers that scrape an agent."""

import time
from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from optimizer.service.hub.score_history import HistoryQuestion, PrometheusHistory, ScoreHistory
from optimizer.service.hub.scorer_history import ScorerHistories, scorer_histories
from tests.eventually import eventually
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_prometheus, start_victoria_metrics

LABELS = ("ds_cluster", "ds_score_name", "ds_app", "ds_device")
OF_SCORER = "dynamic_scoring_"


@pytest.fixture(scope="module")
def agent(ports: Ports) -> Iterator[str]:
    """Address of the score My_Speed of worker01 for two apps, and of other scores and clusters.

    Of every four rounds of its scorer one fails, and a call takes less than a second.
    """
    registry, port = CollectorRegistry(), ports.free()
    gauge = Gauge("dynamic_score", "of an agent", LABELS, registry=registry)
    gauge.labels("worker01", "My_Speed", "app01", "3g.48gb").set(60)
    gauge.labels("worker01", "My_Speed", "app02", "").set(float("nan"))
    gauge.labels("worker02", "My_Speed", "app01", "3g.48gb").set(10)
    gauge.labels("worker01", "My_Speed2", "app01", "3g.48gb").set(20)
    measured = [
        Gauge(f"{OF_SCORER}{name}", "of an agent", ["score_name"], registry=registry)
        for name in ("last_success_timestamp_seconds", "forecast_error_ratio")
    ]
    for of, value in zip(measured, (time.time() - 5000, 0.75), strict=True):
        of.labels("My_Speed").set(value)
    counted = Counter(
        f"{OF_SCORER}requests", "of an agent", ["score_name", "status"], registry=registry
    )
    calls = Histogram(
        f"{OF_SCORER}api_request_seconds", "of an agent", ["score_name"], registry=registry
    )
    going = Event()

    def work() -> None:
        while not going.wait(0.1):
            for status in ("success", "success", "success", "scoring_failed"):
                counted.labels("My_Speed", status).inc()
            calls.labels("My_Speed").observe(0.2)

    worker = Thread(target=work)
    worker.start()
    server, thread = start_http_server(port, LOOPBACK, registry)
    yield f"{LOOPBACK}:{port}"
    going.set()
    worker.join()
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


@pytest.mark.parametrize("start", [start_prometheus, start_victoria_metrics])
async def test_all_clusters_and_scorers_are_told_by_both_servers(
    processes: Processes, ports: Ports, agent: str, start: Callable[..., str]
) -> None:
    history = PrometheusHistory(start(processes, ports, [agent]))

    async def fleet() -> list[float]:
        question = HistoryQuestion("my-speed", "", hours=1, now=time.time(), app="app01")
        found = await history.read(question)
        assert isinstance(found, ScoreHistory), found
        return [
            line[-1][1]
            for one in found.series
            for line in (one.low, one.points, one.high)
            if line and line[-1][1] is not None
        ]

    assert await eventually(fleet) == [15, 35, 55]

    async def scorer() -> dict[str, float]:
        found = await scorer_histories(history, 1, time.time())
        assert isinstance(found, ScorerHistories), found
        assert found.missing == ()
        of = {item.score: item for item in found.scorers}
        own, other = of.get("my-speed"), of.get("my-speed2")
        assert other is None or {value for _, value in other.median} <= {20.0, None}
        if own is None or not (own.failed and own.latency and own.failing):
            return {}
        return {
            name: points[-1][1] or 0.0
            for name in ("age", "failed", "latency", "skill")
            for points in (getattr(own, name),)
        }

    told = await eventually(scorer)
    assert 5000 <= told["age"] < 5600
    assert told["failed"] == pytest.approx(0.25, abs=0.05)
    assert 0.1 < told["latency"] <= 0.25
    assert told["skill"] == pytest.approx(0.25)
