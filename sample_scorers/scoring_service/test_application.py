# SPDX-License-Identifier: Apache-2.0
"""The application over sockets: what it answers to good and to bad input, and its metrics."""

import json
import re
import socket
from collections.abc import Iterator, Sequence

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from . import application
from .testing import client
from .wire import NoSource, ScorerConfig, ScoreResult, Scoring, ScoringParams, Series

CONFIG = ScorerConfig(
    name="first-value",
    description="The first value of each series",
    source=NoSource(),
    scoring=Scoring(params=ScoringParams(name="first_value", interval=30)),
)
JSON = {"Content-Type": "application/json"}


def first_value(series: Sequence[Series]) -> list[ScoreResult]:
    return [
        ScoreResult(metric=each.metric, score=points[0][1])
        for each in series
        if (points := each.finite())
    ]


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    app = application.create_app(application.ServedScorer(CONFIG, first_value))
    with client(app) as found:
        yield found


def test_the_endpoints_answer(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/config").json() == CONFIG.model_dump(exclude_none=True)
    assert http.get("/docs").status_code == 200
    data = [
        {"metric": {"pod": "né"}, "values": [[1, "NaN"], [2.5, "2"]]},
        {"metric": {}, "values": []},
    ]
    answer = http.post("/scoring", json={"data": data, "more": 1})
    assert answer.json() == {"results": [{"metric": {"pod": "né"}, "score": 2}]}


def test_metrics_count_requests_by_path_and_status() -> None:
    app = application.create_app(application.ServedScorer(CONFIG, first_value))
    with client(app) as http:
        http.post("/scoring", json={"data": []})
        http.post("/scoring", json=1)
        http.get("/of-a-caller")
        http.get("/of-another")
        answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    counted = re.findall(
        r'^scorer_requests_total\{code="(\d+)",path="(.*)"\} (.*)$', answer.text, re.MULTILINE
    )
    assert counted == [
        ("200", "/scoring", "1.0"),
        ("422", "/scoring", "1.0"),
        ("404", "other", "2.0"),
    ]
    assert 'scorer_request_duration_seconds_count{path="/scoring"} 2.0' in answer.text
    assert "process_resident_memory_bytes" in answer.text


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


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_problem_that_names_the_field(http: httpx.Client, name: str) -> None:
    body, status, where = BAD[name]
    answer = http.post("/scoring", content=body, headers=JSON)
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert where in problem["detail"]
    assert len(answer.content) < 2000
    if status == 422:
        steps = where.replace("[", ".").replace("]", "").split(".")
        pointer = "#" if where == "the body" else "#/" + "/".join(steps)
        assert problem["errors"][0]["pointer"] == pointer


def test_too_many_series_are_refused(http: httpx.Client) -> None:
    body = b'{"data":[' + b",".join([b'{"metric":{},"values":[]}'] * 20_001) + b"]}"
    answer = http.post("/scoring", content=body, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/data"


def test_only_the_first_of_many_mistakes_is_told(http: httpx.Client) -> None:
    """A list of all mistakes of one long body once took 15 GB."""
    for body in (
        one("[" + ",".join(["[]"] * 1000) + "]"),
        one(metric=json.dumps({str(name): name for name in range(1000)})),
        b'{"data":[' + b",".join([b"0"] * 1000) + b"]}",
    ):
        answer = http.post("/scoring", content=body, headers=JSON)
        assert 1 <= len(answer.json()["errors"]) <= 2


def test_another_content_type_is_told(http: httpx.Client) -> None:
    answer = http.post("/scoring", data={"data": "[]"})
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


def test_a_missing_content_type_is_taken_for_json(http: httpx.Client) -> None:
    answer = http.post("/scoring", content=b'{"data":[]}')
    assert answer.json() == {"results": []}


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/scoring", 405)]
)
def test_a_wrong_path_or_method_is_a_problem(
    http: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = http.request(method, path)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_declared_too_long_is_refused_before_it_is_sent(http: httpx.Client) -> None:
    with socket.create_connection((http.base_url.host, http.base_url.port or 0)) as connection:
        connection.sendall(b"POST /scoring HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_field_name_from_the_sender_is_escaped() -> None:
    app = application.bare_app("names")

    @app.post("/numbers")
    def numbers(_body: dict[str, int]) -> None: ...

    with client(app) as http:
        answer = http.post("/numbers", content=b'{"a/b~c\\ud800":"x"}')
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith("#/a~1b~0c")


def test_a_defect_in_a_score_is_a_problem_without_its_insides() -> None:
    def broken(_series: object) -> list[ScoreResult]:
        raise RuntimeError("a secret of the inside")

    with client(application.create_app(application.ServedScorer(CONFIG, broken))) as http:
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


@given(document=requests | json_values)
def test_any_json_is_scored_or_refused(http: httpx.Client, document: object) -> None:
    answer = http.post("/scoring", content=json.dumps(document).encode(), headers=JSON)
    assert answer.status_code in {200, 400, 422}
    assert answer.json()
