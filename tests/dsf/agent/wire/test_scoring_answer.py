import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.scoring_answer import parse_scoring_answer


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>hello</html>", "malformed"),
        (b"", "malformed"),
        (b'{"results": [{"metric": {"a": "\xff"}, "score": 1}]}', "results[0]: labels"),
        (b"[" * 100_000, "Expected `object`"),
        (b"{}", "results"),
        (b'{"results": null}', "results"),
        (b'{"results": [{"metric": {}}]}', "results[0]"),
        (b'{"results": [{"score": null}]}', "results[0]: score: expected a number, got null"),
        (b'{"results": [{"score": true}]}', "results[0]: score: expected a number, got true"),
        (b'{"results": [{"score": "high"}]}', 'results[0]: score: expected a number, got "high"'),
        (
            b'{"results": [{"score": ' + b"9" * 2000 + b"}]}",
            "results[0]: score: more than 1024 bytes",
        ),
        (
            b'{"results": [{"score": 1, "metric": {"pod": 5}}]}',
            "results[0]: labels: Expected `str`, got `int`",
        ),
    ],
)
def test_what_is_no_scoring_response_is_named_by_its_place(body: bytes, said: str) -> None:
    found = parse_scoring_answer(
        "http://u:canary@scorer/scoring", HttpAnswer(200, "text/html", body), 100
    )
    assert isinstance(found, Failure)
    assert found.reason == "InvalidResponse"
    assert "http://scorer/scoring answered 200 (text/html)" in found.message
    assert said in found.message


@pytest.mark.parametrize(
    "result",
    [b'{"score":1}', b'{"metric":{"pod":"a"},"score":1}', b'{"score":1,"more":[{},{},{}]}'],
)
def test_more_results_than_memory_is_there_for_are_refused(result: bytes) -> None:
    body = b'{"results": [%b]}' % b",".join([result] * 5)
    found = parse_scoring_answer("http://scorer/scoring", HttpAnswer(200, "", body), 4)
    assert isinstance(found, Failure)
    assert found.reason == "ResponseTooLarge"
    assert "http://scorer/scoring has more than 4 results" in found.message
    most = b'{"results": [%b]}' % b",".join([b'{"metric":{"pod":"a"},"score":1}'] * 4)
    assert isinstance(
        parse_scoring_answer("http://scorer/scoring", HttpAnswer(200, "", most), 4), list
    )


def test_results_keep_their_order_labels_and_scores() -> None:
    body = b'{"results": [{"metric": {"pod": "b", "x": ""}, "score": 2.5}, {"score": -1}]}'
    found = parse_scoring_answer("http://scorer/scoring", HttpAnswer(200, "", body), 4)
    assert isinstance(found, list)
    read = [(result.metric, result.score) for result in found]
    assert read == [({"pod": "b", "x": ""}, 2.5), ({}, -1.0)]


@pytest.mark.parametrize("number", [b"NaN", b"1e999", b"-Infinity", b"9" * 400])
def test_numbers_beyond_all_bounds_are_left_to_the_rules_for_scores(number: bytes) -> None:
    body = b'{"results": [{"score": ' + number + b"}]}"
    assert isinstance(parse_scoring_answer("http://x", HttpAnswer(200, "", body), 100), list)


@given(st.binary(max_size=200))
@pytest.mark.fire("a hostile server is a failure with a reason", "random bodies to the agent")
def test_any_body_gives_a_value(body: bytes) -> None:
    assert isinstance(
        parse_scoring_answer("http://x", HttpAnswer(200, "", body), 100), list | Failure
    )
