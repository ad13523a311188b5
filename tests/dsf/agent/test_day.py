"""Whole days of an agent, in virtual time: real rounds and publishing, a hub in memory."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.metrics import AgentMetrics
from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.publish.publisher import Publisher
from dsf.agent.round import Round
from dsf.agent.round_loop import Agent
from dsf.agent.score.forecasts import Instant, IssuedForecasts, TruthValues
from dsf.agent.score.result_rules import ConversionSettings, convert
from dsf.api.crd.score_rules import OnFailure
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import NotFound, Unreachable
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, NAMESPACE
from tests.dsf.agent.builders import scoring_result, summary
from tests.dsf.agent.conftest import CLUSTER
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty

pytestmark = pytest.mark.virtual_time

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3600.0
Score = Callable[[float], float | Failure]


def down(_: float) -> Failure:
    return Failure("scoring", "ServerError", "answered 500")


@dataclass
class Scorers:
    """Scoring APIs that answer by the time: a score, or a failure; each call takes a second."""

    answers: dict[str, Score]
    cluster: str = CLUSTER
    takes: dict[str, float] = field(default_factory=dict)
    calls: dict[str, list[float]] = field(default_factory=dict)
    under_way: Counter[str] = field(default_factory=Counter)
    truths: Callable[[float], float] = float

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    async def probe(self, wanted: ScorerSummary) -> Failure | None:
        """The health endpoint fails while scoring does."""
        answer = self.answers[wanted.name](asyncio.get_running_loop().time())
        return answer if isinstance(answer, Failure) else None

    async def truth(self, wanted: ScorerSummary, after: float) -> TruthValues | Failure:
        """The truth of every scorer is what it would have answered."""
        before = after - (wanted.forecast.horizon if wanted.forecast else 0)
        start = START.timestamp()
        return TruthValues({"a": self.truths(before - start)}, {"a": self.truths(after - start)})

    async def perform(self, wanted: ScorerSummary) -> Round:
        time = asyncio.get_running_loop().time()
        self.calls.setdefault(wanted.name, []).append(time)
        self.under_way[wanted.name] += 1
        assert self.under_way[wanted.name] == 1
        await asyncio.sleep(self.takes.get(wanted.name, 1.0))
        self.under_way[wanted.name] -= 1
        answer = self.answers[wanted.name](time)  # may raise, as a bug would
        if isinstance(answer, Failure):
            return Round(wanted, RoundReport.failed(answer), answer, {"fetch": 0.5, "perform": 0.5})
        dimension = DimensionFormat.parse("${app}")
        assert not isinstance(dimension, InvalidInput)
        results = [scoring_result(answer, {"app": "a"})]
        scores = convert(results, ConversionSettings(CLUSTER, wanted.score_name, dimension))
        at = Instant(self.now().timestamp() - 1.0, time)
        forecasts = IssuedForecasts(at, {"a": answer}) if wanted.forecast else None
        seconds = {"fetch": 0.5, "perform": 0.5}
        return Round(wanted, RoundReport.success(scores), None, seconds, forecasts=forecasts)


@dataclass
class World:
    """A hub in memory and the agent that publishes to it."""

    scorers: Scorers
    hub: EmbeddedHub = field(default_factory=EmbeddedHub)
    away: bool = False
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.counting = Counting(self.hub)
        faulty = Faulty(
            self.counting, lambda _: Fault(Unreachable("connection refused")) if self.away else None
        )
        now = self.scorers.now
        metrics = AgentMetrics(self.registry, lambda: now().timestamp())
        self.identity = Publisher(faulty, CLUSTER, now)
        self.agent = Agent(self.scorers, self.identity, metrics, CallLimits())

    @asynccontextmanager
    async def running(self, *summaries: ScorerSummary) -> AsyncIterator[None]:
        await self.hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
        task = asyncio.create_task(self.agent.run())
        self.tell(*summaries)
        yield
        task.cancel()
        await asyncio.wait([task])

    def tell(self, *summaries: ScorerSummary) -> None:
        self.agent.configure(dump_summaries(summaries))

    def made(self, verb: str) -> int:
        return sum(count for (made, _), count in self.counting.calls.items() if made == verb)

    async def status(self, name: str) -> dict[str, Any]:
        try:
            obj = await self.hub.get(ADD_ON_PLACEMENT_SCORE, name, CLUSTER)
        except NotFound:
            return {}
        return dict(obj.get("status") or {})

    async def value(self, name: str) -> int | None:
        """The value of the only entry, None where the scores are no longer valid."""
        status = await self.status(name)
        valid = datetime.fromisoformat(status["validUntil"]) > self.scorers.now()
        return int(status["scores"][0]["value"]) if valid else None

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def score(self, name: str) -> list[float]:
        return [
            sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == "dynamic_score" and sample.labels["ds_score_name"] == name
        ]


async def until(time: float) -> None:
    await asyncio.sleep(time - asyncio.get_running_loop().time())


async def test_a_day_in_which_nothing_changes_costs_rounds_and_renewals_only() -> None:
    scorers = Scorers({"quick": lambda _: 1.0, "slow": lambda _: 2.0}, takes={"slow": 700})
    world = World(scorers)
    quick, slow = summary("quick", scoring_interval=60), summary("slow", scoring_interval=600)
    async with world.running(quick, slow):
        await until(24 * HOUR)
        assert 1438 <= len(scorers.calls["quick"]) <= 1441
        assert len(scorers.calls["slow"]) == 72 + 1
        assert world.made("create") == 2
        # Validities of 180 s and 1,800 s, renewed at half.
        assert world.made("patch") <= 24 * HOUR / 90 + 24 * HOUR / 900 + 2
        assert await world.value("quick-score") == 1
        assert await world.value("slow-score") == 2
        made = world.metric("dynamic_scoring_hub_writes_total", score_name="quick_score")
        saved = world.metric("dynamic_scoring_hub_writes_saved_total", score_name="quick_score")
        assert made is not None
        assert saved is not None
        assert made + saved == len(scorers.calls["quick"]) + 1
        assert world.metric("dynamic_scoring_config_age_seconds") == 24 * HOUR


async def test_a_scorer_that_is_down_for_half_a_day_is_asked_ever_less() -> None:
    scorers = Scorers({"a": lambda time: down(time) if HOUR < time < 13 * HOUR else 5.0})
    world = World(scorers)
    async with world.running(summary("a", scoring_interval=30)):
        await until(13 * HOUR)
        calls = [time for time in scorers.calls["a"] if time > HOUR]
        assert len(calls) <= 12 * HOUR / 60 + 10
        probes = world.metric(
            "dynamic_scoring_health_probes_total", score_name="a_score", result="unhealthy"
        )
        assert probes is not None
        assert probes + len(calls) <= 12 * HOUR / 30 + 1
        paused = world.metric(
            "dynamic_scoring_paused_until_timestamp_seconds", score_name="a_score"
        )
        assert paused is not None
        assert 0 <= paused - scorers.now().timestamp() <= 61
        assert world.counting.writes <= HOUR / 45 + 10
        writes = world.counting.writes
        assert await world.value("a-score") is None
        assert world.score("a_score") == []
        await until(13 * HOUR + 32)
        assert await world.value("a-score") == 5
        assert world.counting.writes <= writes + 2
        await until(13 * HOUR + 330)
        assert (
            world.metric("dynamic_scoring_paused_until_timestamp_seconds", score_name="a_score")
            is None
        )
        await until(14 * HOUR)
        assert len([time for time in scorers.calls["a"] if time > 13 * HOUR + 330]) >= 100


@pytest.mark.parametrize("told", [True, False])
async def test_all_scores_are_fresh_an_interval_after_a_minute_of_500s(*, told: bool) -> None:
    """Ten scorers every 10 s; where health is not `told`, `/healthz` answers 200 all the while."""
    began, back, interval = 600.3, 660.3, 10

    class Sick(Scorers):
        probes = 0

        async def probe(self, wanted: ScorerSummary) -> Failure | None:
            self.probes += began <= asyncio.get_running_loop().time() < back
            return await super().probe(wanted) if told else None

    names = [f"s{number}" for number in range(10)]
    sick: dict[str, Score] = {
        name: lambda time: down(time) if began <= time < back else time // 10 for name in names
    }
    scorers = Sick(sick, takes=dict.fromkeys(names, 0.2))
    world = World(scorers)
    async with world.running(*(summary(name, scoring_interval=interval) for name in names)):
        await until(back + interval + 0.5)
        for name in names:
            assert any(back <= call < back + interval for call in scorers.calls[name])
            assert (await world.value(f"{name}-score") or 0) >= back // 10
        rounds = sum(began <= call < back for calls in scorers.calls.values() for call in calls)
        assert rounds + scorers.probes <= (60 if told else 70)


@pytest.mark.parametrize("interval", [10, 30])
async def test_all_scores_are_on_a_hub_some_seconds_after_it_is_back(interval: int) -> None:
    names = [f"s{number}" for number in range(10)]
    scorers = Scorers(
        dict.fromkeys(names, lambda time: time // 10), takes=dict.fromkeys(names, 0.2)
    )
    world = World(scorers)
    calls = Counting(world.identity.hub)
    world.identity.hub = calls
    async with world.running(*(summary(name, scoring_interval=interval) for name in names)):
        await until(600.3)
        world.away = True
        before = sum(calls.calls.values())
        await until(623.3)
        world.away = False
        assert sum(calls.calls.values()) - before <= 10
        await until(623.3 + 7)
        for name in names:
            last = max(call for call in scorers.calls[name] if call < 623)
            assert (await world.value(f"{name}-score") or 0) >= last // 10


async def outage(rule: OnFailure, *looks: float) -> list[tuple[int | None, list[float], str]]:
    """A scorer fails from one hour on; tell what hub and metrics say so long after its end."""
    told = list[tuple[int | None, list[float], str]]()

    scorers = Scorers({"a": lambda time: down(time) if time >= HOUR else 5.0})
    world = World(scorers)
    async with world.running(summary("a", scoring_interval=30, scoring_on_failure=rule)):
        await until(HOUR)
        status = await world.status("a-score")
        end = (datetime.fromisoformat(status["validUntil"]) - START).total_seconds()
        for look in looks:
            await until(end + look)
            status = await world.status("a-score")
            reason = next(c["reason"] for c in status["conditions"] if c["type"] == "Published")
            told.append((await world.value("a-score"), world.score("a_score"), reason))
    return told


async def test_expired_scores_end_by_the_clock() -> None:
    assert await outage(OnFailure(policy="Expire"), -6, 31, 7200) == [
        (5, [5], "Published"),
        (None, [], "Expired"),
        (None, [], "Expired"),
    ]


async def test_held_scores_never_expire_in_between_and_end_by_the_clock() -> None:
    looks = (-6, -1, 0, 1, 600, 3569, 3631, 20_000)
    told = await outage(OnFailure(policy="Hold", hold_seconds=3600), *looks)
    assert [value for value, _, _ in told] == [5] * 6 + [None] * 2
    assert [scores for _, scores, _ in told] == [[5]] * 6 + [[]] * 2
    reasons = [reason for _, _, reason in told]
    assert reasons == ["Published", *["Held"] * 5, *["Expired"] * 2]


async def test_replaced_scores_stay_valid_however_long_the_pause_between_rounds() -> None:
    looks = [-6.0, *(31.0 + n * 61 for n in range(200))]
    told = await outage(OnFailure(policy="Value", value=-50), *looks)
    assert told[0] == (5, [5], "Published")
    assert set(map(str, told[1:])) == {str((-50, [-50.0], "FallbackValue"))}


async def test_a_changed_rule_acts_on_expired_scores_and_metrics_at_the_next_round() -> None:
    world = World(Scorers({"a": lambda time: down(time) if time >= HOUR else 5.0}))
    plain = summary("a", scoring_interval=30)
    async with world.running(plain):
        await until(2 * HOUR)
        assert (await world.value("a-score"), world.score("a_score")) == (None, [])
        rule = OnFailure(policy="Value", value=-9)
        world.tell(plain.model_copy(update={"scoring_on_failure": rule}))
        await until(2 * HOUR + 32)
        assert (await world.value("a-score"), world.score("a_score")) == (-9, [-9])


async def test_a_hub_that_is_away_for_an_hour_is_told_everything_when_it_is_back() -> None:
    scorers = Scorers({"a": lambda time: time // HOUR})
    world = World(scorers)
    async with world.running(summary("a", scoring_interval=30)):
        await until(HOUR + 600)
        assert await world.value("a-score") == 1
        world.away = True
        await until(2 * HOUR + 600)
        assert await world.value("a-score") is None
        assert world.score("a_score") == [2]
        failed = {"score_name": "a_score", "status": "publish_failed"}
        assert world.metric("dynamic_scoring_requests_total", **failed) == 120
        world.away = False
        await until(2 * HOUR + 632)
        assert await world.value("a-score") == 2


async def test_scores_of_a_long_interval_do_not_wait_for_it_where_the_hub_was_away() -> None:
    world = World(Scorers({"a": lambda time: time // 1000}))
    async with world.running(summary("a", scoring_interval=3600)):
        await until(HOUR / 2)
        world.away = True
        await until(2400)
        (_, second) = world.scorers.calls["a"]
        assert await world.value("a-score") == 0
        world.away = False
        await until(second + 160)
        assert await world.value("a-score") == second // 1000
        assert len(world.scorers.calls["a"]) == 2
        end = datetime.fromisoformat((await world.status("a-score"))["validUntil"])
        assert end == START + timedelta(seconds=int(second + 1) + 3 * HOUR)


async def test_a_round_that_breaks_by_a_bug_is_told_and_stops_no_other() -> None:
    def buggy(time: float) -> float:
        if HOUR < time < 2 * HOUR:
            raise KeyError("canary-3f2a")
        return 7.0

    world = World(Scorers({"a": buggy, "b": lambda _: 2.0}))
    async with world.running(summary("a"), summary("b")):
        await until(2 * HOUR)
        told = {c["type"]: c for c in (await world.status("a-score"))["conditions"]}
        assert (told["Scored"]["status"], told["Scored"]["reason"]) == ("False", "AgentBroke")
        assert "KeyError" in told["Scored"]["message"]
        assert "canary" not in str(told)
        assert told["SourceFetched"]["status"] == "Unknown"
        assert told["Published"]["reason"] == "Expired"
        rounds = {"score_name": "a_score", "status": "agent_failed"}
        broken = world.metric("dynamic_scoring_broken_total", score_name="a_score")
        assert broken == world.metric("dynamic_scoring_requests_total", **rounds)
        assert broken is not None
        assert broken > 5
        assert await world.value("b-score") == 2
        assert len(world.scorers.calls["b"]) >= 239
        await until(2 * HOUR + 330)
        assert await world.value("a-score") == 7
        told = {c["type"]: c for c in (await world.status("a-score"))["conditions"]}
        assert {c["status"] for c in told.values()} == {"True"}


async def test_publishing_that_breaks_by_a_bug_is_counted_and_stops_no_other() -> None:
    class Buggy(EmbeddedHub):
        async def get(self, *args: Any, **more: Any) -> Any:
            if "a-score" in args:
                raise TypeError("a bug")
            return await super().get(*args, **more)

    world = World(Scorers({"a": lambda _: 1.0, "b": lambda _: 2.0}), hub=Buggy())
    async with world.running(summary("a"), summary("b")):
        await until(600)
        broken = world.metric("dynamic_scoring_broken_total", score_name="a_score")
        assert broken is not None
        assert broken > 3
        assert await world.value("b-score") == 2


async def test_a_scorer_that_was_removed_leaves_nothing() -> None:
    world = World(Scorers({"a": lambda _: 1.0, "b": lambda _: 2.0}))
    a, b = summary("a"), summary("b")
    async with world.running(a, b):
        await until(HOUR)
        world.tell(b)
        await until(HOUR + 60)
        assert await world.status("a-score") == {}
        samples = [s for family in world.registry.collect() for s in family.samples]
        assert not [s for s in samples if "a_score" in s.labels.values()]
        assert await world.value("b-score") == 2
        calls = len(world.scorers.calls["a"])
        await until(2 * HOUR)
        assert len(world.scorers.calls["a"]) == calls


async def test_a_score_removed_while_its_agent_stands_by_goes_when_the_agent_takes_over() -> None:
    world = World(Scorers({"a": lambda _: 1.0}))
    async with world.running(summary("a", scoring_interval=3600)):
        await until(HOUR)
        world.identity.identity.rival = "pod-b"
        world.tell()
        await until(HOUR + 600)
        assert await world.value("a-score") == 1
        world.identity.identity.rival = ""
        await until(HOUR + 660)
        assert await world.status("a-score") == {}


async def test_a_score_removed_while_the_hub_is_away_goes_when_the_hub_is_back() -> None:
    world = World(Scorers({"a": lambda _: 1.0}))
    async with world.running(summary("a")):
        await until(HOUR)
        world.away = True
        world.tell()
        await until(HOUR + 600)
        assert await world.status("a-score") != {}
        world.away = False
        await until(HOUR + 660)
        assert await world.status("a-score") == {}


@pytest.mark.fire(
    "a wall clock that jumps changes no decision", "an agent: pace and validity of its scores"
)
async def test_a_wall_clock_that_jumps_changes_no_pace_and_keeps_scores_no_longer() -> None:
    jump = timedelta()

    class Jumping(Scorers):
        def now(self) -> datetime:
            return super().now() + jump

    world = World(Jumping({"a": lambda _: 1.0}))
    async with world.running(summary("a", scoring_interval=30)):
        for jumped in (timedelta(days=30), -timedelta(days=365), timedelta()):
            jump = jumped
            time = asyncio.get_running_loop().time()
            calls = len(world.scorers.calls["a"]) if world.scorers.calls else 0
            await until(time + HOUR)
            assert 118 <= len(world.scorers.calls["a"]) - calls <= 121
            status = await world.status("a-score")
            left = datetime.fromisoformat(status["validUntil"]) - world.scorers.now()
            assert timedelta() < left <= timedelta(seconds=90)
