"""Days of a forecasting scorer, in virtual time: its record, as metrics and as a condition."""

import asyncio
import math
from datetime import timedelta
from typing import Any

import pytest

from dsf.agent.failure import Failure
from dsf.agent.score.forecasts import TruthValues
from dsf.api.conditions import find
from dsf.api.crd.score_rules import ForecastRules, ForecastTruth
from dsf.api.scoring.scorer_summary import ScorerSummary
from tests.dsf.agent.builders import summary
from tests.dsf.agent.test_day import HOUR, Scorers, World, until

pytestmark = pytest.mark.virtual_time

HORIZON = 600
INTERVAL = 300
NOON = 4 * HOUR


def load(time: float) -> float:
    """A load that rises and falls in six hours."""
    return 50 + 40 * math.sin(time * 2 * math.pi / (6 * HOUR))


def ahead(time: float) -> float:
    """Return what the load will be a horizon later, a little wrong."""
    return load(time + HORIZON) + 0.5 * math.sin(time)


def mad(time: float) -> float:
    return 100 - load(time + HORIZON) * 3


def forecasting(horizon: int = HORIZON, **more: Any) -> ScorerSummary:
    rules = ForecastRules(horizon=horizon, truth=ForecastTruth(query="load"))
    return summary("a", scoring_interval=INTERVAL, forecast=rules, **more)


async def trusted(world: World) -> dict[str, Any]:
    return dict(find((await world.status("a-score")).get("conditions") or [], "Trusted") or {})


def trust(world: World) -> float | None:
    return world.metric("dynamic_scoring_trust", score_name="a_score")


def count(world: World, metric: str, **labels: str) -> float:
    return world.metric(f"dynamic_scoring_{metric}_total", score_name="a_score", **labels) or 0


async def test_a_good_forecaster_is_trusted_and_one_that_goes_mad_at_noon_is_not() -> None:
    world = World(Scorers({"a": lambda time: ahead(time) if time < NOON else mad(time)}))
    world.scorers.truths = load
    async with world.running(forecasting()):
        await until(900)
        assert (await trusted(world))["reason"] == "InsufficientEvidence"
        assert trust(world) is None
        await until(NOON)
        told = await trusted(world)
        assert (told["status"], told["reason"]) == ("True", "BetterThanLastValue")
        before = trust(world)
        assert before is not None
        assert before > 0.5
        await until(NOON + 6 * HORIZON)
        told = await trusted(world)
        assert (told["status"], told["reason"]) == ("False", "NoBetterThanLastValue")
        assert trust(world) == 0
        error = world.metric("dynamic_scoring_forecast_error_ratio", score_name="a_score")
        assert error is not None
        assert error > 1
        assert count(world, "forecasts", outcome="judged") > 50
    # A record costs no write of its own, besides those at which its reason changes.
    assert world.made("patch") <= (NOON + 6 * HORIZON) / INTERVAL + 10


async def test_the_last_value_earns_no_trust() -> None:
    world = World(Scorers({"a": load}))
    world.scorers.truths = load
    async with world.running(forecasting()):
        await until(3 * HOUR)
        value = trust(world)
        assert value is not None
        assert value < 0.05


async def test_a_restarted_agent_continues_the_record_that_it_published() -> None:
    world = World(Scorers({"a": ahead}))
    world.scorers.truths = load
    async with world.running(forecasting()):
        await until(3 * HOUR)
        before = trust(world)
    again = World(world.scorers, world.hub)
    task = asyncio.create_task(again.agent.run())
    again.tell(forecasting())
    await until(3 * HOUR + 700)
    after = trust(again)
    assert before is not None
    assert after is not None
    assert after == pytest.approx(before, abs=0.1)
    assert (await trusted(again))["reason"] == "BetterThanLastValue"
    # Another horizon is another promise, so its record starts anew.
    again.tell(forecasting(1200))
    await until(3 * HOUR + 1400)
    assert trust(again) is None
    assert "1200 s ahead" in (await trusted(again))["message"]
    # Scores that are no forecasts any more do not tell how far they can be trusted.
    again.tell(summary("a", scoring_interval=INTERVAL))
    await until(3 * HOUR + 2100)
    assert await trusted(again) == {}
    assert world.metric("dynamic_scoring_trust", score_name="a_score") is not None
    task.cancel()
    await asyncio.wait([task])


async def test_a_truth_that_cannot_be_read_is_told_and_not_held_against_the_scorer() -> None:
    class Truthless(Scorers):
        away = False

        async def truth(self, wanted: ScorerSummary, after: float) -> TruthValues | Failure:
            if self.away:
                return Failure("source", "ServerError", "answered 500")
            return await super().truth(wanted, after)

    scorers = Truthless({"a": ahead})
    scorers.truths = load
    world = World(scorers)
    async with world.running(forecasting()):
        await until(3 * HOUR)
        before = trust(world)
        scorers.away = True
        await until(3 * HOUR + 900)
        told = await trusted(world)
        assert told["status"] == "True"
        assert "the truth could not be compared: ServerError: answered 500" in told["message"]
        assert trust(world) == pytest.approx(before)
        await until(6 * HOUR)
        told = await trusted(world)
        assert (told["status"], told["reason"]) == ("Unknown", "TruthUnavailable")
        assert trust(world) is None
        assert count(world, "truth_reads", status="ServerError") > 20
        scorers.away = False
        await until(7 * HOUR)
        assert (await trusted(world))["reason"] == "BetterThanLastValue"


async def test_a_truth_with_other_labels_is_told_with_what_to_compare() -> None:
    class Elsewhere(Scorers):
        async def truth(self, wanted: ScorerSummary, after: float) -> TruthValues | Failure:  # noqa: ARG002
            return TruthValues({"other": 1.0}, {"other": 2.0})

    world = World(Elsewhere({"a": ahead}))
    async with world.running(forecasting()):
        await until(HOUR)
        told = await trusted(world)
        assert (told["status"], told["reason"]) == ("Unknown", "TruthUnavailable")
        assert "none of the 1 entries has a value" in told["message"]
        assert "scoreDimensionFormat" in told["message"]
        assert count(world, "forecasts", outcome="gap") > 5
        assert count(world, "forecasts", outcome="judged") == 0


@pytest.mark.parametrize("jump", [-2 * HOUR, 2 * HOUR])
async def test_a_clock_that_is_set_is_not_held_against_the_scorer(jump: float) -> None:
    class Jumping(Scorers):
        ahead = 0.0

        def now(self) -> Any:
            return super().now() + timedelta(seconds=self.ahead)

    scorers = Jumping({"a": ahead})
    scorers.truths = lambda time: load(time - scorers.ahead)
    world = World(scorers)
    async with world.running(forecasting()):
        await until(3 * HOUR)
        before = trust(world)
        scorers.ahead = jump
        await until(3 * HOUR + 700)
        assert count(world, "forecasts", outcome="clock_set") > 0
        assert trust(world) is None if jump < 0 else trust(world) != 0
        await until(5 * HOUR)
        assert trust(world) == pytest.approx(before, abs=0.2)


async def test_failed_rounds_forecast_nothing_and_their_truths_are_read_all_the_same() -> None:
    def answer(time: float) -> float | Failure:
        if 2 * HOUR < time < 3 * HOUR:
            return Failure("scoring", "InvalidResponse", "not JSON")
        return ahead(time)

    world = World(Scorers({"a": answer}))
    world.scorers.truths = load
    async with world.running(forecasting()):
        await until(2 * HOUR)
        judged = count(world, "forecasts", outcome="judged")
        await until(3 * HOUR)
        # Those of the last horizon before the failure, and no others.
        assert 1 <= count(world, "forecasts", outcome="judged") - judged <= 3
        assert (await trusted(world))["reason"] == "BetterThanLastValue"


async def test_a_bug_in_a_judgement_is_counted_and_fails_no_round() -> None:
    class Broken(Scorers):
        async def truth(self, wanted: ScorerSummary, after: float) -> TruthValues | Failure:  # noqa: ARG002
            raise KeyError("a bug")

    world = World(Broken({"a": ahead}))
    async with world.running(forecasting()):
        await until(HOUR)
        assert len(world.scorers.calls["a"]) == HOUR / INTERVAL + 1
        assert await world.value("a-score") is not None
        assert count(world, "broken") > 5


async def test_a_score_that_is_only_a_metric_is_judged_too() -> None:
    world = World(Scorers({"a": ahead}))
    world.scorers.truths = load
    async with world.running(forecasting(score_destination="None")):
        await until(3 * HOUR)
        assert (trust(world) or 0) > 0.5
        assert world.made("create") == 0


async def test_a_source_that_comes_back_is_caught_up_with_in_steps() -> None:
    class Away(Scorers):
        async def truth(self, wanted: ScorerSummary, after: float) -> TruthValues | Failure:
            if asyncio.get_running_loop().time() < 2 * HOUR:
                return Failure("source", "Unreachable", "no route")
            asked.append(asyncio.get_running_loop().time())
            await asyncio.sleep(100)
            return await super().truth(wanted, after)

    asked: list[float] = []
    scorers = Away({"a": ahead})
    scorers.truths = load
    world = World(scorers)
    async with world.running(forecasting()):
        await until(2 * HOUR + 2 * INTERVAL)
        # A truth takes 100 s, and half of an interval is 150 s.
        assert 4 <= len(asked) <= 6
        assert len(world.scorers.calls["a"]) == 2 * HOUR / INTERVAL + 3
