"""The forecasts of one round, and their truth, over real HTTP."""

from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from dsf.agent.failure import Failure
from dsf.agent.run import AgentSettings, round_runner
from dsf.agent.score.explanation import explain
from dsf.agent.score.forecasts import TruthValues
from dsf.api.crd.score_rules import DefaultScore, ForecastRules, ForecastTruth, Normalize
from dsf.api.scoring.scorer_summary import SEVERAL, ScorerSummary, SummarySource
from dsf.kube.clock import utc_now
from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import Server, matrix, replying, scores, serving

NODE = {"node": "n1"}
RULES = ForecastRules(horizon=600, truth=ForecastTruth(query="avg by (node) (load)"))


async def test_forecasts_are_those_of_the_scorer_and_their_truth_is_asked_at_their_time() -> None:
    async def truth(request: web.Request) -> web.StreamResponse:
        values = {"1000.000": "0.5", "1600.000": "0.75"}
        sample = [1, values.get(request.query.get("time", ""), "0")]
        result = [{"metric": NODE, "value": sample}]
        return web.json_response(
            {"status": "success", "data": {"resultType": "vector", "result": result}}
        )

    async with (
        serving(truth) as prometheus,
        serving(replying(scores((NODE, 0.7)))) as scorer,
        round_runner(AgentSettings("east"), None, utc_now) as runner,
    ):
        wanted = summary(
            source_endpoint=f"{prometheus.url}/api/v1/query_range",
            source_range=0,
            source_endpoint_tenant="team-a",
            scoring_endpoint=f"{scorer.url}/scoring",
            score_dimension_format="${node}",
            scoring_normalize=Normalize(min=0, max=1, invert=True),
            forecast=RULES,
        )
        done = await runner.perform(wanted)
        assert done.report.scores
        assert [entry.value for entry in done.report.scores.entries] == [30]
        assert done.forecasts
        assert done.forecasts.values == {"n1": 0.7}
        assert await runner.truth(wanted, 1600) == TruthValues({"n1": 0.5}, {"n1": 0.75})
        for asked, time in zip(prometheus.calls[-2:], ("1000.000", "1600.000"), strict=True):
            assert asked.path == "/api/v1/query"
            assert asked.parameters == {"query": "avg by (node) (load)", "time": time}
            assert asked.headers["X-Scope-OrgID"] == "team-a"
        plain = wanted.model_copy(update={"forecast": None})
        assert (await runner.perform(plain)).forecasts is None


async def test_a_truth_that_is_refused_is_a_failure_of_the_source() -> None:
    refused: dict[str, Any] = {"status": "error", "errorType": "bad_data", "error": "no such label"}
    async with (
        serving(replying(refused, status=400)) as prometheus,
        round_runner(AgentSettings("east"), None, utc_now) as runner,
    ):
        endpoint = f"{prometheus.url}/api/v1/query_range"
        found = await runner.truth(summary(source_endpoint=endpoint, forecast=RULES), 1600)
    assert isinstance(found, Failure)
    assert (found.stage, found.reason) == ("source", "QueryRejected")
    assert "no such label" in found.message


def of(name: str, url: str, **changes: Any) -> SummarySource:
    fields = {"endpoint": f"{url}/api/v1/query_range", "query": name, "range": 60, "step": 30}
    return SummarySource(**{"name": name, "type": "Prometheus", **fields, **changes})


def joining(scorer: Server, *sources: SummarySource, **changes: Any) -> ScorerSummary:
    return summary(
        source_type=SEVERAL,
        source_endpoint="",
        source_query="",
        sources=sources,
        scoring_endpoint=f"{scorer.url}/scoring",
        score_dimension_format="${node}",
        **changes,
    )


async def test_each_series_says_which_of_several_sources_it_is_from() -> None:
    values = [[1, "1.5"]]
    async with (
        serving(replying(matrix((NODE, values)))) as gpu,
        serving(replying(matrix((NODE, values), ({}, values), warnings=["slow"]))) as power,
        serving(replying(scores((NODE, 7)))) as scorer,
        round_runner(AgentSettings("east"), None, utc_now) as runner,
    ):
        wanted = joining(
            scorer,
            of("gpu", gpu.url),
            of("power", power.url, range=0, endpoint_tenant="a"),
            scoring_params={"model": "linear", "horizon": 3600, "log": True},
        )
        done = await replace(runner, explaining=True).perform(wanted)
    body = scorer.calls[0].json
    assert body == {
        "data": [
            {"metric": {**NODE, "__source__": "gpu"}, "values": values},
            {"metric": {**NODE, "__source__": "power"}, "values": values},
            {"metric": {"__source__": "power"}, "values": values},
        ],
        "params": {"model": "linear", "horizon": 3600, "log": True},
    }
    assert [call.path for call in (*gpu.calls, *power.calls)] == [
        "/api/v1/query_range",
        "/api/v1/query",
    ]
    assert power.calls[0].headers["X-Scope-OrgID"] == "a"
    assert "X-Scope-OrgID" not in gpu.calls[0].headers
    assert done.report.conditions[0].message == 'source power: "slow"'
    assert done.evidence
    told = explain(wanted, done.evidence, done.report.scores, None).splitlines()
    assert [line.split(maxsplit=1)[1] for line in told if line.startswith("  source ")] == [
        f"gpu: Prometheus {gpu.url}/api/v1/query_range: 1 series, 1 sample sent",
        f"power: Prometheus {power.url}/api/v1/query_range: 2 series, 2 samples sent",
    ]
    assert '  params      {"model": "linear", "horizon": 3600, "log": true}' in told


async def test_a_source_that_fails_is_named() -> None:
    refused: dict[str, Any] = {"status": "error", "errorType": "bad_data", "error": "no label"}
    async with (
        serving(replying(matrix((NODE, [[1, "1"]])))) as gpu,
        serving(replying(refused, status=400)) as power,
        serving(replying(scores((NODE, 7)))) as scorer,
        round_runner(AgentSettings("east"), None, utc_now) as runner,
    ):
        wanted = joining(scorer, of("gpu", gpu.url), of("power", power.url))
        done = await replace(runner, explaining=True).perform(wanted)
    assert scorer.calls == []
    assert done.failure
    assert (done.failure.reason, done.failure.source) == ("QueryRejected", "power")
    assert done.failure.message.startswith(f"source power: {power.url}")
    assert done.evidence
    told = explain(wanted, done.evidence, None, done.failure)
    assert "/query_range: not used, as another source failed" in told
    assert "/query_range: failed, QueryRejected" in told


async def test_the_truth_of_several_sources_is_read_from_the_first() -> None:
    async with (
        serving(replying(matrix((NODE, [[1, "0.5"]])))) as gpu,
        round_runner(AgentSettings("east"), None, utc_now) as runner,
    ):
        wanted = joining(gpu, of("gpu", gpu.url), of("power", "http://power"), forecast=RULES)
        assert await runner.truth(wanted, 1600) == TruthValues({"n1": 0.5}, {"n1": 0.5})
    assert {call.parameters["query"] for call in gpu.calls} == {"avg by (node) (load)"}


DEFAULT = DefaultScore(value=-100, entries=["n1", "n2", "n1"])


@pytest.mark.parametrize(
    ("answer", "called", "scored"),
    [
        (matrix(), 0, ("Unknown", "NothingToScore")),
        (matrix((NODE, [[1, "1"]])), 1, ("True", "DefaultScore")),
    ],
)
async def test_a_cluster_with_nothing_to_score_has_the_default_score(
    answer: Any, called: int, scored: tuple[str, str]
) -> None:
    async with (
        serving(replying(answer)) as prometheus,
        serving(replying(scores())) as scorer,
        round_runner(AgentSettings("east"), None, utc_now) as runner,
    ):
        wanted = summary(
            source_endpoint=f"{prometheus.url}/api/v1/query_range",
            scoring_endpoint=f"{scorer.url}/scoring",
            scoring_default_score=DEFAULT,
            scoring_normalize=Normalize(min=0, max=1),
            forecast=RULES,
        )
        done = await runner.perform(wanted)
        assert len(scorer.calls) == called
        unsourced = await runner.perform(wanted.model_copy(update={"source_type": "None"}))
        assert len(scorer.calls) == called + 1
    for each in (done, unsourced):
        assert each.report.scores
        assert [(one.name, one.value) for one in each.report.scores.entries] == [
            ("n1", -100),
            ("n2", -100),
        ]
        assert each.report.scores.samples == ()
        assert each.failure is each.forecasts is None
    found = {one.type: (one.status, one.reason) for one in done.report.conditions}
    assert found == {
        "SourceFetched": ("True", "Fetched"),
        "Scored": scored,
        "Published": ("True", "DefaultScore"),
    }


async def test_a_default_score_is_a_metric_where_no_result_names_its_labels() -> None:
    async with (
        serving(replying(scores())) as scorer,
        round_runner(AgentSettings("east"), None, utc_now) as runner,
    ):
        wanted = summary(
            source_type="None",
            scoring_endpoint=f"{scorer.url}/scoring",
            score_dimension_formats=("${cluster}/${scoreName}", "${scoreName}"),
            scoring_default_score=DefaultScore(value=5),
        )
        scored = (await runner.perform(wanted)).report.scores
    assert scored
    assert [(one.name, one.value) for one in scored.entries] == [
        ("east/sample_my_score", 5),
        ("sample_my_score", 5),
    ]
    assert [(set(one.labels), one.score) for one in scored.samples] == [
        ({"east", "", "sample_my_score"}, 5.0)
    ]
