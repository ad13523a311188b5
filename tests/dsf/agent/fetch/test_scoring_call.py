import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import AgentSecrets
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.crd.scoring_params import AskedContext, AskedWorkloads
from dsf.api.scoring.scoring_api import CLUSTER_HEADER, SCORE_HEADER, SCORER_HEADER, ScoredWorkload
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import SECRET
from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import Server, replying, scores, serving

SERIES = EncodedSeries('{"pod":"é"}'.encode(), b'[[1.5,"2"],[60,"NaN"]]')


@pytest.fixture
async def api(managed: EmbeddedHub) -> AsyncIterator[ScoringApi]:
    async with http_client() as client:
        yield ScoringApi(
            "worker01",
            client,
            AgentSecrets(managed, "dynamic-scoring", IssuedTokens(client)),
            CallLimits(max_bytes=1 << 20),
        )


@pytest.fixture
async def scorer() -> AsyncIterator[Server]:
    async with serving(replying(scores(({"pod": "a"}, 1.5)))) as server:
        yield server


def asking(server: Server, **changes: Any) -> Any:
    return summary(scoring_endpoint=f"{server.url}/scoring", **changes)


async def score(
    api: ScoringApi, asked: Any, series: Sequence[EncodedSeries]
) -> list[ScoringResult] | Failure:
    deadline = api.deadline(asked)
    answer = await api.call(asked, series, deadline)
    if isinstance(answer, Failure):
        return answer
    return await api.results(asked, answer, deadline)


async def failed(api: ScoringApi, asked: Any) -> Failure:
    found = await score(api, asked, [SERIES])
    assert isinstance(found, Failure)
    assert found.stage == "scoring"
    return found


async def test_series_are_sent_in_matrix_form(api: ScoringApi, scorer: Server) -> None:
    found = await score(api, asking(scorer), [SERIES])

    assert isinstance(found, list)
    assert found[0].score == 1.5
    (call,) = scorer.calls
    assert (call.method, call.path) == ("POST", "/scoring")
    assert call.headers["Content-Type"] == "application/json"
    assert call.json == {"data": [{"metric": {"pod": "é"}, "values": [[1.5, "2"], [60, "NaN"]]}]}


async def test_health_is_asked_at_the_root_of_the_same_host_without_a_token(
    api: ScoringApi, scorer: Server
) -> None:
    asked = asking(scorer, scoring_endpoint_auth_name="no-such-secret")

    assert await api.probe(asked) is None
    (call,) = scorer.calls
    assert (call.method, call.path, call.body) == ("GET", "/healthz", b"")
    assert "Authorization" not in call.headers


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("worker01", "worker01"),
        ("My_score.v2~1", "My_score.v2~1"),
        ("東京", "%E6%9D%B1%E4%BA%AC"),
        ("a\r\nAuthorization: Bearer x", "a%0D%0AAuthorization%3A%20Bearer%20x"),
        ("a\0b/c", "a%00b%2Fc"),
        ("", ""),
    ],
)
async def test_headers_say_who_asks_whatever_the_names_are(
    api: ScoringApi, scorer: Server, name: str, sent: str
) -> None:
    asked = asking(scorer, name=name, score_name=name)

    await score(replace(api, cluster=name), asked, [])
    await replace(api, cluster=name).probe(asked)
    assert len(scorer.calls) == 2
    for call in scorer.calls:
        headers = {key: value for key, value in call.headers.items() if "Dynamic" in key}
        assert headers == dict.fromkeys((CLUSTER_HEADER, SCORE_HEADER, SCORER_HEADER), sent)
        assert "Authorization" not in call.headers


async def test_the_body_has_the_context_that_the_scorer_asks_for(
    api: ScoringApi, scorer: Server
) -> None:
    context = AskedContext(
        cluster=True, labels=["region", "zone"], workloads=AskedWorkloads(), devices=True
    )
    workload = ScoredWorkload(
        namespace="team", name="mwrs", app="app01", requests={"gpu": "2"}, priority=3
    )
    asked = asking(
        scorer, context=context, context_labels={"region": "eu"}, context_workloads=(workload,)
    )
    await score(api, asked, [SERIES])
    await score(api, asking(scorer, context=AskedContext(claims=["id.k8s.io"])), [])
    first, second = (call.json for call in scorer.calls)
    assert first["data"] == [{"metric": {"pod": "é"}, "values": [[1.5, "2"], [60, "NaN"]]}]
    assert first["context"] == {
        "cluster": "worker01",
        "score": asked.score_name,
        "scorer": asked.name,
        "labels": {"region": "eu"},
        "workloads": [
            {
                "namespace": "team",
                "name": "mwrs",
                "app": "app01",
                "requests": {"gpu": "2"},
                "priority": 3,
            }
        ],
        "devices": [],
    }
    assert second == {"data": [], "context": {"claims": {}}}
    assert [int(call.headers["Content-Length"]) for call in scorer.calls] == [
        len(call.body) for call in scorer.calls
    ]


async def test_an_unhealthy_api_may_ask_for_a_pause(api: ScoringApi, scorer: Server) -> None:
    scorer.answer = replying(b"starting", 503, {"Retry-After": "20"})

    found = await api.probe(asking(scorer))
    assert found is not None
    assert (found.reason, found.retry_after, found.outage) == ("ServerError", 20, True)
    assert "/healthz" in found.message


async def test_nobody_there_is_not_healthy(api: ScoringApi) -> None:
    found = await api.probe(summary(scoring_endpoint="http://127.0.0.1:1/scoring"))
    assert found is not None
    assert found.reason == "Unreachable"


async def test_a_token_from_a_secret_is_sent(
    api: ScoringApi, scorer: Server, managed: EmbeddedHub
) -> None:
    data = {"token": b64encode(b"dummy-token-1234").decode()}
    metadata = {"name": "api-auth-secret", "namespace": "dynamic-scoring"}
    await managed.create(SECRET, {"metadata": metadata, "data": data})

    auth = {"scoring_endpoint_auth_name": "api-auth-secret", "scoring_endpoint_auth_key": "token"}
    await score(api, asking(scorer, **auth), [])
    assert scorer.calls[0].headers["Authorization"] == "Bearer dummy-token-1234"


async def test_a_missing_secret_sends_nothing(api: ScoringApi, scorer: Server) -> None:
    asked = asking(scorer, scoring_endpoint_auth_name="x", scoring_endpoint_auth_key="y")
    assert (await failed(api, asked)).reason == "SecretNotFound"
    assert scorer.calls == []


async def test_the_room_of_an_answer_hangs_on_the_label_sets_of_a_score(
    managed: EmbeddedHub, scorer: Server
) -> None:
    scorer.answer = replying(b'{"results": []}' + b" " * (15 << 20))
    async with http_client() as client:
        secrets = AgentSecrets(managed, "dynamic-scoring", IssuedTokens(client))
        for series, allowed in ((1, False), (10_000, False), (20_000, True)):
            api = ScoringApi("worker01", client, secrets, CallLimits(), max_series=series)
            found = await score(api, asking(scorer), [])
            assert isinstance(found, list) is allowed


async def test_a_large_answer_is_decoded_while_other_rounds_go_on(
    api: ScoringApi, scorer: Server
) -> None:
    """Decoding it in the event loop would leave others no turn."""
    body = b'{"results":[%b]}' % b",".join([b'{"metric":{"pod":"a"},"score":1}'] * 20_000)
    asked, turns, decoding = asking(scorer), 0, asyncio.Event()

    async def others() -> None:
        nonlocal turns
        while not decoding.is_set():
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(others())
        answer = HttpAnswer(200, "application/json", body)
        found = await api.results(asked, answer, api.deadline(asked))
        decoding.set()
    assert isinstance(found, list)
    assert turns > 10
