from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import AgentSecrets
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.scoring_call import ScoringApi, parse
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.api.scoring.scoring_api import ScoringResponse
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import SECRET
from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import Server, replying, scores, serving

SERIES = EncodedSeries('{"pod":"é"}'.encode(), b'[[1.5,"2"],[60,"NaN"]]')


@pytest.fixture
async def api(managed: EmbeddedHub) -> AsyncIterator[ScoringApi]:
    async with http_client() as client:
        yield ScoringApi(
            client, AgentSecrets(managed, "dynamic-scoring"), CallLimits(max_bytes=1 << 20)
        )


@pytest.fixture
async def scorer() -> AsyncIterator[Server]:
    async with serving(replying(scores(({"pod": "a"}, 1.5)))) as server:
        yield server


def asking(server: Server, **changes: Any) -> Any:
    return summary(scoring_endpoint=f"{server.url}/scoring", **changes)


async def failed(api: ScoringApi, asked: Any) -> Failure:
    found = await api.score(asked, [SERIES])
    assert isinstance(found, Failure)
    assert found.stage == "scoring"
    return found


async def test_series_are_sent_in_matrix_form(api: ScoringApi, scorer: Server) -> None:
    found = await api.score(asking(scorer), [SERIES])

    assert isinstance(found, ScoringResponse)
    assert found.results[0].score == 1.5
    (call,) = scorer.calls
    assert (call.method, call.path) == ("POST", "/scoring")
    assert call.headers["Content-Type"] == "application/json"
    assert call.json == {"data": [{"metric": {"pod": "é"}, "values": [[1.5, "2"], [60, "NaN"]]}]}


async def test_without_a_source_the_list_is_empty(api: ScoringApi, scorer: Server) -> None:
    await api.score(asking(scorer), [])
    assert scorer.calls[0].json == {"data": []}


async def test_a_token_from_a_secret_is_sent(
    api: ScoringApi, scorer: Server, managed: EmbeddedHub
) -> None:
    data = {"token": b64encode(b"dummy-token-1234").decode()}
    metadata = {"name": "api-auth-secret", "namespace": "dynamic-scoring"}
    await managed.create(SECRET, {"metadata": metadata, "data": data})

    auth = {
        "scoring_endpoint_auth_name": "api-auth-secret",
        "scoring_endpoint_auth_key": "token",
    }
    await api.score(asking(scorer, **auth), [])
    assert scorer.calls[0].headers["Authorization"] == "Bearer dummy-token-1234"


async def test_a_missing_secret_sends_nothing(api: ScoringApi, scorer: Server) -> None:
    asked = asking(scorer, scoring_endpoint_auth_name="x", scoring_endpoint_auth_key="y")
    assert (await failed(api, asked)).reason == "SecretNotFound"
    assert scorer.calls == []


async def test_a_status_is_a_failure_that_names_the_api(api: ScoringApi, scorer: Server) -> None:
    scorer.answer = replying(b"<h1>oops</h1>", 500, headers={"Content-Type": "text/html"})
    found = await failed(api, asking(scorer))
    assert found.reason == "ServerError"
    assert f"{scorer.url}/scoring answered 500 (text/html): <h1>oops</h1>" in found.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>hello</html>", "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b'{"results": [{"metric": {"a": "\xff"}, "score": 1}]}', "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON"),
        (b"{}", "results"),
        (b'{"results": null}', "results"),
        (b'{"results": [{"metric": {}}]}', "results.0.score"),
        (b'{"results": [{"score": null}]}', "results.0.score"),
        (b'{"results": [{"score": 1, "metric": {"pod": 5}}]}', "results.0.metric.pod"),
    ],
)
def test_what_is_no_scoring_response_is_named_by_its_place(body: bytes, said: str) -> None:
    found = parse("http://u:canary@scorer/scoring", HttpAnswer(200, "text/html", body))
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
    found = parse("http://scorer/scoring", HttpAnswer(200, "", body), 4)
    assert isinstance(found, Failure)
    assert found.reason == "ResponseTooLarge"
    assert "http://scorer/scoring has more than 4 results" in found.message
    most = b'{"results": [%b]}' % b",".join([b'{"metric":{"pod":"a"},"score":1}'] * 4)
    assert isinstance(parse("http://scorer/scoring", HttpAnswer(200, "", most), 4), ScoringResponse)


async def test_the_room_of_an_answer_hangs_on_the_label_sets_of_a_score(
    managed: EmbeddedHub, scorer: Server
) -> None:
    scorer.answer = replying(b'{"results": []}' + b" " * (15 << 20))
    async with http_client() as client:
        secrets = AgentSecrets(managed, "dynamic-scoring")
        for series, allowed in ((1, False), (10_000, False), (20_000, True)):
            api = ScoringApi(client, secrets, CallLimits(), max_series=series)
            found = await api.score(asking(scorer), [])
            assert isinstance(found, ScoringResponse) is allowed


@pytest.mark.parametrize("number", [b"NaN", b"1e999", b"-Infinity", b"9" * 400])
def test_numbers_beyond_all_bounds_are_left_to_the_rules_for_scores(number: bytes) -> None:
    body = b'{"results": [{"score": ' + number + b"}]}"
    assert isinstance(parse("http://x", HttpAnswer(200, "", body)), ScoringResponse)


@given(st.binary(max_size=200))
def test_any_body_gives_a_value(body: bytes) -> None:
    assert isinstance(parse("http://x", HttpAnswer(200, "", body)), ScoringResponse | Failure)
