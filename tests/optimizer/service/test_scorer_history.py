"""How scorers did: from a Prometheus that answers in part, in full, or strangely."""

from typing import Any

from aiohttp import web

from optimizer.service.hub.score_history import PrometheusHistory
from optimizer.service.hub.scorer_history import MAX_SCORERS, ScorerHistories, scorer_histories
from optimizer.wire.request_problem import RequestProblem
from tests.dsf.agent.servers import Handler, matrix, replying, serving

NOW = 1_800_000_000
RATE = "dynamic_scoring_last_success_timestamp_seconds"
INSTANT = "topk by"


def answering(scores: Any, rounds: Any, failing: Any) -> Handler:
    """Answer the three queries; None: Prometheus refuses one."""

    async def handler(request: web.Request) -> web.StreamResponse:
        form = await request.post() if request.method == "POST" else request.query
        query = str(form["query"])
        chosen = failing if INSTANT in query else rounds if RATE in query else scores
        refused = {"status": "error", "errorType": "execution", "error": "too many samples"}
        answer = replying(refused, 422) if chosen is None else replying(chosen)
        return await answer(request)

    return handler


def vector(*series: tuple[dict[str, str], str]) -> dict[str, Any]:
    result = [{"metric": metric, "value": [NOW, value]} for metric, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def curve(of: str, *values: tuple[int, str], name: str = "My_Speed") -> Any:
    return {"score_name": name, "of": of}, [[at, value] for at, value in values]


async def told(handler: Handler) -> ScorerHistories | RequestProblem:
    async with serving(handler) as server:
        return await scorer_histories(PrometheusHistory(server.url), 24, NOW)


async def test_each_scorer_has_its_curves_and_the_clusters_where_it_failed_most() -> None:
    scores = matrix(curve("median", (NOW - 1800, "5"), (NOW, "7")), curve("low", (NOW, "1")))
    rounds = matrix(
        curve("age", (NOW, "-30")),
        curve("failed", (NOW, "NaN")),
        curve("skill", (NOW, "0.25")),
        curve("<b>other</b>", (NOW, "1")),
        curve("latency", (NOW, "0.5"), name="another"),
    )
    clusters = [({"score_name": "My_Speed", "cluster": f"c{at}"}, str(at)) for at in range(1, 8)]
    found = await told(answering(scores, rounds, vector(*clusters)))
    assert isinstance(found, ScorerHistories), found
    other, own = found.scorers
    assert (other.score, other.latency, other.age) == ("another", ((NOW, 0.5),), ())
    assert own.score == "my-speed"
    assert own.median == ((NOW - 1800, 5.0), (NOW - 900, None), (NOW, 7.0))
    assert (own.low, own.high, own.age) == (((NOW, 1.0),), (), ((NOW, -30.0),))
    assert (own.failed, own.skill) == (((NOW, None),), ((NOW, 0.25),))
    assert [item.cluster for item in own.failing] == ["c7", "c6", "c5", "c4", "c3"]
    assert found.missing == ()


async def test_what_prometheus_refuses_is_named_and_the_rest_is_told() -> None:
    age = matrix(curve("age", (NOW, "60")))
    found = await told(answering(None, age, vector()))
    assert isinstance(found, ScorerHistories), found
    (reason,) = found.missing
    assert "too many samples" in reason
    assert [item.age for item in found.scorers] == [((NOW, 60.0),)]


async def test_many_scorers_are_bounded_and_nothing_at_all_is_a_problem() -> None:
    many = (curve("age", (NOW, "1"), name=f"s{at:03}") for at in range(MAX_SCORERS + 3))
    found = await told(answering(matrix(), matrix(*many), vector()))
    assert isinstance(found, ScorerHistories), found
    assert (len(found.scorers), found.omitted_scorers) == (MAX_SCORERS, 3)
    none = await told(answering(None, None, None))
    assert isinstance(none, RequestProblem)
    assert none.reason == "HistoryUnavailable"
