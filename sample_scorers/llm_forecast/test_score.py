# SPDX-License-Identifier: Apache-2.0
"""The template: what is asked, which replies are forecasts, and what agents are answered."""

import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..scoring_service.application import ServedScorer, create_app
from ..scoring_service.testing import client, served
from .__main__ import LanguageModel
from .fake_model import FakeModel, Reply, Server
from .fake_model import question as asked_question
from .score import MOST_SERIES, Question, UnusableReply, config, question, read_reply, score


def about(*values: float) -> Question:
    return question([(60 * n, value) for n, value in enumerate(values)])


TWO = [about(1, 2), about(1, 2, 3)]


@pytest.mark.parametrize(
    "text",
    [
        '{"forecasts": [{"id": 1, "value": 2.5}, {"id": 0, "value": "1"}]}',
        '<think>{"forecasts": []}</think>\n{"forecasts":[{"id":0,"value":1},{"id":1,"value":2.5}]}',
        'So:\n```json\n{ "forecasts": [{"id":0,"value":1},{"id":1,"value":2.5,"y":"{"}]}\n``` }',
    ],
)
def test_an_answer_is_found_among_other_text(text: str) -> None:
    assert read_reply(text, TWO) == [1, 2.5]


@pytest.mark.parametrize(
    "text",
    [
        '{"forecasts": [{"id": 0, "value": 1}, {"id": 0, "value": 2}]}',
        '{"forecasts": [{"id": 0, "value": 1}, {"id": 2, "value": 2}]}',
        '{"forecasts": [{"id": 0, "value": 1}, {"id": 1, "value": 1}, {"id": 1, "value": 2}]}',
        '{"forecasts": [{"id": 0, "value": 1}, {"id": 1, "value": null}]}',
    ],
)
def test_an_answer_that_is_not_one_forecast_for_each_is_unusable(text: str) -> None:
    assert isinstance(read_reply(text, TWO), UnusableReply)


@given(st.text() | st.text().map(lambda more: '{"forecasts": [{"id": 0, "value": ' + more))
def test_any_reply_is_read_or_unusable(text: str) -> None:
    answer = read_reply(text, TWO[:1])
    assert isinstance(answer, UnusableReply) or len(answer) == 1


@pytest.mark.parametrize(
    ("values", "value", "possible"),
    [
        ((0.5, 0.5), 0.6, True),
        ((0.0, 0.0), 0.9, True),
        ((0.5, 0.5), -0.01, False),
        ((0.5, 0.5), 6.1, False),
        ((1000.0, 900.0), 2000.0, True),
        ((1000.0, 900.0), 2100.0, False),
        ((3000.0, 900.0), 2900.0, True),
        ((-4.0, 2.0), -3.0, True),
    ],
)
def test_what_no_machine_can_use_is_refused(
    values: tuple[float, ...], value: float, possible: bool
) -> None:
    reply = json.dumps({"forecasts": [{"id": 0, "value": value}]})
    assert (read_reply(reply, [about(*values)]) == [value]) == possible


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Server, str]]:
    found = Server()
    with served(found.app()) as url:
        yield found, f"{url}/v1"


@pytest.fixture(scope="module")
def http(
    server: tuple[Server, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("dummy-token-1234")
    model = LanguageModel(server[1], "tiny", token)
    app = create_app(ServedScorer(config(), lambda series: score(series, model.ask)))
    with client(app) as found:
        yield found


@pytest.fixture
def model(server: tuple[Server, str]) -> FakeModel:
    server[0].model = FakeModel()
    return server[0].model


def data(count: int = 1) -> dict[str, object]:
    """Return series whose last values are 0, 1, 2 and so on."""
    values = [[0, "1"], [60, "2"]]
    return {
        "data": [
            {"metric": {"pod": str(n)}, "values": [*values, [120, str(n)]]} for n in range(count)
        ]
    }


def test_each_series_gets_its_own_forecast_and_no_label_reaches_the_model(
    http: httpx.Client, model: FakeModel
) -> None:
    answer = http.post("/scoring", json=data(3))
    assert answer.json() == {"results": [{"metric": {"pod": str(n)}, "score": n} for n in range(3)]}
    (asked,) = model.asked
    assert asked_question(asked)["series"][1] == {"id": 1, "step_seconds": 60, "values": [1, 2, 1]}
    assert "pod" not in json.dumps(asked)
    assert model.tokens == ["Bearer dummy-token-1234"]


def test_nothing_is_asked_for_no_series_or_too_many(http: httpx.Client, model: FakeModel) -> None:
    assert http.post("/scoring", json=data(0)).json() == {"results": []}
    assert http.post("/scoring", json=data(MOST_SERIES + 1)).status_code == 422
    assert model.asked == []


@pytest.mark.parametrize(
    ("reply", "status", "told"),
    [
        ("no idea", 502, "has no forecasts"),
        ('{"forecasts": [{"id": 0, "value": true}]}', 502, "true and false are no numbers"),
        ('{"forecasts": [{"id": 0, "value": 2000}]}', 502, "outside its physical range, 0 to 21"),
        ((500, "out of memory"), 502, "answered 500"),
        ((401, ""), 502, "check the model's name and token"),
        ((200, '{"choices": []}'), 502, "did not answer with a completion"),
        ((200, " " * 300_000), 502, "answers too much"),
    ],
)
def test_a_failing_model_gives_no_scores_and_says_why(
    http: httpx.Client, model: FakeModel, reply: Reply, status: int, told: str
) -> None:
    model.replies = [reply]
    answer = http.post("/scoring", json=data())
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert told in answer.json()["detail"]


@pytest.mark.parametrize(("wait", "kept"), [("30", "30"), ("9" * 30, "3600")])
def test_a_pause_is_handed_on_at_most_an_hour(
    http: httpx.Client, model: FakeModel, wait: str, kept: str
) -> None:
    model.replies = [(429, "busy", {"Retry-After": wait})]
    answer = http.post("/scoring", json=data())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, kept)


def test_a_model_that_is_away_is_told() -> None:
    away = LanguageModel("http://127.0.0.1:9/v1", "tiny")
    app = create_app(ServedScorer(config(), lambda series: score(series, away.ask)))
    with client(app) as http:
        answer = http.post("/scoring", json=data())
    assert answer.status_code == 502
    assert "no answer from http://127.0.0.1:9/v1" in answer.json()["detail"]
