"""The forecasts of one round, and their truth, over real HTTP."""

from typing import Any

from aiohttp import web

from dsf.agent.failure import Failure
from dsf.agent.run import AgentSettings, round_runner
from dsf.agent.score.forecast_truth import TruthValues
from dsf.api.crd.forecast_rules import ForecastRules, ForecastTruth
from dsf.api.crd.score_rules import Normalize
from dsf.kube.clock import utc_now
from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import replying, scores, serving

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
