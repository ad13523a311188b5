"""The scorers' HTTP interface, over sockets: what the contract says, and bad input."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.scoring_answer import parse_scoring_answer
from dsf.api.scoring.scoring_api import ScorerConfig
from sample_scorers import service
from sample_scorers.ai_workload.app import create_app as ai_workload_app
from sample_scorers.latency.app import create_app as latency_app
from sample_scorers.llm_forecast.app import create_app as llm_forecast_app
from sample_scorers.llm_forecast.model_client import ForecastSettings
from sample_scorers.prediction.app import create_app as prediction_app
from sample_scorers.sample.app import config as sample_config
from sample_scorers.sample.app import create_app as sample_app
from sample_scorers.sample.score import META
from sample_scorers.static.app import create_app as static_app
from sample_scorers.wire import ScoreResult
from tests.sample_scorers.serving import client

HOST = "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090"
QUERY = (
    'sum by (node, namespace, pod) (rate(container_cpu_usage_seconds_total{container!="", '
    'pod!=""}[1m]))'
)
NO_MODEL = ForecastSettings(endpoint="http://127.0.0.1:9", model="none")
APPS: dict[str, Callable[[], FastAPI]] = {
    "sample": sample_app,
    "static": static_app,
    "prediction": prediction_app,
    "latency": latency_app,
    "ai_workload": ai_workload_app,
    "llm_forecast": lambda: llm_forecast_app(NO_MODEL),
}
SCORING = [
    ("sample", "/scoring"),
    ("prediction", "/scoring"),
    ("llm_forecast", "/scoring"),
    ("latency", "/scoring"),
    ("ai_workload", "/performance/scoring"),
    ("ai_workload", "/power/scoring"),
    ("ai_workload", "/efficiency/scoring"),
    ("static", "/performance/scoring"),
    ("static", "/powerconsumption/scoring"),
]


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, httpx.Client]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(client(create())) for name, create in APPS.items()}


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
            "forecast": {
                "horizon": 600,
                "truth": {"query": f"avg_over_time(({QUERY})[600s:30s])"},
            },
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
            "forecast": {
                "horizon": 600,
                "truth": {"query": f"avg_over_time(({QUERY})[600s:60s])"},
            },
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
    assert health == (503 if scorer == "llm_forecast" else 200), "only that one has a model"
    assert clients[scorer].get("/docs").status_code == 200
    assert "/healthz" in clients[scorer].get("/openapi.json").json()["paths"]


def test_the_prometheus_host_can_be_chosen() -> None:
    with client(sample_app("https://metrics:1")) as http:
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


def one(values: str = "[]", metric: str = "{}") -> bytes:
    return f'{{"data":[{{"metric":{metric},"values":{values}}}]}}'.encode()


BAD = {
    "empty": (b"", 422, "the body"),
    "no object": (b"[]", 422, "the body"),
    "a number": (b"1", 422, "the body"),
    "no data": (b"{}", 422, "data"),
    "data is text": (b'{"data":"x"}', 422, "data"),
    "not JSON": (b'{"data":[', 400, "not JSON"),
    "bytes": (b"\xff\xfe\x00\x80", 400, "not JSON"),
    "bytes in text": (b'{"data":"\xff"}', 400, "UTF-8"),
    "deep": (b"[" * 100_000, 400, "nested too deep"),
    "deep object": (b'{"data":' * 100_000, 400, "nested too deep"),
    "long number": (one("[[" + "1" * 5000 + ',"1"]]'), 400, "a number that is too long"),
    "big time": (one("[[" + "1" * 4000 + ',"1"]]'), 422, "data[0].values[0][0]"),
    "NaN as time": (one('[[NaN,"1"]]'), 422, "data[0].values[0][0]"),
    "infinite time": (one('[[1e999,"1"]]'), 422, "data[0].values[0][0]"),
    "time in milliseconds": (one('[[1718600000000,"1"]]'), 422, "data[0].values[0][0]"),
    "negative time": (one('[[-1,"1"]]'), 422, "data[0].values[0][0]"),
    "bare NaN": (one("[[1,NaN]]"), 422, "data[0].values[0][1]"),
    "bare infinity": (one("[[1,1e999]]"), 422, "data[0].values[0][1]"),
    "big integer": (one("[[1," + "1" * 4000 + "]]"), 422, "data[0].values[0][1]"),
    "1e999": (one('[[1,"1e999"]]'), 422, "data[0].values[0][1]"),
    "long digits": (one('[[1,"' + "1" * 100_000 + 'x"]]'), 422, "data[0].values[0][1]"),
    "a word": (one('[[1,"1"],[2,"abc"]]'), 422, "data[0].values[1][1]"),
    "a boolean": (one("[[1,true]]"), 422, "data[0].values[0][1]"),
    "surrogate value": (one('[[1,"\\ud800"]]'), 422, "data[0].values[0][1]"),
    "one number": (one("[[1]]"), 422, "data[0].values[0][1]"),
    "three numbers": (one('[[1,"1",2]]'), 422, "data[0].values[0]"),
    "null values": (one("null"), 422, "data[0].values"),
    "label is a number": (one(metric='{"pod":1}'), 422, "data[0].metric"),
    "label is half a pair": (one(metric='{"pod":"\\ud800"}'), 422, "data[0].metric"),
    "name is half a pair": (one(metric='{"\\udfff":"x"}'), 422, "data[0].metric"),
    "labels are a list": (one(metric="[]"), 422, "data[0].metric"),
}


@pytest.mark.parametrize(("scorer", "path"), SCORING)
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_problem_that_names_the_field(
    clients: dict[str, httpx.Client], scorer: str, path: str, name: str
) -> None:
    body, status, where = BAD[name]
    answer = clients[scorer].post(path, content=body, headers={"Content-Type": "application/json"})
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert where in problem["detail"]
    assert len(answer.content) < 2000
    if status == 422:
        steps = where.replace("[", ".").replace("]", "").split(".")
        pointer = "#" if where == "the body" else "#/" + "/".join(steps)
        assert problem["errors"][0]["pointer"] == pointer


def test_too_many_series_are_refused(clients: dict[str, httpx.Client]) -> None:
    body = b'{"data":[' + b",".join([b'{"metric":{},"values":[]}'] * 20_001) + b"]}"
    answer = clients["sample"].post(
        "/scoring", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/data"


def test_only_the_first_of_many_mistakes_is_told(clients: dict[str, httpx.Client]) -> None:
    """A list of all mistakes of one long body once took 15 GB."""
    for body in (
        one("[" + ",".join(["[]"] * 1000) + "]"),
        one(metric=json.dumps({str(name): name for name in range(1000)})),
        b'{"data":[' + b",".join([b"0"] * 1000) + b"]}",
    ):
        answer = clients["sample"].post(
            "/scoring", content=body, headers={"Content-Type": "application/json"}
        )
        assert 1 <= len(answer.json()["errors"]) <= 2


def test_another_content_type_is_told(clients: dict[str, httpx.Client]) -> None:
    answer = clients["sample"].post("/scoring", data={"data": "[]"})
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


def test_a_missing_content_type_is_taken_for_json(clients: dict[str, httpx.Client]) -> None:
    answer = clients["sample"].post("/scoring", content=b'{"data":[]}')
    assert answer.json() == {"results": []}


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/scoring", 405)]
)
def test_a_wrong_path_or_method_is_a_problem(
    clients: dict[str, httpx.Client], method: str, path: str, status: int
) -> None:
    answer = clients["sample"].request(method, path)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_declared_too_long_is_refused_before_it_is_sent() -> None:
    with (
        client(sample_app()) as http,
        socket.create_connection((http.base_url.host, http.base_url.port or 0)) as connection,
    ):
        connection.sendall(b"POST /scoring HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_field_name_from_the_sender_is_escaped() -> None:
    app = service.bare_app("names")

    @app.post("/numbers")
    def numbers(_body: dict[str, int]) -> None: ...

    with client(app) as http:
        answer = http.post("/numbers", content=b'{"a/b~c\\ud800":"x"}')
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith("#/a~1b~0c")


def test_a_defect_in_a_score_is_a_problem_without_its_insides() -> None:
    def broken(_series: object) -> list[ScoreResult]:
        raise RuntimeError("a secret of the inside")

    with client(service.create_app(service.ServedScorer(sample_config(), broken))) as http:
        answer = http.post("/scoring", json={"data": []})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("1.5"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["data", "metric", "values"]), inner)
    ),
    max_leaves=8,
)
requests = st.fixed_dictionaries(
    {
        "data": st.lists(
            st.fixed_dictionaries(
                {
                    "metric": st.dictionaries(st.text(), st.text(), max_size=2) | json_values,
                    "values": st.lists(st.tuples(st.floats(0, 1e9), st.just("1"))) | json_values,
                }
            )
            | json_values,
            max_size=3,
        )
    }
)


@pytest.mark.parametrize("scorer", ["sample", "prediction"])
@given(document=requests | json_values)
def test_any_json_is_scored_or_refused(
    clients: dict[str, httpx.Client], scorer: str, document: object
) -> None:
    body = json.dumps(document).encode()
    answer = clients[scorer].post(
        "/scoring", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in {200, 400, 422}
    assert answer.json()
