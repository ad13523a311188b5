"""The LLM forecast scorer against a stand-in for an OpenAI-compatible server."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_scorers.llm_forecast.app import create_app
from sample_scorers.llm_forecast.model_client import MAX_REPLY_BYTES, completions_url
from sample_scorers.llm_forecast.prompt import (
    BATCH_SIZE,
    MAX_POINTS,
    UnusableReply,
    batches,
    messages,
    read_reply,
)
from sample_scorers.llm_forecast.settings import ForecastSettings
from tests.sample_scorers.fake_model import FakeModel, Reply, Server, question
from tests.sample_scorers.serving import client, served

Post = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Server, str]]:
    server = Server()
    with served(server.app()) as url:
        yield server, url


@pytest.fixture
def model(server: tuple[Server, str]) -> FakeModel:
    """Return a fresh model, which has the server's address for this test."""
    found, url = server
    found.model = FakeModel(url=f"{url}/v1")
    return found.model


def scorer(endpoint: str, **limits: Any) -> Post:
    """Return a function that posts series to a scorer, in process; the model is reached by HTTP."""
    app = create_app(ForecastSettings(endpoint=endpoint, model="tiny", **limits))

    async def post(json: object, headers: dict[str, str]) -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://scorer") as http:
            raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            return await http.post("/scoring", json=json, headers=raw)

    return lambda json, **headers: asyncio.run(post(json, headers))


def data(count: int = 1) -> dict[str, Any]:
    """Return series whose last values are 0, 1, 2 and so on."""
    return {
        "data": [
            {"metric": {"pod": f"pod-{n}"}, "values": [[0, "1"], [60, "2"], [120, str(n)]]}
            for n in range(count)
        ]
    }


def test_each_series_gets_its_own_forecast_over_several_questions(model: FakeModel) -> None:
    answer = scorer(model.url)(data(25))
    assert answer.json() == {
        "results": [{"metric": {"pod": f"pod-{n}"}, "score": n} for n in range(25)]
    }
    assert sorted(len(question(each)["series"]) for each in model.asked) == [5, 10, 10]


def test_the_question_names_the_model_and_asks_for_the_schema(model: FakeModel) -> None:
    scorer(model.url)(data())
    assert model.asked[0]["model"] == "tiny"
    schema = model.asked[0]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["forecasts"]
    assert question(model.asked[0]) == {
        "horizon_seconds": 600,
        "series": [{"id": 0, "step_seconds": 60, "values": [1, 2, 0]}],
    }


def test_no_label_reaches_the_model(model: FakeModel) -> None:
    scorer(model.url)(data())
    assert model.asked
    assert "pod-0" not in json.dumps(model.asked)


def test_series_without_a_finite_sample_are_left_out_and_nothing_is_asked_for_nothing(
    model: FakeModel,
) -> None:
    empty = {"data": [{"metric": {}, "values": [[1, "NaN"]]}]}
    assert scorer(model.url)(empty).json() == {"results": []}
    assert model.asked == []


def test_the_bearer_token_is_handed_on(model: FakeModel) -> None:
    post = scorer(model.url)
    post(data(), Authorization="bearer dummy-token-1234")
    post(data())
    assert model.tokens == ["Bearer dummy-token-1234", None]


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "Bearer a b", "Bearer t\u00f6ken"])
def test_a_malformed_authorization_is_refused_without_repeating_it(
    model: FakeModel, header: str
) -> None:
    answer = scorer(model.url)(data(), Authorization=header)
    assert (answer.status_code, model.asked) == (400, [])
    assert "must be: Bearer <token>" in answer.json()["detail"]
    credentials = header.partition(" ")[2]
    assert not credentials or credentials not in answer.text


def test_a_server_without_structured_output_is_asked_without_it_and_remembered(
    model: FakeModel,
) -> None:
    model.takes_schema = False
    post = scorer(model.url)
    for _ in range(2):
        assert post(data()).json()["results"][0]["score"] == 0
    assert ["response_format" in each for each in model.asked] == [True, False, False]


def test_an_unusable_reply_is_asked_for_once_more(model: FakeModel) -> None:
    model.replies = ["I would rather not", json.dumps({"forecasts": [{"id": 0, "value": 7}]})]
    assert scorer(model.url)(data()).json()["results"][0]["score"] == 7


FAILURES: dict[str, tuple[Reply, str]] = {
    "prose": ("no idea", "has no forecasts"),
    "a missing series": ('{"forecasts": []}', "one forecast for each of 1 series"),
    "NaN": ('{"forecasts": [{"id": 0, "value": NaN}]}', "finite number"),
    "overflow": ('{"forecasts": [{"id": 0, "value": 1e999}]}', "finite number"),
    "broken JSON": ('{"forecasts": [{"id": 0', "JSON is broken"),
    "deep JSON": ('{"forecasts": ' + "[" * 20_000, "JSON is broken"),
    "server error": ((500, "out of memory"), "answered 500 for model tiny: out of memory"),
    "unknown model": ((404, "no model tiny"), "answered 404"),
    "requires a token": ((401, ""), "requires a token"),
    "no completion": ((200, "{}"), "check VLLM_ENDPOINT"),
    "no choice": ((200, '{"choices": []}'), "check VLLM_ENDPOINT"),
    "no text": ((200, '{"choices": [{"message": {"content": null}}]}'), "check VLLM_ENDPOINT"),
    "redirect": ((307, ""), "answered 307"),
    "long reply": ((200, " " * (MAX_REPLY_BYTES + 1)), "longer than"),
    "no JSON": ((200, "\x00\ud7ff"), "check VLLM_ENDPOINT"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_model_gives_502_with_what_to_do_and_no_scores(
    model: FakeModel, name: str
) -> None:
    reply, said = FAILURES[name]
    model.replies = [reply]
    answer = scorer(model.url)(data())
    assert answer.status_code == 502
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]
    assert "results" not in answer.json()


def test_one_failing_question_fails_the_request_and_ends_the_others(model: FakeModel) -> None:
    model.replies = [(500, "busy"), None]
    answer = scorer(model.url, concurrency=2)(data(BATCH_SIZE * 3))
    assert answer.status_code == 502
    assert "busy" in answer.json()["detail"]


def test_a_refused_token_is_told_and_neither_answered_nor_logged(
    model: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = "canary-3f9a"
    for status in (401, 400):
        model.replies = [(status, f"bad key {token}")]
        answer = scorer(model.url)(data(), Authorization=f"Bearer {token}")
        assert answer.status_code == 502
        assert token not in answer.text
    assert model.tokens[-1] == f"Bearer {token}"
    assert caplog.records
    assert token not in caplog.text


def test_a_model_that_is_away_is_told() -> None:
    answer = scorer("http://127.0.0.1:9/v1")(data())
    assert answer.status_code == 502
    assert "no answer from http://127.0.0.1:9/v1/chat/completions" in answer.json()["detail"]


def test_an_endpoint_with_an_impossible_name_is_told() -> None:
    assert scorer("http://é..x/v1")(data()).status_code == 502


def test_the_deadline_ends_a_slow_model(model: FakeModel) -> None:
    model.replies = [None]
    answer = scorer(model.url, deadline=2.0)(data())
    assert answer.status_code == 502
    assert "within 2 s" in answer.json()["detail"]
    assert model.left.wait(timeout=120), "the question was not called off"


def test_questions_are_asked_a_few_at_a_time_over_all_requests(model: FakeModel) -> None:
    model.replies = [0.3]

    async def twice(url: httpx.URL) -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120) as http:
            posts = [http.post("/scoring", json=data(BATCH_SIZE * 4)) for _ in range(2)]
            return await asyncio.gather(*posts)

    with client(create_app(ForecastSettings(model.url, "tiny", concurrency=3))) as http:
        answers = asyncio.run(twice(http.base_url))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(model.asked) == 8
    assert model.most_at_once == 3


def test_more_series_than_allowed_are_refused_before_the_model_is_asked(model: FakeModel) -> None:
    answer = scorer(model.url, max_series=2)(data(3))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/data"
    assert "--max-series" in answer.json()["detail"]
    assert model.asked == []


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://m:8000", "http://m:8000/v1/chat/completions"),
        ("http://m:8000/", "http://m:8000/v1/chat/completions"),
        ("http://m/v1", "http://m/v1/chat/completions"),
        ("http://m/v1/", "http://m/v1/chat/completions"),
        ("https://m/openai", "https://m/openai/chat/completions"),
        ("http://m/v1/chat/completions", "http://m/v1/chat/completions"),
    ],
)
def test_the_endpoint_is_completed(endpoint: str, url: str) -> None:
    assert completions_url(endpoint) == url


@pytest.mark.parametrize(
    "text",
    [
        '{"forecasts": [{"id": 1, "value": 2.5}, {"id": 0, "value": "1"}]}',
        '<think>{"forecasts": []}</think>\n{"forecasts":[{"id":0,"value":1},{"id":1,"value":2.5}]}',
        'So:\n```json\n{ "forecasts": [{"id":0,"value":1},{"id":1,"value":2.5,"y":"{"}]}\n``` }',
    ],
)
def test_an_answer_is_found_among_other_text(text: str) -> None:
    assert read_reply(text, 2) == [1, 2.5]


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
    assert isinstance(read_reply(text, 2), UnusableReply)


@given(st.text() | st.text().map(lambda more: '{"forecasts": [{"id": 0, "value": ' + more))
def test_any_reply_is_read_or_unusable(text: str) -> None:
    answer = read_reply(text, 1)
    assert isinstance(answer, UnusableReply) or len(answer) == 1


points = st.lists(
    st.tuples(st.floats(0, 1e11), st.floats(-1e100, 1e100)), min_size=1, max_size=200
).map(sorted)


@given(st.lists(points, max_size=25))
def test_a_question_is_bounded_and_no_series_is_lost(
    series: list[list[tuple[float, float]]],
) -> None:
    questions = batches(series)
    assert [each for batch in questions for each in batch] == series
    for batch in questions:
        assert len(batch) <= BATCH_SIZE
        sent = json.loads(messages(batch)[-1]["content"])["series"]
        assert [each["id"] for each in sent] == list(range(len(batch)))
        assert all(1 <= len(each["values"]) <= MAX_POINTS for each in sent)
        # A number has at most a sign, four digits, a point and an exponent.
        assert len(json.dumps(sent)) < len(batch) * (100 + 16 * MAX_POINTS)
