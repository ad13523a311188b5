"""Answers whose shape makes them expensive: their time and memory have limits."""

import json
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.prometheus_answer import SERIES_BYTES, FetchedSeries, parse_query_answer
from dsf.agent.wire.scoring_answer import RESULT_BYTES, ScoringResult, parse_scoring_answer

MIB = 1 << 20
MANY = 100
"""Results or series that may be in an answer here."""

Parse = Callable[[bytes], object]


def scoring(body: bytes, results: int = MANY) -> list[ScoringResult] | Failure:
    return parse_scoring_answer("http://scorer", HttpAnswer(200, "", body), results)


def query(body: bytes, series: int = MANY) -> FetchedSeries | Failure:
    return parse_query_answer("http://prometheus", HttpAnswer(200, "", body), series)


def peak(parse: Parse, body: bytes) -> int:
    """Return the bytes that parsing takes besides the body."""
    tracemalloc.start()
    try:
        parse(body)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def seconds(parse: Parse, body: bytes) -> float:
    """Return the time of the processor, at best of three."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        parse(body)
        spent.append(time.process_time() - began)
    return min(spent)


def repeated(element: bytes, size: int) -> bytes:
    return b",".join([element] * (size // (len(element) + 1)))


def distinct(element: bytes, size: int) -> bytes:
    """Repeat an element, with another number in the place of each `#`."""
    return b",".join(element.replace(b"#", b"%06d" % n) for n in range(size // (len(element) + 7)))


ELEMENTS = (b"1", b"[]", b"{}", b"null", b'"aa"', b"1e999", b"NaN", b'[1,"1"]', b'{"score":1}')
ELEMENTS += (b'{"metric":{},"values":[]}', b'{"metric":{"a":"b"},"score":1}', b"[[[[[]]]]]")
SHAPES: dict[str, Callable[[bytes, int], bytes]] = {
    "list": lambda one, size: b"[%b]" % repeated(one, size),
    "object": lambda one, size: b"{%b}" % distinct(b'"#":%b' % one, size),
    "repeated key": lambda one, size: b"{%b}" % repeated(b'"a":%b' % one, size),
    "deep list": lambda one, size: b"[" * (size // 2) + one + b"]" * (size // 2),
    "deep object": lambda one, size: b'{"a":' * (size // 6) + one + b"}" * (size // 6),
    "cut off": lambda one, size: b"[%b" % repeated(one, size),
    "text": lambda _one, size: b'"%b"' % (b"x" * size),
    "wide text": lambda _one, size: '"{}🙂"'.format("x" * size).encode(),
    "escaped text": lambda _one, size: b'"%b"' % (b'\\"' * (size // 2)),
    "unterminated text": lambda _one, size: b'NaN,"%b' % (b'\\"' * (size // 2)),
    "number": lambda _one, size: b"9" * size,
    "blank": lambda _one, size: b" " * size + b"1",
}
SCORING = {
    "body": b"%b",
    "results": b'{"results":%b}',
    "unknown field": b'{"results":[],"more":%b}',
    "result": b'{"results":[%b]}',
    "score": b'{"results":[{"score":%b}]}',
    "labels": b'{"results":[{"score":1,"metric":%b}]}',
    "label": b'{"results":[{"score":1,"metric":{"pod":%b}}]}',
}
_RESULT = b'{"status":"success","data":{"resultType":"matrix","result":%b}}'
QUERY = {
    "body": b"%b",
    "result": _RESULT,
    "series": _RESULT % b"[%b]",
    "labels": _RESULT % b'[{"metric":%b,"values":[]}]',
    "label": _RESULT % b'[{"metric":{"pod":%b},"values":[]}]',
    "values": _RESULT % b'[{"metric":{},"values":%b}]',
    "value": _RESULT % b'[{"metric":{},"value":%b}]',
    "sample": _RESULT % b'[{"metric":{},"values":[[1,%b]]}]',
    "status": b'{"status":%b}',
    "error": b'{"status":"error","error":%b}',
    "errorType": b'{"status":"error","errorType":%b}',
    "resultType": b'{"status":"success","data":{"resultType":%b,"result":[]}}',
    "warnings": b'{"status":"success","data":{"resultType":"matrix","result":[]},"warnings":%b}',
    "infos": b'{"status":"success","data":{"resultType":"matrix","result":[]},"infos":%b}',
    "unknown field": b'{"status":"success","more":%b}',
}
shapes = st.tuples(st.sampled_from(sorted(SHAPES)), st.sampled_from(ELEMENTS))
sizes = st.integers(1 << 10, MIB)


@settings(max_examples=60, deadline=None)
@given(shapes, sizes, st.sampled_from(sorted(SCORING)))
@pytest.mark.fire(
    "what a hostile answer costs follows the limits", "peak memory of random scoring answers"
)
def test_a_scoring_answer_of_any_shape_takes_memory_by_its_limits(
    shape: tuple[str, bytes], size: int, place: str
) -> None:
    body = SCORING[place] % SHAPES[shape[0]](shape[1], size)
    assert peak(scoring, body) <= MANY * RESULT_BYTES + 2 * len(body) + MIB


@settings(max_examples=100, deadline=None)
@given(shapes, sizes, st.sampled_from(sorted(QUERY)))
@pytest.mark.fire(
    "what a hostile answer costs follows the limits", "peak memory of random query results"
)
def test_a_query_result_of_any_shape_takes_memory_by_its_limits(
    shape: tuple[str, bytes], size: int, place: str
) -> None:
    body = QUERY[place] % SHAPES[shape[0]](shape[1], size)
    assert peak(query, body) <= MANY * SERIES_BYTES + 2 * MIB


@pytest.mark.parametrize(
    ("parse", "body"),
    [
        (scoring, SCORING["results"] % b"[%b]" % repeated(b"1", MIB)),
        (scoring, SCORING["labels"] % b"{%b}" % distinct(b'"#":"x"', MIB)),
        (query, QUERY["result"] % b"[%b]" % repeated(b"1", MIB)),
        (query, QUERY["values"] % b"[%b]" % repeated(b'[1,"1"]', MIB)),
        (query, QUERY["labels"] % b"{%b}" % distinct(b'"#":"x"', MIB)),
        (query, QUERY["warnings"] % b"[%b]" % repeated(b'"aa"', MIB)),
    ],
    ids=["no results", "labels of a result", "no series", "samples", "labels", "warnings"],
)
def test_what_once_took_gigabytes_takes_little(parse: Parse, body: bytes) -> None:
    """Of the same shapes 10 to 32 MB took 0.5 to 4.4 GiB, and the first of them 44 s."""
    assert peak(parse, body) < 2 * MIB
    assert seconds(parse, body) < 3 * seconds(json.loads, body)


@pytest.mark.parametrize(
    "shape", ["escaped text", pytest.param("unterminated text", marks=pytest.mark.exhaustive)]
)
def test_looking_for_nan_takes_time_by_the_length_alone(shape: str) -> None:
    def body(size: int) -> bytes:
        return b'{"results":[{"score":NaN,"more":%b}]}' % SHAPES[shape](b"", size)

    assert seconds(scoring, body(8 * MIB)) < 40 * max(seconds(scoring, body(MIB)), 1e-3)


@pytest.mark.exhaustive
def test_the_most_that_is_accepted_takes_what_is_reserved_for_it() -> None:
    result = b'{"metric":{"node":"n","namespace":"shop","pod":"web-#"},"score":1.5}'
    body = b'{"results":[%b]}' % distinct(result, MIB)
    found = scoring(body, 20_000)
    assert isinstance(found, list)
    assert peak(lambda one: scoring(one, 20_000), body) < len(found) * RESULT_BYTES
    body = QUERY["result"] % b"[%b]" % distinct(b'{"metric":{"a":"#"},"value":[1,"2"]}', MIB)
    series = query(body, 50_000)
    assert isinstance(series, FetchedSeries)
    assert peak(lambda one: query(one, 50_000), body) < len(series.series) * SERIES_BYTES


def test_a_long_sample_among_many_is_refused() -> None:
    long = b'[1,"%b"]' % (b"9" * (1 << 16))
    for samples in (b"[%b]" % long, b'[[1,"2"],%b,[3,"4"]]' % long):
        found = query(QUERY["values"] % samples)
        assert isinstance(found, Failure)
        assert "series 0: a sample of more than 65536 bytes" in found.message


def test_many_samples_are_validated_to_the_last() -> None:
    samples = b"[%b" % repeated(b' [1.5 , "2"] ', MIB)
    good = query(QUERY["values"] % (samples + b"]"))
    assert isinstance(good, FetchedSeries)
    assert bytes(good.series[0].values) == samples + b"]"
    for bad in (b",[1,2]]", b',[1,"1",2]]', b",[]]", b",1]", b',{"a":"1"}]'):
        found = query(QUERY["values"] % (samples + bad))
        assert isinstance(found, Failure)
        assert "series 0: " in found.message
