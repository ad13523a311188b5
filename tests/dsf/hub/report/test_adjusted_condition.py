"""What the agents' rules did to results is said on the DynamicScorer, with counts by cluster."""

from typing import Any

import pytest

from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.score.result_rules import ConversionSettings, convert
from dsf.api import conditions
from dsf.api.crd.score_meaning import ScoreRange
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.port import Object
from tests.dsf.agent.builders import scoring_result
from tests.dsf.hub.builders import NOW, World, published
from tests.dsf.hub.test_plan_fleet import FIVE, condition, settled, status, world

Results = list[tuple[float, dict[str, str]]]


def from_agent(cluster: str, results: Results, **settings: Any) -> Object:
    """Return the score object that an agent writes after a round with these results."""
    form = DimensionFormat.parse("${app}")
    assert not isinstance(form, InvalidInput)
    scores = convert(
        [scoring_result(score, labels) for score, labels in results],
        ConversionSettings(cluster, "cpu_score", form, **settings),
    )
    obj = published(cluster)
    told = RoundReport.success(scores).conditions
    obj["status"]["conditions"] = conditions.merged([], told, now=NOW)
    obj["status"]["scores"] = [{"name": one.name, "value": one.value} for one in scores.entries]
    return obj


def told(*scores: Object) -> tuple[str, str, str]:
    end: World = settled(world(scores=scores))
    return condition(end.scorers[0], "ScoresAdjusted")


FINE: Results = [(1, {"app": "a"}), (2, {"app": "b"})]


@pytest.mark.parametrize(
    ("results", "reason", "counts"),
    [
        ([(float("nan"), {"app": "a"})], "AllDropped", "1 result became 0 entries: dropped 1"),
        (
            [(1, {"pod": "a"}), (2, {"pod": "b"})],
            "EntriesMerged",
            "became 1 entry: 2 results lack a label that scoreDimensionFormat names (app);",
        ),
        ([(400, {"app": "a"}), (-800, {"app": "b"})], "AllClamped", "clamped 2 scores"),
        ([(1, {"app": "a"}), (2, {})], "LabelsMissing", "1 results lack a label"),
        ([*FINE, (float("inf"), {"app": "c"})], "ResultsDropped", "3 results became 2 entries"),
        ([*FINE, (101, {"app": "c"})], "ScoresClamped", "clamped 1 scores"),
        ([(1, {"app": "x" * 300}), (2, {"app": "b"})], "LabelsCut", "cut labels of 1 results"),
    ],
)
def test_each_way_to_lose_results_has_a_reason(results: Results, reason: str, counts: str) -> None:
    state, found, message = told(from_agent("c1", results), from_agent("c2", FINE))
    assert (state, found) == ("True", reason)
    assert message.startswith("1 of 5 managed clusters: ")
    assert f"c1: {len(results)} result" in message
    assert counts in message
    assert "c2" not in message


def test_a_score_outside_the_declared_range_is_said() -> None:
    score = from_agent("c1", FINE, declared=ScoreRange(max=1))
    assert told(score)[1] == "OutsideDeclaredRange"
    assert "1 scores are outside the declared range" in told(score)[2]


def test_the_worst_comes_first_and_the_rest_is_counted() -> None:
    dropped = [(float("nan"), {"app": "a"})]
    scores = [from_agent(name, [*FINE, (101.0, {"app": "c"})]) for name in FIVE[:-1]]
    state, reason, message = told(*scores, from_agent(FIVE[-1], dropped))
    assert (state, reason) == ("True", "AllDropped")
    assert message.startswith("1 of 5 managed clusters: no result became an entry")
    assert message.index(f"{FIVE[-1]}: ") < message.index(f"{FIVE[0]}: ")


def test_an_adjusted_scorer_stays_ready_and_says_when_it_is_well_again() -> None:
    clamped: Results = [(101, {"app": "a"})]
    start = settled(world(scores=tuple(from_agent(name, clamped) for name in FIVE)))
    assert condition(start.scorers[0], "Ready")[0] == "True"
    well = world(scorers=start.scorers, scores=tuple(from_agent(name, FINE) for name in FIVE))
    assert condition(settled(well).scorers[0], "ScoresAdjusted")[:2] == ("False", "NothingAdjusted")


def test_a_scorer_whose_results_are_published_as_they_are_has_no_such_condition() -> None:
    end = settled(world(scores=(from_agent("c1", FINE),)))
    assert "ScoresAdjusted" not in {found["type"] for found in status(end)["conditions"]}


def test_a_score_that_has_expired_says_nothing_any_more() -> None:
    old = from_agent("c1", [(101, {"app": "a"})])
    old["status"]["validUntil"] = "2026-11-20T09:59:59Z"
    end = settled(world(scores=(old,)))
    assert "ScoresAdjusted" not in {found["type"] for found in status(end)["conditions"]}
