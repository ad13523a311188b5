"""The scorers' HTTP interface, over sockets: what the contract says, and bad input."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.scoring_answer import parse_scoring_answer
from dsf.api.scoring.scoring_api import ScorerConfig
from sample_scorers.sample.score import META, scorer
from sample_scorers.scoring_service.application import create_app
from sample_scorers.scoring_service.testing import client
from tests.sample_scorers.applications import APPS, NO_MODEL

HOST = "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090"
QUERY = (
    'sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", '
    'pod!=""}[1m]))'
)


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, httpx.Client]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(client(create(NO_MODEL))) for name, create in APPS.items()}


def prometheus_config(
    name: str, description: str, score: str, interval: int, step: int
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "source": {
            "type": "Prometheus",
            "host": HOST,
            "path": "/api/v1/query_range",
            "params": {"query": QUERY, "range": 3600, "step": step},
        },
        "scoring": {"path": "/scoring", "params": {"name": score, "interval": interval}},
    }


def static_config(name: str, description: str, path: str, score: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "source": {"type": "None"},
        "scoring": {"path": path, "params": {"name": score, "interval": 30}},
    }


CONFIGS = [
    (
        "sample",
        "/config",
        prometheus_config(
            "sample-scorer", "A sample score for time series data", "sample_my_score", 30, 60
        ),
    ),
    (
        "prediction",
        "/config",
        {
            **prometheus_config(
                "simple-prediction-scorer",
                "A simple prediction score for time series data",
                "simple_prediction_score",
                30,
                30,
            ),
            "forecast": {"horizon": 600, "truth": {"query": f"avg_over_time(({QUERY})[600s:30s])"}},
        },
    ),
    (
        "llm_forecast",
        "/config",
        {
            **prometheus_config(
                "llm-forecast-scorer",
                "A sample score for time series data with vLLM",
                "llm_forecast_score",
                60,
                60,
            ),
            "forecast": {"horizon": 600, "truth": {"query": f"avg_over_time(({QUERY})[600s:60s])"}},
        },
    ),
    (
        "static",
        "/performance/config",
        static_config(
            "example-performance-scorer",
            "An example performance score",
            "/performance/scoring",
            "example_performance_score",
        ),
    ),
    (
        "static",
        "/powerconsumption/config",
        static_config(
            "example-powerconsumption-scorer",
            "An example power consumption score",
            "/powerconsumption/scoring",
            "example_powerconsumption_score",
        ),
    ),
]


@pytest.mark.parametrize(("scorer", "path", "expected"), CONFIGS)
def test_config_is_the_seeds_document_and_the_hub_accepts_it(
    clients: dict[str, httpx.Client], scorer: str, path: str, expected: dict[str, Any]
) -> None:
    answer = clients[scorer].get(path)
    assert (answer.status_code, answer.json()) == (200, expected)
    assert ScorerConfig.model_validate(answer.json()).name == expected["name"]


@pytest.mark.parametrize("scorer", APPS)
def test_healthz_and_the_documentation_answer(
    clients: dict[str, httpx.Client], scorer: str
) -> None:
    health = clients[scorer].get("/healthz").status_code
    assert health == (503 if scorer == "llm_forecast.shared_model" else 200), "its model is away"
    assert clients[scorer].get("/docs").status_code == 200
    assert "/healthz" in clients[scorer].get("/openapi.json").json()["paths"]


def test_the_prometheus_host_can_be_chosen() -> None:
    with client(create_app(scorer("https://metrics:1"))) as http:
        assert http.get("/config").json()["source"]["host"] == "https://metrics:1"


def test_each_series_gets_a_result_that_the_agent_accepts(clients: dict[str, httpx.Client]) -> None:
    data = [
        {"metric": {"pod": "a", "node": "né"}, "values": [[1, "1"], [2.5, "2"], [3, "NaN"]]},
        {"metric": {"pod": "gone"}, "values": [[1, "+Inf"], [2, "NaN"]]},
        {"metric": {}, "values": []},
    ]
    answer = clients["sample"].post("/scoring", json={"data": data, "more": 1})
    assert answer.json() == {
        "results": [{"metric": {"pod": "a", "node": "né", "meta": META}, "score": 1.5}]
    }
    read = parse_scoring_answer("http://scorer", HttpAnswer(200, "", answer.content), 10)
    assert not isinstance(read, Failure)
    assert read[0].score == 1.5
