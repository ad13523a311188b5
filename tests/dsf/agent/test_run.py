"""The agent against real HTTP servers and a hub in memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.run import AgentSettings, run, watch_file
from dsf.api.crd.score_rules import ForecastRules, ForecastTruth
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, LEASE
from dsf.kube.port import Kube
from tests.dsf.agent import servers
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE, CLUSTER
from tests.dsf.agent.servers import Handler, Server, matrix, replying, scores, serving
from tests.eventually import eventually

PATIENT = CallLimits(min_seconds=600, max_seconds=600, max_bytes=1 << 20)
HASTY = CallLimits(min_seconds=0.5, max_seconds=0.5)
SERIES = ({"node": "n1", "namespace": "ns", "pod": "a"}, [[1, "1.5"]])
RESULT = {"node": "n1", "namespace": "ns", "pod": "a"}


@dataclass
class World:
    """One managed cluster with its agent, a Prometheus and a stranger's scoring API."""

    hub: EmbeddedHub
    managed: EmbeddedHub
    prometheus: Server
    scorer: Server
    url: str = ""

    def summary(self, name: str = "sample-scorer", **changes: Any) -> ScorerSummary:
        endpoints = {
            "source_endpoint": f"{self.prometheus.url}/api/v1/query_range",
            "scoring_endpoint": f"{self.scorer.url}/scoring",
            "scoring_interval": 1,
        }
        return summary(name, **(endpoints | changes))

    async def distribute(self, *summaries: ScorerSummary) -> None:
        await self.write_config(dump_summaries(summaries))

    async def write_config(self, text: str) -> None:
        data = {"data": {"summaries": text}}
        metadata = {"name": "dynamic-scoring-config", "namespace": AGENT_NAMESPACE}
        try:
            await self.managed.patch(CONFIG_MAP, "dynamic-scoring-config", data, AGENT_NAMESPACE)
        except NotFound:
            await self.managed.create(CONFIG_MAP, {"metadata": metadata, **data})

    async def status(self, name: str = "sample-my-score") -> dict[str, Any]:
        try:
            obj = await self.hub.get(ADD_ON_PLACEMENT_SCORE, name, CLUSTER)
        except NotFound:
            return {}
        return dict(obj.get("status") or {})

    async def values(self, name: str = "sample-my-score") -> dict[str, int]:
        return {item["name"]: item["value"] for item in (await self.status(name)).get("scores", [])}

    async def condition(self, type_: str, name: str = "sample-my-score") -> dict[str, Any]:
        conditions = (await self.status(name)).get("conditions", [])
        return next((dict(c) for c in conditions if c["type"] == type_), {})

    async def failing(self, type_: str) -> dict[str, Any] | None:
        found = await self.condition(type_)
        return found if found.get("status") == "False" else None

    async def http(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await client.get(self.url + path)

    async def counted(self, status: str = "success") -> str:
        """Return the metrics once they have counted a round of that outcome."""
        text = await self.metrics()
        counter = "dynamic_scoring_requests_total"
        return (
            text if f'{counter}{{score_name="sample_my_score",status="{status}"}}' in text else ""
        )

    async def metrics(self) -> str:
        return (await self.http("/metrics")).text


@pytest.fixture
async def world(hub: EmbeddedHub, managed: EmbeddedHub) -> AsyncIterator[World]:
    async with (
        serving(replying(matrix(SERIES))) as prometheus,
        serving(replying(scores((RESULT, 12.7)))) as scorer,
    ):
        yield World(hub, managed, prometheus, scorer)


@asynccontextmanager
async def agent(
    world: World,
    *,
    hub: Kube | None = None,
    summaries_file: Path | None = None,
    limits: CallLimits = PATIENT,
    holder: str = "pod-a",
) -> AsyncIterator[None]:
    settings = AgentSettings(
        cluster=CLUSTER,
        metrics_bind_address="127.0.0.1:0",
        summaries_file=summaries_file,
        limits=limits,
    )
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        run(
            settings,
            hub=hub or world.hub,
            managed=world.managed,
            listening=listening.set_result,
            holder=holder,
        )
    )
    try:
        async with asyncio.timeout(120):
            world.url = await listening
        yield
        assert not running.done(), "the agent has ended by itself"
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def test_scores_arrive(world: World) -> None:
    await world.distribute(world.summary())
    async with agent(world):
        assert await eventually(world.values) == {"n1;ns;a": 12}

        assert world.scorer.calls[0].json == {"data": [{"metric": SERIES[0], "values": SERIES[1]}]}
        assert (await world.condition("Published"))["status"] == "True"
        assert (await world.http("/healthz")).status_code == 200
        assert (await world.http("/readyz")).status_code == 200
        text = await eventually(world.counted)
        score = next(line for line in text.splitlines() if line.startswith("dynamic_score{"))
        assert 'ds_cluster="cluster1"' in score
        assert score.endswith(" 12.7")


async def test_forecasts_are_compared_with_a_truth_that_is_asked_after_each_round(
    world: World,
) -> None:
    rules = ForecastRules(horizon=1, truth=ForecastTruth(query="what came true"))
    reads = 'dynamic_scoring_truth_reads_total{score_name="sample_my_score",status="success"}'

    async def read() -> bool:
        return reads in await world.metrics()

    async with agent(world):
        await world.distribute(world.summary(forecast=rules))
        assert await eventually(read)
        found = await eventually(lambda: world.condition("Trusted"))
        assert (found["status"], found["reason"]) == ("Unknown", "InsufficientEvidence")
        asked = {(call.path, call.parameters["query"]) for call in world.prometheus.calls}
        assert asked == {("/api/v1/query_range", "up"), ("/api/v1/query", "what came true")}


async def test_without_a_config_map_nothing_runs_and_all_is_well(world: World) -> None:
    async with agent(world):

        async def ready() -> bool:
            return (await world.http("/readyz")).status_code == 200

        await eventually(ready)
        assert world.scorer.calls == []


async def test_a_changed_config_acts_without_a_restart(world: World) -> None:
    await world.distribute(world.summary())
    async with agent(world):
        await eventually(world.values)
        await world.distribute(
            world.summary(source_query="other", score_name="renamed"),
            world.summary("static", source_type="none", score_dimension_format="${pod}"),
        )

        async def settled() -> bool:
            page = await world.hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)
            return {obj["metadata"]["name"] for obj in page.items} == {"renamed", "static-score"}

        await eventually(settled)
        assert await eventually(lambda: world.values("static-score")) == {"a": 12}
        assert world.prometheus.calls[-1].parameters["query"] == "other"

        async def forgotten() -> bool:
            return "sample_my_score" not in await world.metrics()

        await eventually(forgotten)


async def test_a_deleted_config_map_stops_everything(world: World) -> None:
    await world.distribute(world.summary())
    async with agent(world):
        await eventually(world.values)
        await world.managed.delete(CONFIG_MAP, "dynamic-scoring-config", AGENT_NAMESPACE)

        async def gone() -> bool:
            page = await world.hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)
            return not page.items and "sample_my_score" not in await world.metrics()

        await eventually(gone)


async def test_a_config_that_is_no_config_changes_nothing(world: World) -> None:
    await world.distribute(world.summary())
    async with agent(world):
        await eventually(world.values)
        await world.write_config("{not json")
        calls = len(world.scorer.calls)

        async def goes_on() -> bool:
            return len(world.scorer.calls) > calls + 1

        await eventually(goes_on)
        assert await world.values() == {"n1;ns;a": 12}


async def test_without_any_good_config_the_agent_is_not_ready(world: World) -> None:
    await world.write_config("{not json")
    async with agent(world):

        async def told() -> bool:
            response = await world.http("/readyz")
            return response.status_code == 503 and "JSON" in response.text

        await eventually(told)


async def test_scores_left_by_an_earlier_run_are_deleted(world: World) -> None:
    await world.distribute(world.summary())
    async with agent(world):
        await eventually(world.values)
    await world.distribute(world.summary("other"))
    async with agent(world):

        async def gone() -> bool:
            return await world.status() == {}

        await eventually(gone)


async def test_metrics_only(world: World) -> None:
    await world.distribute(world.summary(score_destination="None"))
    async with agent(world):

        async def scored() -> bool:
            return "dynamic_score{" in await world.metrics()

        await eventually(scored)
        assert not (await world.hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)).items


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (
            replying({"status": "error", "errorType": "bad_data", "error": "parse error: é"}, 400),
            "QueryRejected",
            "parse error: é",
        ),
        (replying(b'{"status": "\xff"}'), "InvalidResponse", "not a Prometheus query result"),
        (servers.endless, "ResponseTooLarge", "1048576 bytes"),
    ],
)
async def test_a_bad_source_is_told(world: World, answer: Handler, reason: str, said: str) -> None:
    world.prometheus.answer = answer
    await world.distribute(world.summary())
    async with agent(world):
        told = await eventually(lambda: world.failing("SourceFetched"))
        assert told["reason"] == reason
        assert said in told["message"]
        assert f"{world.prometheus.url}/api/v1/query_range" in told["message"]
        assert world.scorer.calls == []
        assert await eventually(lambda: world.counted("source_failed"))


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (replying(b"<html>oops</html>", 500), "ServerError", "oops"),
        (replying(b'{"results": [{"score": "\xff"}]}'), "InvalidResponse", "results[0]: "),
        (replying(b"", 307, {"Location": "http://127.0.0.1/"}), "Redirected", "redirects"),
        (servers.endless, "ResponseTooLarge", "1048576 bytes"),
    ],
)
async def test_a_bad_scorer_is_told(world: World, answer: Handler, reason: str, said: str) -> None:
    world.scorer.answer = answer
    await world.distribute(world.summary())
    async with agent(world):
        told = await eventually(lambda: world.failing("Scored"))
        assert told["reason"] == reason
        assert said in told["message"]
        assert "scores" not in await world.status()
        assert (await world.condition("SourceFetched"))["status"] == "True"


async def test_a_scorer_that_hangs_is_given_up(world: World) -> None:
    world.scorer.answer = servers.hanging
    await world.distribute(world.summary(source_type="None"))
    async with agent(world, limits=HASTY):
        told = await eventually(lambda: world.failing("Scored"))
        assert told["reason"] == "DeadlineExceeded"


async def test_strange_scores_follow_the_rules_and_are_said(world: World) -> None:
    body = (
        b'{"results": [{"metric": {"pod": "a"}, "score": NaN},'
        b'{"metric": {"pod": "b"}, "score": 1e999}, {"metric": {"pod": "c"}, "score": -500},'
        b'{"metric": {"pod": "d"}, "score": -0.5}, {"metric": {"pod": "d"}, "score": 7},'
        b'{"score": 3}]}'
    )
    world.scorer.answer = replying(body)
    await world.distribute(world.summary(score_dimension_format="${cluster}/${pod}"))
    async with agent(world):
        assert await eventually(world.values) == {
            "cluster1/": 3,
            "cluster1/c": -100,
            "cluster1/d": -1,
        }
        told = await world.condition("Scored")
        assert told["reason"] == "ScoresAdjusted"
        for count in ("dropped 2 scores", "dropped 1 results", "clamped 1 scores"):
            assert count in told["message"]
        text = await eventually(world.counted)
        for rule, per_round in (("NotFinite", 2), ("OutOfRange", 1), ("MissingLabel", 1)):
            name = f'dynamic_scoring_adjusted_total{{rule="{rule}",score_name="sample_my_score"}}'
            (line,) = [line for line in text.splitlines() if line.startswith(name)]
            assert float(line.split()[-1]) % per_round == 0


async def test_a_scorer_that_asks_for_a_pause_gets_it(world: World) -> None:
    world.scorer.answer = replying(b"", 429, {"Retry-After": "3600"})
    async with serving(replying(scores((RESULT, 1)))) as other:
        await world.distribute(
            world.summary(source_type="None"),
            world.summary("quick", source_type="None", scoring_endpoint=other.url),
        )
        async with agent(world):
            told = await eventually(lambda: world.failing("Scored"))
            assert told["reason"] == "TooManyRequests"

            async def time_passed() -> bool:
                return len(other.calls) > 4

            await eventually(time_passed)
            assert len(world.scorer.calls) == 1
            text = await world.metrics()
            labels = f'score_name="sample_my_score",scoring_api="{world.scorer.url}/scoring"'
            assert f'dynamic_scoring_api_requests_total{{code="429",{labels}}} 1.0' in text
            assert f"dynamic_scoring_api_request_seconds_count{{{labels}}} 1.0" in text


async def test_an_agent_says_what_it_starts_with(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with agent(world):
        (started,) = [r for r in caplog.records if r.getMessage() == "agent started"]
        fields = vars(started)
        assert (fields["cluster"], fields["namespace"]) == (CLUSTER, AGENT_NAMESPACE)
        assert fields["metrics"] == f"{world.url}/metrics"
        assert fields["summaries"] == "ConfigMap dynamic-scoring-config"


async def test_the_addons_lease_is_renewed_once_the_agent_is_ready(world: World) -> None:
    async with agent(world):

        async def renewed() -> bool:
            page = await world.managed.list(LEASE, AGENT_NAMESPACE)
            return [obj["metadata"]["name"] for obj in page.items] == ["dynamic-scoring-framework"]

        await eventually(renewed)


async def test_a_second_agent_says_that_it_stands_by_and_follows(world: World) -> None:
    second = replace(world)
    await world.distribute(world.summary())
    async with agent(second, holder="pod-b"):
        async with agent(world):
            await eventually(world.values)

            async def one_stands_by() -> bool:
                told = [await one.http("/readyz") for one in (world, second)]
                waiting = [one.text for one in told if one.status_code == 503]
                return len(waiting) == 1 and "stands by: run one replica" in waiting[0]

            await eventually(one_stands_by)
        assert await world.values() == {"n1;ns;a": 12}


async def test_a_format_that_is_none_is_told(world: World) -> None:
    await world.distribute(world.summary(score_dimension_format="${gpu}"))
    async with agent(world):
        told = await eventually(lambda: world.failing("Scored"))
        assert told["reason"] == "InvalidDimensionFormat"
        assert "${gpu}" in told["message"]


async def test_a_file_replaces_the_config_map(world: World, tmp_path: Path) -> None:
    path = tmp_path / "summaries.json"
    path.write_text(dump_summaries([world.summary()]), encoding="utf-8")
    async with agent(world, summaries_file=path):
        assert await eventually(world.values)


async def test_a_changed_file_is_noticed_and_a_missing_one_waited_for(tmp_path: Path) -> None:
    path, texts = tmp_path / "summaries.json", list[str]()
    watching = asyncio.create_task(watch_file(path, texts.append, poll_seconds=0.01))
    for text in ("[]", "[1]"):
        path.write_text(text, encoding="utf-8")

        async def seen(text: str = text) -> bool:
            return text in texts

        await eventually(seen)
        path.unlink()
    assert not watching.done()
    watching.cancel()
