"""A real Prometheus sends the recorded error responses, and the agent reports them."""

import json

import pytest

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.prometheus_answer import parse_query_answer
from tests.real_sources.recorded.record import FILE, REQUESTS, ask

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))


def test_every_request_is_recorded() -> None:
    assert list(RECORDED) == list(REQUESTS)


@pytest.mark.parametrize("name", REQUESTS)
def test_prometheus_says_so(prometheus: str, name: str) -> None:
    said = ask(prometheus, name)
    assert said["status"] == RECORDED[name]["status"]
    parsed = parse_query_answer(
        "http://h/", HttpAnswer(said["status"], said["content_type"], said["body"].encode())
    )
    recorded = RECORDED[name]
    again = parse_query_answer(
        "http://h/",
        HttpAnswer(recorded["status"], recorded["content_type"], recorded["body"].encode()),
    )
    assert isinstance(parsed, Failure)
    assert isinstance(again, Failure)
    assert parsed.reason == again.reason
    if said["body"] != recorded["body"]:
        # Another version words it otherwise, but in the same form.
        assert json.loads(said["body"]).keys() == json.loads(recorded["body"]).keys()
