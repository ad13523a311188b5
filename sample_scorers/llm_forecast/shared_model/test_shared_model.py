# SPDX-License-Identifier: Apache-2.0
"""The scorer for a shared model, against a stand-in for an OpenAI-compatible server."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...scoring_service.testing import client, served
from ..fake_model import FakeModel, Reply, Server, question
from ..score import MOST_CORES, Question
from ..score import data as prompt_data
from .app import create_app
from .completion_api import endpoint
from .forecaster import ForecastCache
from .model_client import MAX_REPLY_BYTES, ForecastSettings, ModelHealth, TokenBudget
from .prompt import BATCH_SIZE, MAX_POINTS, batches
from .prompt import question as question_about

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
    for count in (1, 2):
        assert post(data(count)).json()["results"][-1]["score"] == count - 1
    assert ["response_format" in each for each in model.asked] == [True, False, False]


def test_an_unusable_reply_is_asked_for_once_more(model: FakeModel) -> None:
    model.replies = ["I would rather not", json.dumps({"forecasts": [{"id": 0, "value": 7}]})]
    assert scorer(model.url)(data()).json()["results"][0]["score"] == 7


FAILURES: dict[str, tuple[Reply, str]] = {
    "prose": ("no idea", "has no forecasts"),
    "a missing series": ('{"forecasts": []}', "one forecast for each of 1 series"),
    "NaN": ('{"forecasts": [{"id": 0, "value": NaN}]}', "finite number"),
    "1e12 cores": ('{"forecasts": [{"id": 0, "value": 1e12}]}', "outside its physical range"),
    "-5 cores": ('{"forecasts": [{"id": 0, "value": -5}]}', "outside its physical range"),
    "overflow": ('{"forecasts": [{"id": 0, "value": 1e999}]}', "finite number"),
    "broken JSON": ('{"forecasts": [{"id": 0', "JSON is broken"),
    "deep JSON": ('{"forecasts": ' + "[" * 20_000, "JSON is broken"),
    "server error": ((500, "out of memory"), "answered 500 for model tiny: out of memory"),
    "unknown model": ((404, "no model tiny"), "answered 404"),
    "requires a token": ((401, ""), "requires a token"),
    "no completion": ((200, "{}"), "check VLLM_ENDPOINT"),
    "no choice": ((200, '{"choices": []}'), "check VLLM_ENDPOINT"),
    "no text": ((200, '{"choices": [{"message": {"content": null}}]}'), "check MODEL_NAME"),
    "a refusal": (
        (200, '{"choices": [{"message": {"content": null, "refusal": "I can\'t do that"}}]}'),
        "the model refused to forecast: I can't do that",
    ),
    "a content filter": (
        (200, '{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}'),
        "the model refused to forecast: a content filter",
    ),
    "a filtered prompt": (
        (400, '{"error": {"code": "content_filter", "message": "filtered"}}'),
        "the model refused to forecast",
    ),
    "a long-winded model": (
        (200, '{"choices": [{"message": {"content": "Let"}, "finish_reason": "length"}]}'),
        "raise --max-reply-tokens",
    ),
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
    ("given_url", "url"),
    [
        ("http://m:8000", "http://m:8000/v1/chat/completions"),
        ("http://m:8000/", "http://m:8000/v1/chat/completions"),
        ("http://m/v1", "http://m/v1/chat/completions"),
        ("http://m/v1/", "http://m/v1/chat/completions"),
        ("https://m/openai", "https://m/openai/chat/completions"),
        ("http://m/v1/chat/completions", "http://m/v1/chat/completions"),
        ("http://m/v1/completions", "http://m/v1/completions"),
    ],
)
def test_the_endpoint_is_completed(given_url: str, url: str) -> None:
    found = endpoint(given_url, "tiny")
    assert found.url == url
    assert found.api == ("chat" if "chat" in url else "completions")
    assert found.models_url == url.replace("/chat", "").replace("completions", "models")


def about(*values: float) -> Question:
    return question_about([(60 * n, value) for n, value in enumerate(values)], 0, MOST_CORES)


points = st.lists(
    st.tuples(st.floats(0, 1e11), st.floats(-1e100, 1e100)), min_size=1, max_size=200
).map(sorted)


@given(st.lists(points, max_size=25))
def test_a_question_is_bounded_and_no_series_is_lost(
    series: list[list[tuple[float, float]]],
) -> None:
    until = max((each[-1][0] for each in series), default=0)
    questions = [question_about(each, until, MOST_CORES) for each in series]
    assert [each for batch in batches(questions) for each in batch] == questions
    for batch in batches(questions):
        assert len(batch) <= BATCH_SIZE
        sent = json.loads(prompt_data(batch))["series"]
        assert [each["id"] for each in sent] == list(range(len(batch)))
        assert all(1 <= len(each["values"]) <= MAX_POINTS for each in sent)
        # A number has at most a sign, four digits, a point and an exponent.
        assert len(json.dumps(sent)) < len(batch) * (100 + 16 * MAX_POINTS)


@given(points)
def test_the_samples_themselves_are_always_possible(found: list[tuple[float, float]]) -> None:
    asked = question_about(found, 0, MOST_CORES)
    assert all(asked.lowest <= value <= asked.highest for _, value in found)


@pytest.mark.parametrize(
    ("times", "until", "step", "values"),
    [
        ([0, 60, 120], 120, 60, [0, 1, 2]),
        ([0, 60, 240, 300], 300, 60, [0, 1, None, None, 2, 3]),
        ([0, 60, 120], 240, 60, [0, 1, 2, None, None]),
        ([0, 59, 121, 180], 180, 59, [0, 1, 2, 3]),
        ([5], 5, 0, [0]),
        ([0], 60, 60, [0, None]),
        ([0, 0, 60], 60, 60, [0.5, 2]),
        (range(0, 6000, 60), 5940, 180, [3 * n + 1 for n in range(33)] + [99]),
    ],
)
def test_gaps_are_told_as_gaps(
    times: list[float], until: float, step: int, values: list[float | None]
) -> None:
    found = question_about([(time, n) for n, time in enumerate(times)], until, MOST_CORES)
    assert (found.step_seconds, list(found.values)) == (step, values)


def test_a_series_that_ended_before_the_others_has_a_gap_at_its_end(model: FakeModel) -> None:
    series = [
        {"metric": {"pod": pod}, "values": [[time, "1"] for time in times]}
        for pod, times in (("gone", [0, 60]), ("here", [0, 60, 120, 180]))
    ]
    scorer(model.url)({"data": series})
    sent = [each["values"] for each in question(model.asked[0])["series"]]
    assert sent == [[1, 1, None, None], [1, 1, 1, 1]]


def test_plain_completions_are_asked_of_models_without_a_chat_template(model: FakeModel) -> None:
    answer = scorer(model.url, api="completions")(data(3))
    assert [each["score"] for each in answer.json()["results"]] == [0, 1, 2]
    assert "messages" not in model.asked[0]
    assert "null where nothing was measured" in model.asked[0]["prompt"]
    assert "pod-0" not in json.dumps(model.asked)


def test_an_equal_question_has_an_equal_answer_and_is_asked_once(model: FakeModel) -> None:
    post = scorer(model.url)
    model.replies = [json.dumps({"forecasts": [{"id": 0, "value": value}]}) for value in (1, 2)]
    scores = [post(data()).json()["results"][0]["score"] for _ in range(3)]
    assert scores == [1, 1, 1]
    assert len(model.asked) == 1


def test_another_token_does_not_read_the_forecasts_of_the_first(model: FakeModel) -> None:
    post = scorer(model.url)
    post(data(), Authorization="Bearer dummy-token-1234")
    model.replies = [(401, "")]
    assert post(data(), Authorization="Bearer dummy-token-5678").status_code == 502
    assert post(data(), Authorization="Bearer dummy-token-1234").status_code == 200


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_not_asked_again_before_it_wants_to_be(
    model: FakeModel, status: int
) -> None:
    post = scorer(model.url)
    model.replies = [(status, "busy", {"Retry-After": "600"})]
    first, second = post(data()), post(data(2))
    assert (first.status_code, first.headers["retry-after"]) == (503, "600")
    assert second.status_code == 503
    assert 0 < int(second.headers["retry-after"]) <= 600
    assert "asked for a pause" in second.json()["detail"]
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("30", "30"),
        ("999999999999999999999", "3600"),
        ("Fri, 31 Dec 9999 23:59:59 GMT", "3600"),
        ("Sat, 01 Jan 2000 00:00:00 GMT", "0"),
        ("soon", None),
        ("-5", None),
        ("1e999", None),
    ],
)
def test_retry_after_is_kept_within_what_an_agent_waits(
    model: FakeModel, header: str, kept: str | None
) -> None:
    model.replies = [(429, "busy", {"Retry-After": header})]
    assert scorer(model.url)(data()).headers.get("retry-after") == kept


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "estimated"])
def test_the_token_budget_ends_the_questions_of_an_hour(model: FakeModel, counted: bool) -> None:
    model.tokens_used = 1000 if counted else None
    post = scorer(model.url, tokens_per_hour=50, concurrency=1)
    assert post(data()).status_code == 200
    answer = post(data(2))
    assert answer.status_code == 503
    assert 3000 < int(answer.headers["retry-after"]) <= 3600
    assert "--tokens-per-hour" in answer.json()["detail"]
    assert post(data()).status_code == 200, "what is known costs no tokens"
    assert len(model.asked) == 1


def test_tokens_are_free_again_an_hour_after_they_were_spent() -> None:
    budget = TokenBudget(100)
    for at, tokens in ((0.0, 60), (600.0, 30), (1200.0, 40)):
        assert budget.wait(at) == 0
        budget.spend(at, tokens)
    assert budget.wait(1200.0) == 2400, "without the first there are 70"
    assert budget.wait(3599.0) == 1
    assert budget.wait(3600.0) == 0
    budget.spend(3600.0, 500)
    assert budget.wait(3600.0) == 3600
    assert budget.wait(7200.0) == 0


def test_without_a_limit_there_is_no_waiting() -> None:
    budget = TokenBudget(None)
    budget.spend(0.0, 10**9)
    assert budget.wait(0.0) == 0


def test_the_forecast_that_was_used_longest_ago_makes_room() -> None:
    first, second, third = (about(value) for value in (1, 2, 3))
    cache = ForecastCache(most=2)
    cache.put(None, first, 1)
    cache.put(None, second, 2)
    assert cache.get(None, first) == 1
    cache.put(None, third, 3)
    assert [cache.get(None, each) for each in (first, second, third)] == [1, None, 3]
    assert cache.get("token", first) is None


def test_a_reply_has_a_limit_of_tokens(model: FakeModel) -> None:
    scorer(model.url, max_reply_tokens=77)(data())
    assert model.asked[0]["max_tokens"] == 77


@pytest.mark.parametrize("reply", [(500, "broken"), "no idea", (429, "", {"Retry-After": "9"})])
def test_a_fallback_says_that_it_is_one(model: FakeModel, reply: Reply) -> None:
    model.replies = [reply]
    values = [[60 * n, str(n)] for n in range(30)]
    asked = {"data": [{"metric": {"pod": "a"}, "values": values}]}
    answer = scorer(model.url, fallback=True)(asked)
    assert answer.status_code == 200
    assert answer.json()["results"] == [
        {"metric": {"pod": "a", "meta": "statistical-fallback"}, "score": 24.5}
    ]


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_only_the_series_of_the_failed_question_fall_back(
    model: FakeModel, failed: int, caplog: pytest.LogCaptureFixture
) -> None:
    forecasts = json.dumps({"forecasts": [{"id": n, "value": 0.25} for n in range(BATCH_SIZE)]})
    model.replies = [(500, "broken") if n == failed else forecasts for n in range(3)]
    answer = scorer(model.url, fallback=True, concurrency=1)(data(3 * BATCH_SIZE)).json()
    metas = [each["metric"].get("meta") for each in answer["results"]]
    ours = slice(failed * BATCH_SIZE, (failed + 1) * BATCH_SIZE)
    assert metas[ours] == ["statistical-fallback"] * BATCH_SIZE
    assert metas.count(None) == 2 * BATCH_SIZE
    assert "answered 500 for model tiny: broken" in caplog.text


def test_a_fallback_is_not_kept_as_a_forecast(model: FakeModel) -> None:
    post = scorer(model.url, fallback=True)
    model.replies = [(500, "broken"), json.dumps({"forecasts": [{"id": 0, "value": 7}]})]
    assert "meta" in post(data()).json()["results"][0]["metric"]
    assert post(data()).json()["results"] == [{"metric": {"pod": "pod-0"}, "score": 7}]


def test_a_token_of_the_model_is_sent_instead_of_the_agents(
    model: FakeModel, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("dummy-token-5678\n")
    scorer(model.url, model_token_file=file)(data(), Authorization="Bearer dummy-token-1234")
    assert model.tokens == ["Bearer dummy-token-5678"]


def health(endpoint: str, **settings: Any) -> httpx.Response:
    app = create_app(ForecastSettings(endpoint, "tiny", **settings))
    with client(app) as http:
        return http.get("/healthz")


def test_health_knows_that_the_model_answers(model: FakeModel) -> None:
    assert health(model.url).json() == {"status": "ok", "model": "answers"}
    assert model.asked == [], "it costs no tokens"


def test_health_asks_the_model_at_most_every_ten_seconds(model: FakeModel) -> None:
    times = iter([0.0, 0.5, 10.4, 10.5, 11.0])
    asked = ModelHealth(ForecastSettings(model.url, "tiny"), lambda: next(times))
    found = list[str | None]()

    async def asking() -> None:
        for model.models_status in (503, 200, 200):
            found.append(await asked.trouble())

    asyncio.run(asking())
    assert [trouble is None for trouble in found] == [False, False, True]
    assert model.listed == 2


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_that_refuses_to_list_its_models_is_there(model: FakeModel, status: int) -> None:
    model.models_status = status
    assert health(model.url).status_code == 200


def test_health_knows_that_a_model_is_loading(model: FakeModel) -> None:
    model.models_status = 503
    answer = health(model.url)
    assert answer.status_code == 503
    assert "loading" in answer.json()["detail"]


def test_a_scorer_with_a_fallback_is_healthy_without_its_model() -> None:
    assert health("http://127.0.0.1:9").status_code == 503
    answer = health("http://127.0.0.1:9", fallback=True)
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
