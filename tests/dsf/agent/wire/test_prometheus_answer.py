import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.prometheus_answer import (
    REMARKS_LIMIT,
    SERIES_LIMIT,
    AskedSamples,
    FetchedSeries,
    parse_query_answer,
)
from dsf.agent.wire.scoring_request import ScoringRequestBody
from tests.dsf.agent.builders import sent
from tests.repository import ROOT

URL = "http://user:secret@prometheus:9090/api/v1/query_range?query=up"
SHOWN = "http://prometheus:9090/api/v1/query_range"


def answered(body: Any, status: int = 200, content_type: str = "application/json") -> HttpAnswer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpAnswer(status, content_type, data)


def success(type_: str, result: Any, **fields: Any) -> HttpAnswer:
    return answered(
        {"status": "success", "data": {"resultType": type_, "result": result}, **fields}
    )


def fetched(answer: HttpAnswer) -> FetchedSeries:
    found = parse_query_answer(URL, answer)
    assert isinstance(found, FetchedSeries)
    return found


def failed(answer: HttpAnswer) -> Failure:
    found = parse_query_answer(URL, answer)
    assert isinstance(found, Failure)
    assert found.stage == "source"
    assert "secret" not in found.message
    return found


def test_a_vector_and_a_scalar_have_one_sample_each() -> None:
    vector = fetched(success("vector", [{"metric": {"pod": "a"}, "value": [1, "2"]}]))
    assert sent(vector) == [{"metric": {"pod": "a"}, "values": [[1, "2"]]}]
    scalar = fetched(success("scalar", [1, "2"]))
    assert sent(scalar) == [{"metric": {}, "values": [[1, "2"]]}]


def test_nothing_found_is_no_failure() -> None:
    assert fetched(success("matrix", [])) == FetchedSeries()


def test_warnings_are_kept() -> None:
    found = fetched(success("matrix", [], warnings=["PromQL warning: x\ny"], isPartial=True))
    assert found.warnings[0] == '"PromQL warning: x y"'
    assert "part" in found.warnings[1]


def test_native_histograms_are_left_out_and_said() -> None:
    histogram = {"metric": {"pod": "a"}, "histograms": [[1, {"count": "1", "sum": "2"}]]}
    found = fetched(success("matrix", [histogram, {"metric": {}, "values": [[1, "1"]]}]))
    assert len(found.series) == 1
    assert "histogram_quantile" in found.warnings[0]


@pytest.mark.parametrize(
    ("answer", "asked", "said"),
    [
        (success("matrix", [{"metric": {}}]), AskedSamples(), "1 series that have neither values"),
        (
            success("vector", [{"metric": {}, "value": [1, "2"]}]),
            AskedSamples(100, ranged=True),
            "answered a vector to a range query",
        ),
        (success("scalar", [1, "2"]), AskedSamples(100, ranged=True), "a scalar to a range query"),
        (
            success("matrix", [{"metric": {}, "values": [[1, "2"], [161, "2"]]}]),
            AskedSamples(100, ranged=True),
            "its latest sample is 61 s in the future",
        ),
        (success("matrix", [{"metric": {}, "values": [[159, "2"]]}]), AskedSamples(100), ""),
        (success("matrix", [{"metric": {}, "values": []}]), AskedSamples(100, ranged=True), ""),
        (success("matrix", [{"metric": {}, "values": [[1, "2"]]}]), AskedSamples(100), ""),
    ],
)
def test_what_is_unusual_is_accepted_and_said(
    answer: HttpAnswer, asked: AskedSamples, said: str
) -> None:
    found = parse_query_answer(URL, answer, asked=asked)
    assert isinstance(found, FetchedSeries)
    assert [said in warning for warning in found.warnings] == ([True] if said else [])


def test_another_kind_of_result_is_named() -> None:
    answer = success("streams\u202e", [{"stream": {}, "values": [["1", "a log line"]]}])
    assert 'its resultType is "streams' in failed(answer).message
    assert "not matrix, vector or scalar" in failed(answer).message


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
    assert f'answered {status} (text/html): "<h1> [31m no </h1>";' in failure.message


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


def test_more_series_than_memory_is_there_for_are_refused() -> None:
    def body(count: int) -> bytes:
        one = b'{"metric":{"a":"b"},"value":[1,"2"]}'
        result = b",".join([one] * count)
        return b'{"status":"success","data":{"resultType":"vector","result":[%b]}}' % result

    assert len(fetched(answered(body(SERIES_LIMIT))).series) == SERIES_LIMIT
    assert failed(answered(body(SERIES_LIMIT + 1))).reason == "ResponseTooLarge"


def test_what_does_not_fit_is_named_by_its_place() -> None:
    body = b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":1}}]}}'
    assert "series 0: labels: Expected `str`, got `int`" in failed(answered(body)).message


def test_an_echoed_token_is_not_repeated() -> None:
    failure = failed(answered(b"you sent Authorization: Bearer abc.def.ghi", 401, "text/plain"))
    assert "abc.def.ghi" not in failure.message


@given(st.binary(max_size=200), st.sampled_from([200, 204, 302, 400, 500]))
@pytest.mark.fire("a hostile server is a failure with a reason", "random bodies to the agent")
def test_any_body_gives_a_value(body: bytes, status: int) -> None:
    assert isinstance(
        parse_query_answer(URL, HttpAnswer(status, "text/plain", body)), FetchedSeries | Failure
    )


def test_infos_are_kept_and_a_flood_of_remarks_is_counted() -> None:
    found = fetched(success("matrix", [], infos=['metric might not be a counter: "up"']))
    assert found.warnings == (json.dumps('metric might not be a counter: "up"'),)
    flood = fetched(success("matrix", [], warnings=[f"store {n}" for n in range(1000)]))
    assert len(flood.warnings) == REMARKS_LIMIT + 1
    assert flood.warnings[-1] == "990 more warnings"


def test_samples_are_the_bytes_that_the_server_sent() -> None:
    result = b'[{"values": [[1.50,"1e3"], [2,"+Inf"]], "histograms":[], "metric":{"a":"\\u003c"}}]'
    body = b'{"status":"success","data":{"result":%b,"resultType":"matrix"}}' % result
    document = b"".join(ScoringRequestBody(fetched(answered(body)).series))
    assert document == b'{"data":[{"metric":{"a":"\\u003c"},"values":[[1.50,"1e3"], [2,"+Inf"]]}]}'


def test_a_repeated_label_is_passed_on_as_it_is() -> None:
    result = b'[{"metric":{"a":"1","a":"2"},"values":[]}]'
    body = b'{"status":"success","data":{"resultType":"matrix","result":%b}}' % result
    document = b"".join(ScoringRequestBody(fetched(answered(body)).series))
    assert document == b'{"data":[{"metric":{"a":"1","a":"2"},"values":[]}]}'


@pytest.mark.parametrize(
    "values",
    [
        b'[[NaN,"1"]]',
        b'[[1e999,"1"]]',
        b'[[Infinity,"1"]]',
        b"[[" + b"9" * 400 + b',"1"]]',
        b'[[true,"1"]]',
        b"[[1,1]]",
        b'[[1,"1",2]]',
        b'[[1,"\xff"]]',
        b'[[1,"\\ud800"]]',
        b"[" * 100_000 + b"]" * 100_000,
        b"{}",
        b"null",
    ],
)
def test_samples_that_a_scorer_could_not_read_are_refused(values: bytes) -> None:
    result = b'[{"metric":{},"values":[]},{"metric":{},"values":%b}]' % values
    body = b'{"status":"success","data":{"resultType":"matrix","result":%b}}' % result
    message = failed(answered(body)).message
    assert "not a Prometheus query result" in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (400, "bad_data", "QueryRejected"),
        (422, "execution", "QueryRejected"),
        (200, "execution", "QueryRejected"),
        (401, "unauthorized", "Unauthorized"),
        (429, "too_many_requests", "TooManyRequests"),
        (499, "canceled", "UnexpectedStatus"),
        (503, "timeout", "ServerError"),
        (500, "internal", "ServerError"),
    ],
)
def test_an_error_body_is_named_by_its_status(status: int, kind: str, reason: str) -> None:
    said = "query timed out in expression evaluation"
    error = {"status": "error", "errorType": kind, "error": said}
    body = json.dumps(error).encode()
    failure = failed(HttpAnswer(status, "application/json", body, retry_after=7.0))
    assert failure.reason == reason
    shown = f'"{kind}"' if "_" in kind else kind
    assert f'({shown}): "{said}"' in failure.message
    assert failure.retry_after == (None if reason == "QueryRejected" else 7.0)


RECORDED = json.loads(
    (ROOT / "tests/real_sources/recorded/prometheus-2.42.json").read_text("utf-8")
)


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_real_prometheus_refuses_is_told_in_its_words(name: str) -> None:
    """The recordings are compared with a real server by tests/real_sources."""
    said = RECORDED[name]
    failure = failed(HttpAnswer(said["status"], said["content_type"], said["body"].encode()))
    expected = {503: "ServerError", 404: "NotFound"}.get(said["status"], "QueryRejected")
    assert failure.reason == expected
    words = json.loads(said["body"])["error"] if said["status"] != 404 else "404 page not found"
    assert json.dumps(words, ensure_ascii=False) in failure.message


_labels = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3)
_samples = st.lists(
    st.tuples(
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 2**63), st.text()
    ).map(list),
    max_size=3,
)
_any_series = st.lists(st.fixed_dictionaries({"metric": _labels, "values": _samples}), max_size=4)


@given(_any_series, st.booleans())
def test_every_matrix_reaches_the_scorer_as_it_is(series: Any, ascii_only: bool) -> None:
    body = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    text = json.dumps(body, ensure_ascii=ascii_only)
    assert sent(fetched(answered(text.encode()))) == series


def test_of_a_long_error_message_the_beginning_is_shown() -> None:
    error = {"status": "error", "errorType": "bad_data", "error": "begin" + "x" * 100_000}
    failure = failed(answered(error, 400))
    assert failure.reason == "QueryRejected"
    assert 'rejected the query ("bad_data"): "beginxxx' in failure.message
    assert len(failure.message) < 1000


def test_warnings_of_at_most_64_kib_are_read() -> None:
    longest = "x" * ((1 << 16) - len('[""]'))
    (shown,) = fetched(success("matrix", [], warnings=[longest])).warnings
    assert shown.startswith('"xxx')
    (counted,) = fetched(success("matrix", [], warnings=[longest + "x"])).warnings
    assert counted == f"{(1 << 16) + 1} bytes of warnings, which are too many to show"
