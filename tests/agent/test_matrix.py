import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.answer import Answer
from dsf.agent.failure import Failure
from dsf.agent.matrix import Fetched, parse

URL = "http://user:secret@prometheus:9090/api/v1/query_range?query=up"
SHOWN = "http://prometheus:9090/api/v1/query_range"


def answered(body: Any, status: int = 200, content_type: str = "application/json") -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, content_type, data)


def success(type_: str, result: Any, **fields: Any) -> Answer:
    return answered(
        {"status": "success", "data": {"resultType": type_, "result": result}, **fields}
    )


def fetched(answer: Answer) -> Fetched:
    found = parse(URL, answer)
    assert isinstance(found, Fetched)
    return found


def failed(answer: Answer) -> Failure:
    found = parse(URL, answer)
    assert isinstance(found, Failure)
    assert found.stage == "source"
    assert "secret" not in found.message
    return found


def test_a_matrix_is_taken_as_it_is() -> None:
    found = fetched(
        success("matrix", [{"metric": {"pod": "a"}, "values": [[1, "1.5"], [61.5, "NaN"]]}])
    )
    assert found.series[0].metric == {"pod": "a"}
    assert found.series[0].values == [(1.0, "1.5"), (61.5, "NaN")]


def test_a_vector_and_a_scalar_have_one_sample_each() -> None:
    vector = fetched(success("vector", [{"metric": {"pod": "a"}, "value": [1, "2"]}]))
    assert vector.series[0].values == [(1.0, "2")]
    scalar = fetched(success("scalar", [1, "2"]))
    assert (scalar.series[0].metric, scalar.series[0].values) == ({}, [(1.0, "2")])


def test_nothing_found_is_no_failure() -> None:
    assert fetched(success("matrix", [])) == Fetched()


def test_warnings_are_kept() -> None:
    found = fetched(success("matrix", [], warnings=["PromQL warning: x\ny"], isPartial=True))
    assert found.warnings[0] == "PromQL warning: x y"
    assert "part" in found.warnings[1]


def test_native_histograms_are_left_out_and_said() -> None:
    histogram = {"metric": {"pod": "a"}, "histograms": [[1, {"count": "1", "sum": "2"}]]}
    found = fetched(success("matrix", [histogram, {"metric": {}, "values": [[1, "1"]]}]))
    assert len(found.series) == 1
    assert "histogram_quantile" in found.warnings[0]


def test_the_servers_own_error_message_is_surfaced() -> None:
    error = {"status": "error", "errorType": "bad_data", "error": "1:4: parse error: unclosed left"}
    failure = failed(answered(error, 400))
    assert failure.reason == "QueryRejected"
    assert SHOWN in failure.message
    assert "bad_data" in failure.message
    assert "1:4: parse error: unclosed left" in failure.message


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (302, "Redirected"),
        (401, "Unauthorized"),
        (403, "Unauthorized"),
        (404, "NotFound"),
        (418, "UnexpectedStatus"),
        (429, "TooManyRequests"),
        (500, "ServerError"),
        (503, "ServerError"),
    ],
)
def test_a_status_is_named_with_what_the_server_said(status: int, reason: str) -> None:
    failure = failed(answered(b"<h1>\x1b[31m no </h1>\n", status, "text/html; charset=utf-8"))
    assert failure.reason == reason
    assert f"answered {status} (text/html): <h1> [31m no </h1>;" in failure.message


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"null",
        b'{"status":"success"}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,2]]}]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":{}}}',
        b'{"status":"success","data":{"resultType":"string","result":[1,"x"]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"\\ud800"}}]}}',
    ],
)
def test_what_is_no_query_result_is_refused(body: bytes) -> None:
    failure = failed(answered(body))
    assert failure.reason == "InvalidResponse"
    assert SHOWN in failure.message
    assert len(failure.message) < 1000


def test_what_does_not_fit_is_named_by_its_place() -> None:
    body = b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":1}}]}}'
    assert "result" in failed(answered(body)).message
    assert "metric.a" in failed(answered(body)).message


def test_an_echoed_token_is_not_repeated() -> None:
    failure = failed(answered(b"you sent Authorization: Bearer abc.def.ghi", 401, "text/plain"))
    assert "abc.def.ghi" not in failure.message


@given(st.binary(max_size=200), st.sampled_from([200, 204, 302, 400, 500]))
def test_any_body_gives_a_value(body: bytes, status: int) -> None:
    assert isinstance(parse(URL, Answer(status, "text/plain", body)), Fetched | Failure)
